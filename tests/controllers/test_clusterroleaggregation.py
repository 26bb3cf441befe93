"""Tests for L{kubetwist.controllers.clusterroleaggregation}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.rbacrules import Rule
from kubetwist.authorization.rbac import RBAC
from kubetwist.controllers.clusterroleaggregation import ClusterRoleAggregation
from kubetwist.registry.rbac.bootstrap.reconcile import reconcile
from kubetwist.registry.rbac.bootstrap.rules import RuleTemplate
from kubetwist.registry.rbac.ruleresolver import GROUP, RuleResolver
from kubetwist.storage.errors import RevisionCompacted
from tests.controllers.harness import ControllerTestCase

LABEL = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}


def rule(verbs: str, groups: str, resources: str) -> Rule:
    """Return a rule; see L{RuleTemplate}."""
    return RuleTemplate(verbs, groups, resources).rule(FeatureGates())


class ClusterRoleAggregationTests(ControllerTestCase):
    """Aggregation of the built-in and of user-defined roles."""

    resources = ("clusterroles", "clusterrolebindings", "roles", "rolebindings", "namespaces")

    def setUp(self) -> None:
        """Create the built-in roles, which authorize the controller."""
        super().setUp()
        self.reconcile()

    def create_authorizer(self, grants: RuleResolver) -> RBAC:
        """Authorize with RBAC."""
        return RBAC(grants)

    def reconcile(self) -> None:
        """Create the bootstrap roles as at a start."""
        self.successResultOf(Deferred.fromCoroutine(reconcile(self.stores, FeatureGates())))

    def rules(self, name: str) -> list[Any]:
        """Return the rules of a role."""
        self.settle()
        return self.find("clusterroles", name, group=GROUP).get("rules") or []

    def role(self, name: str, *rules: Any, **parts: Any) -> None:
        """Create a role."""
        self.make("clusterroles", name, group=GROUP, rules=list(rules), **parts)

    def update(self, name: str, **parts: Any) -> None:
        """Change a role."""
        self.change("clusterroles", name, lambda obj: obj.update(parts), group=GROUP)

    def label(self, name: str, labels: Any) -> None:
        """Set labels of a role."""
        self.change("clusterroles", name, lambda obj: obj["metadata"].update(labels=labels), group=GROUP)

    def test_start(self) -> None:
        """Each of the roles admin, edit and view has the rules of the next smaller one, and of labelled roles."""
        self.assertEqual(self.rules("admin"), [])
        self.start(ClusterRoleAggregation)
        for name, parts in (
            ("view", ["system:aggregate-to-view"]),
            ("edit", ["system:aggregate-to-edit", "view"]),
            ("admin", ["edit", "system:aggregate-to-admin"]),
        ):
            expected: list[Any] = []
            for part in parts:
                expected += [one for one in self.rules(part) if one not in expected]
            self.assertEqual(self.rules(name), expected)
            self.assertTrue(expected)

    def test_restart(self) -> None:
        """After a restart neither the controller nor the bootstrap writes unchanged roles."""
        self.start(ClusterRoleAggregation)
        before = self.memory.revision
        self.restart(ClusterRoleAggregation)
        self.reconcile()
        self.settle()
        self.assertEqual(self.memory.revision, before)

    def test_applied(self) -> None:
        """The controller owns the rules by server-side apply, and no other fields."""
        self.start(ClusterRoleAggregation)
        entries = self.find("clusterroles", "view", group=GROUP)["metadata"]["managedFields"]
        own_rules = [one for one in entries if one["manager"] == "clusterrole-aggregation-controller"]
        self.assertEqual([(one["operation"], one["fieldsV1"]) for one in own_rules], [("Apply", {"f:rules": {}})])

    def test_changes(self) -> None:
        """The rules of a labelled role are aggregated when it is created, and removed when it is deleted."""
        self.start(ClusterRoleAggregation)
        more = rule("read", "stable.example.com", "crontabs")
        self.role("crontabs", more, metadata={"labels": LABEL})
        for name in ("view", "edit", "admin"):
            self.assertIn(more, self.rules(name))
        other = rule("get", "stable.example.com", "crontabs")
        self.update("crontabs", rules=[other])
        self.assertIn(other, self.rules("admin"))
        self.assertNotIn(more, self.rules("admin"))
        self.label("crontabs", None)
        self.assertNotIn(other, self.rules("admin"))
        self.label("crontabs", LABEL)
        self.assertIn(other, self.rules("admin"))
        self.remove("clusterroles", "crontabs", group=GROUP)
        self.assertNotIn(other, self.rules("view"))

    def test_users(self) -> None:
        """Roles of users are aggregated. A role whose selector matches nothing has no rules."""
        self.start(ClusterRoleAggregation)
        one = rule("get", "core", "pods")
        selectors = [{"matchExpressions": [{"key": "team", "operator": "In", "values": ["red", "blue"]}]}]
        self.role("sum", aggregationRule={"clusterRoleSelectors": selectors})
        self.role("red", one, metadata={"labels": {"team": "red"}})
        self.role("blue", one, rule("get", "core", "nodes"), metadata={"labels": {"team": "blue"}})
        self.assertEqual(self.rules("sum"), [one, rule("get", "core", "nodes")])
        for name in ("red", "blue"):
            self.remove("clusterroles", name, group=GROUP)
        self.assertEqual(self.rules("sum"), [])
        self.update("sum", rules=[rule("*", "*", "*")])
        self.assertEqual(self.rules("sum"), [])

    def test_manual_change(self) -> None:
        """Changed rules of an aggregated role are corrected."""
        self.start(ClusterRoleAggregation)
        expected = self.rules("view")
        self.update("view", rules=[rule("*", "*", "*")])
        self.assertEqual(self.rules("view"), expected)

    def test_cache_reload(self) -> None:
        """Changes during a reload of the role cache are aggregated afterwards."""
        self.start(ClusterRoleAggregation)
        self.stores.get(GROUP, "clusterroles").cache.ended(RevisionCompacted(1, 2))
        self.settle(5)
        more = rule("get", "core", "pods")
        self.role("other", more, metadata={"labels": LABEL})
        self.assertIn(more, self.rules("view"))

    def test_faults(self) -> None:
        """With failing writes, all roles are aggregated in the end."""
        for often in (10, 2):
            for name in ("admin", "edit", "view"):
                self.remove("clusterroles", name, group=GROUP)
            self.reconcile()
            self.backend.fails = lambda number, often=often: number % often == 0  # type: ignore[misc]
            self.start(ClusterRoleAggregation)
            self.settle(10)
            self.assertLess(set(map(str, self.rules("edit"))), set(map(str, self.rules("admin"))))
            self.assertLess(set(map(str, self.rules("view"))), set(map(str, self.rules("edit"))))
            self.backend.fails = lambda number: False
