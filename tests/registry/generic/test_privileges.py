"""Tests for L{kubetwist.registry.generic.privileges}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.privileges import privileged_allowed, unprivileged


class PrivilegeTests(SynchronousTestCase):
    """Tests for whether privileged containers are allowed."""

    def test_within(self) -> None:
        """They are not while objects are validated for such a server, and are again afterwards."""
        self.assertTrue(privileged_allowed())
        self.assertEqual(unprivileged(lambda text: (text, privileged_allowed()), "x"), ("x", False))
        self.assertTrue(privileged_allowed())

    def test_failure(self) -> None:
        """A validation that fails leaves nothing behind."""
        self.assertRaises(ZeroDivisionError, unprivileged, lambda: 1 // 0)
        self.assertTrue(privileged_allowed())
