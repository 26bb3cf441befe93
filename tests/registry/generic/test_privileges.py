"""Tests of L{kubetwist.registry.generic.privileges}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.privileges import privileged_allowed, unprivileged


class PrivilegeTests(SynchronousTestCase):
    """Tests of L{unprivileged}."""

    def test_within(self) -> None:
        """Privileged containers are not allowed during the validation, and allowed afterwards."""
        self.assertTrue(privileged_allowed())
        self.assertEqual(unprivileged(lambda text: (text, privileged_allowed()), "x"), ("x", False))
        self.assertTrue(privileged_allowed())

    def test_failure(self) -> None:
        """The setting is reset after a validation that raises."""
        self.assertRaises(ZeroDivisionError, unprivileged, lambda: 1 // 0)
        self.assertTrue(privileged_allowed())
