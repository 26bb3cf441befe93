"""Tests of L{kubetwist.registry.rbac.bootstrap.rules}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.rbac.bootstrap.rules import paths, rule


class RuleTests(SynchronousTestCase):
    """Tests of L{kubetwist.registry.rbac.bootstrap.rules}."""

    def test_rule(self) -> None:
        """Lists are sorted; abbreviations expand to several verbs, and C{core} is the core group."""
        self.assertEqual(
            rule("update read", "core apps", "pods nodes", "b a"),
            {
                "verbs": ["get", "list", "update", "watch"],
                "apiGroups": ["", "apps"],
                "resources": ["nodes", "pods"],
                "resourceNames": ["a", "b"],
            },
        )
        self.assertEqual(
            rule("write", "core", "*")["verbs"], ["create", "delete", "deletecollection", "patch", "update"]
        )
        self.assertEqual(paths("/b /a"), {"verbs": ["get"], "nonResourceURLs": ["/a", "/b"]})
