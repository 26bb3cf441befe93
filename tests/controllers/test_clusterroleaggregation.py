"""Tests for L{kubetwist.controllers.clusterroleaggregation}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.authorization.rbac import RBAC
from kubetwist.controllers.clusterroleaggregation import ClusterRoleAggregation
from kubetwist.registry.rbac.bootstrap.reconcile import reconcile
from kubetwist.registry.rbac.bootstrap.rules import rule
from kubetwist.registry.rbac.ruleresolver import GROUP, RuleResolver
from kubetwist.storage.errors import RevisionCompacted
from tests.controllers.harness import ControllerTestCase

LABEL = {"rbac.authorization.k8s.io/aggregate-to-view": "true"}


class ClusterRoleAggregationTests(ControllerTestCase):
    """The rules of C{admin}, C{edit}, C{view}, and of those that users define."""

    resources = ("clusterroles", "clusterrolebindings", "roles", "rolebindings", "namespaces")

    def setUp(self) -> None:
        """All built-in roles, by which the controller may do what it does."""
        super().setUp()
        self.reconcile()

    def authorizer_over(self, grants: RuleResolver) -> RBAC:
        """Have RBAC decide what writes need."""
        return RBAC(grants)

    def reconcile(self) -> None:
        """What a server does when it starts."""
        self.successResultOf(Deferred.fromCoroutine(reconcile(self.stores)))

    def rules(self, name: str) -> list[Any]:
        """Those of a role as it is now."""
        self.settle()
        return self.find("clusterroles", name, group=GROUP).get("rules") or []

    def role(self, name: str, *rules: Any, **parts: Any) -> None:
        """Make one."""
        self.make("clusterroles", name, group=GROUP, rules=list(rules), **parts)

    def alter(self, name: str, **parts: Any) -> None:
        """Change one."""
        self.change("clusterroles", name, lambda obj: obj.update(parts), group=GROUP)

    def label(self, name: str, labels: Any) -> None:
        """Label one."""
        self.change("clusterroles", name, lambda obj: obj["metadata"].update(labels=labels), group=GROUP)

    def test_start(self) -> None:
        """Each of the three has the rules of the next smaller one, and those that are labelled for it."""
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
        """When they are filled already, nothing is written, by this or by what makes the roles."""
        self.start(ClusterRoleAggregation)
        before = self.memory.revision
        self.restart(ClusterRoleAggregation)
        self.reconcile()
        self.settle()
        self.assertEqual(self.memory.revision, before)

    def test_applied(self) -> None:
        """The controller owns the rules by server-side apply, and nothing else."""
        self.start(ClusterRoleAggregation)
        entries = self.find("clusterroles", "view", group=GROUP)["metadata"]["managedFields"]
        mine = [one for one in entries if one["manager"] == "clusterrole-aggregation-controller"]
        self.assertEqual([(one["operation"], one["fieldsV1"]) for one in mine], [("Apply", {"f:rules": {}})])

    def test_changes(self) -> None:
        """A labelled role counts for all three as soon as it is there, and no longer when it is not."""
        self.start(ClusterRoleAggregation)
        more = rule("read", "stable.example.com", "crontabs")
        self.role("crontabs", more, metadata={"labels": LABEL})
        for name in ("view", "edit", "admin"):
            self.assertIn(more, self.rules(name))
        other = rule("get", "stable.example.com", "crontabs")
        self.alter("crontabs", rules=[other])
        self.assertIn(other, self.rules("admin"))
        self.assertNotIn(more, self.rules("admin"))
        self.label("crontabs", None)
        self.assertNotIn(other, self.rules("admin"))
        self.label("crontabs", LABEL)
        self.assertIn(other, self.rules("admin"))
        self.remove("clusterroles", "crontabs", group=GROUP)
        self.assertNotIn(other, self.rules("view"))

    def test_users(self) -> None:
        """roles of users are aggregated; one that selects nothing has no rules."""
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
        self.alter("sum", rules=[rule("*", "*", "*")])
        self.assertEqual(self.rules("sum"), [])

    def test_by_hand(self) -> None:
        """changed rules of an aggregated role are corrected."""
        self.start(ClusterRoleAggregation)
        expected = self.rules("view")
        self.alter("view", rules=[rule("*", "*", "*")])
        self.assertEqual(self.rules("view"), expected)

    def test_lost_place(self) -> None:
        """What changes while the cache of roles starts over is seen afterwards."""
        self.start(ClusterRoleAggregation)
        self.stores.get(GROUP, "clusterroles").cache.ended(RevisionCompacted(1, 2))
        self.settle(5)
        more = rule("get", "core", "pods")
        self.role("other", more, metadata={"labels": LABEL})
        self.assertIn(more, self.rules("view"))

    def test_faults(self) -> None:
        """Where every tenth write fails, or every second, all are filled in the end."""
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
