"""Tests of L{kubetwist.registry.rbac.bootstrap.reconcile}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.rbacrules import uncovered_rules
from kubetwist.registry.rbac.bootstrap.reconcile import (
    AUTOUPDATE,
    compute_reconciled_role,
    expected_cluster_role_bindings,
    expected_cluster_roles,
    expected_role_bindings,
    expected_roles,
)
from kubetwist.registry.rbac.bootstrap.rules import EVENTS, rule
from kubetwist.registry.rbac.ruleresolver import GROUP
from tests.registry.rbac.bootstrap.reconcilecase import ReconcileTestCase
from tests.registry.rbac.rbacserver import API, binding

CLUSTER_ROLES, CLUSTER_BINDINGS = f"{API}/clusterroles", f"{API}/clusterrolebindings"
FEATURES = FeatureGates()


class ReconcileTests(ReconcileTestCase):
    """Tests of L{reconcile}."""

    def test_first_start(self) -> None:
        """The first start creates every object in one write, and the namespaces of the roles."""
        objects = [
            *expected_cluster_roles(FEATURES),
            *expected_cluster_role_bindings(FEATURES),
            *expected_roles(FEATURES),
            *expected_role_bindings(),
        ]
        self.assertEqual(len(objects), 70 + 51 + 7 + 7)
        self.assertEqual(self.reconcile(), len(objects) + 2)
        for resource, count in (("clusterroles", 70), ("clusterrolebindings", 51), ("roles", 7), ("rolebindings", 7)):
            self.assertEqual(len(self.server.stores.get(GROUP, resource).cache), count)

    def test_objects(self) -> None:
        """The objects are those of the reference, with labels, annotations, rules and subjects."""
        self.reconcile()
        scheduler = self.admin(
            "GET", f"{API}/namespaces/kube-system/rolebindings/system::leader-locking-kube-scheduler"
        )
        for name in ("uid", "creationTimestamp", "resourceVersion", "managedFields"):
            scheduler["metadata"].pop(name, None)
        self.assertEqual(
            scheduler,
            {
                "kind": "RoleBinding",
                "apiVersion": f"{GROUP}/v1",
                "metadata": {
                    "name": "system::leader-locking-kube-scheduler",
                    "namespace": "kube-system",
                    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
                    "annotations": {AUTOUPDATE: "true"},
                },
                "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "system::leader-locking-kube-scheduler"},
                "subjects": [
                    {"kind": "User", "apiGroup": GROUP, "name": "system:kube-scheduler"},
                    {"kind": "ServiceAccount", "namespace": "kube-system", "name": "kube-scheduler"},
                ],
            },
        )
        edit = self.admin("GET", f"{CLUSTER_ROLES}/edit")
        self.assertEqual(edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"], "true")
        cron = self.admin("GET", f"{CLUSTER_ROLES}/system:controller:cronjob-controller")
        self.assertIn(rule("read update", "batch", "cronjobs").rule(FEATURES), cron["rules"])
        self.assertIn(EVENTS.rule(FEATURES), cron["rules"])
        self.assertNotIn("subjects", self.admin("GET", f"{CLUSTER_BINDINGS}/system:node"))

    def test_next_start(self) -> None:
        """Without changes, a second start writes nothing."""
        self.reconcile()
        self.assertEqual(self.reconcile(), 0)

    def test_missing(self) -> None:
        """Deleted objects and removed rules are restored."""
        self.reconcile()
        self.admin("DELETE", f"{CLUSTER_ROLES}/system:kube-dns")
        self.admin(
            "PATCH", f"{CLUSTER_ROLES}/system:discovery", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/api"]}]}
        )
        self.admin("PATCH", f"{CLUSTER_BINDINGS}/cluster-admin", {"subjects": None, "metadata": {"labels": None}})
        self.assertEqual(self.reconcile(), 3)
        self.admin("GET", f"{CLUSTER_ROLES}/system:kube-dns")
        rules = self.admin("GET", f"{CLUSTER_ROLES}/system:discovery")["rules"]
        (expected,) = [
            one["rules"] for one in expected_cluster_roles(FEATURES) if one["metadata"]["name"] == "system:discovery"
        ]
        self.assertEqual(uncovered_rules(rules, expected), [])
        master = self.admin("GET", f"{CLUSTER_BINDINGS}/cluster-admin")
        self.assertEqual([subject["name"] for subject in master["subjects"]], ["system:masters"])
        self.assertEqual(master["metadata"]["labels"], {"kubernetes.io/bootstrapping": "rbac-defaults"})
        self.assertEqual(self.reconcile(), 0)

    def test_owner(self) -> None:
        """The server owns restored fields."""
        self.reconcile()
        self.admin("PATCH", f"{CLUSTER_BINDINGS}/cluster-admin", {"subjects": None})
        owned: list[Any] = []
        store = self.server.stores.get(GROUP, "clusterrolebindings")
        self.patch(
            store,
            "update_managed_fields",
            lambda live, new, *names: owned.append((live.get("subjects"), new["subjects"], *names)),
        )
        self.reconcile()
        ((before, now, *names),) = owned
        self.assertFalse(before)
        self.assertEqual(([one["name"] for one in now], names), (["system:masters"], ["", "kube-apiserver"]))

    def test_additions(self) -> None:
        """Added rules, subjects, labels and annotations are kept."""
        self.reconcile()
        more = rule("get", "core", "pods").rule(FEATURES)
        rules = [more, *self.admin("GET", f"{CLUSTER_ROLES}/system:kube-dns")["rules"]]
        changes = {"rules": rules, "metadata": {"labels": {"a": "b", "kubernetes.io/bootstrapping": "mine"}}}
        self.admin("PATCH", f"{CLUSTER_ROLES}/system:kube-dns", changes)
        eve = [{"kind": "User", "name": "eve"}, {"kind": "Group", "name": "system:masters"}]
        self.admin("PATCH", f"{CLUSTER_BINDINGS}/cluster-admin", {"subjects": eve})
        self.assertEqual(self.reconcile(), 0)
        self.assertEqual(self.admin("GET", f"{CLUSTER_ROLES}/system:kube-dns")["rules"], rules)

    def test_opted_out(self) -> None:
        """An object with the annotation is unchanged, even a binding of another role."""
        self.reconcile()
        out = {"metadata": {"annotations": {AUTOUPDATE: "false"}}}
        self.admin("PATCH", f"{CLUSTER_ROLES}/system:discovery", {**out, "rules": None})
        self.admin("PATCH", f"{CLUSTER_BINDINGS}/system:discovery", {**out, "subjects": None})
        self.admin("DELETE", f"{CLUSTER_BINDINGS}/system:basic-user")
        other = binding("system:basic-user", "ClusterRole/other")
        self.admin("POST", CLUSTER_BINDINGS, {**other, "metadata": {**other["metadata"], **out["metadata"]}})
        self.assertEqual(self.reconcile(), 0)
        self.assertIsNone(self.admin("GET", f"{CLUSTER_ROLES}/system:discovery")["rules"])

    def test_other_role(self) -> None:
        """A binding of another role is deleted and created again."""
        self.reconcile()
        self.admin("DELETE", f"{CLUSTER_BINDINGS}/system:discovery")
        self.admin("POST", CLUSTER_BINDINGS, binding("system:discovery", "ClusterRole/other", "User/eve"))
        self.assertEqual(self.reconcile(), 2)
        again = self.admin("GET", f"{CLUSTER_BINDINGS}/system:discovery")
        self.assertEqual(again["roleRef"]["name"], "system:discovery")
        self.assertEqual([subject["name"] for subject in again["subjects"]], ["system:authenticated"])

    def test_selectors(self) -> None:
        """A missing selector of an aggregating role is restored; an unexpected one is removed."""
        admin, dns = (
            one for one in expected_cluster_roles(FEATURES) if one["metadata"]["name"] in ("admin", "system:kube-dns")
        )
        gathering = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        reconciled = compute_reconciled_role({**admin, "aggregationRule": gathering}, admin)
        assert reconciled is not None
        selectors = reconciled["aggregationRule"]["clusterRoleSelectors"]
        self.assertEqual(selectors, [{"matchLabels": {"a": "b"}}, *admin["aggregationRule"]["clusterRoleSelectors"]])
        self.assertEqual(compute_reconciled_role({**dns, "aggregationRule": gathering}, dns), dns)
        self.assertIsNone(compute_reconciled_role(dns, dns))
