"""Tests of L{kubetwist.registry.rbac.bootstrap.rules}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.rbac.bootstrap.rules import paths, rule, rules_of

FEATURES = FeatureGates()


class RuleTests(SynchronousTestCase):
    """Tests of L{kubetwist.registry.rbac.bootstrap.rules}."""

    def test_rule(self) -> None:
        """Lists are sorted; abbreviations expand to several verbs, and C{core} is the core group."""
        self.assertEqual(
            rule("update read", "core apps", "pods nodes", "b a").rule(FEATURES),
            {
                "verbs": ["get", "list", "update", "watch"],
                "apiGroups": ["", "apps"],
                "resources": ["nodes", "pods"],
                "resourceNames": ["a", "b"],
            },
        )
        self.assertEqual(
            rule("write", "core", "*").rule(FEATURES)["verbs"],
            ["create", "delete", "deletecollection", "patch", "update"],
        )
        self.assertEqual(paths("/b /a").rule(FEATURES), {"verbs": ["get"], "nonResourceURLs": ["/a", "/b"]})

    def test_words(self) -> None:
        """Words and rules whose conditions do not hold are left out."""
        template = rule("get watch[>=1.34]", "core extensions[<1.34]", "pods nodes[<1.34,ComponentFlagz]")
        granted = template.rule(FeatureGates((1, 34)))
        self.assertEqual(granted, {"verbs": ["get", "watch"], "apiGroups": [""], "resources": ["pods"]})
        before = template.rule(FeatureGates((1, 33), {"ComponentFlagz": True}))
        self.assertEqual(before, {"verbs": ["get"], "apiGroups": ["", "extensions"], "resources": ["nodes", "pods"]})
        templates = (paths("/a", when="<1.34"), paths("/b[<1.34] /c"))
        self.assertEqual(rules_of(templates, FeatureGates((1, 34))), [{"verbs": ["get"], "nonResourceURLs": ["/c"]}])
