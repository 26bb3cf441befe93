"""Tests of L{kubetwist.registry.generic.keys}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.registry.generic.keys import check_key


class KeyTests(SynchronousTestCase):
    """Tests of L{check_key}."""

    def test_good(self) -> None:
        """A valid name is accepted, with a namespace or for cluster-scoped objects."""
        check_key("a")
        check_key("a", "ns")

    def test_bad(self) -> None:
        """Missing names or namespaces, and names that are no path segments, are rejected (400)."""
        for name, namespace, message in (
            ("a", "", "Namespace parameter required."),
            ("", "ns", "Name parameter required."),
            ("a/b", "ns", "Name parameter invalid: \"a/b\": may not contain '/'"),
            ("..", None, "Name parameter invalid: \"..\": may not be '..'"),
        ):
            error = self.assertRaises(APIStatusError, check_key, name, namespace)
            self.assertEqual((error.code, error.message), (400, message))
