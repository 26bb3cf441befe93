"""Tests for L{kubetwist.registry.rbac.bootstrap.reconcile}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.rbacrules import uncovered
from kubetwist.api.resource import UserInfo
from kubetwist.registry.rbac.bootstrap.reconcile import (
    AUTOUPDATE,
    expected_cluster_role_bindings,
    expected_cluster_roles,
    expected_role_bindings,
    expected_roles,
    mended_role,
    reconcile,
)
from kubetwist.registry.rbac.bootstrap.rules import EVENTS, paths, rule
from kubetwist.registry.rbac.ruleresolver import GROUP
from tests.registry.rbac import rbacserver
from tests.registry.rbac.rbacserver import API, RBACServer, binding

CLUSTER_ROLES, CLUSTER_BINDINGS = f"{API}/clusterroles", f"{API}/clusterrolebindings"


class ShortHandTests(SynchronousTestCase):
    """Tests for L{kubetwist.registry.rbac.bootstrap.rules}."""

    def test_rule(self) -> None:
        """Words become sorted lists; some stand for several verbs, and C{core} for the group without a name."""
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


class ReconcileTestCase(SynchronousTestCase):
    """A test on a server."""

    def setUp(self) -> None:
        """Without any role."""
        self.server = RBACServer()

    def reconcile(self) -> int:
        """Start; the number of writes."""
        before = self.server.backend.revision
        self.server.run(reconcile(self.server.stores))
        return self.server.backend.revision - before

    def admin(self, method: str, path: str, body: Any = None) -> Any:
        """What the server answers to the administrator, who succeeds."""
        code, answer = self.server.ask("admin", method, path, body)
        self.assertIn(code, (200, 201), answer)
        return answer


class ReconcileTests(ReconcileTestCase):
    """Tests for L{reconcile}."""

    def test_first_start(self) -> None:
        """Everything is made, each object in one write, and the namespaces that it needs."""
        objects = [
            *expected_cluster_roles(),
            *expected_cluster_role_bindings(),
            *expected_roles(),
            *expected_role_bindings(),
        ]
        self.assertEqual(len(objects), 70 + 51 + 7 + 7)
        self.assertEqual(self.reconcile(), len(objects) + 2)
        for resource, count in (("clusterroles", 70), ("clusterrolebindings", 51), ("roles", 7), ("rolebindings", 7)):
            self.assertEqual(len(self.server.stores.get(GROUP, resource).cache), count)

    def test_objects(self) -> None:
        """The objects are those of the reference in full: labels, annotations, rules and subjects."""
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
        self.assertIn(rule("read update", "batch", "cronjobs"), cron["rules"])
        self.assertIn(EVENTS, cron["rules"])
        self.assertNotIn("subjects", self.admin("GET", f"{CLUSTER_BINDINGS}/system:node"))

    def test_next_start(self) -> None:
        """When nothing was changed, nothing is written."""
        self.reconcile()
        self.assertEqual(self.reconcile(), 0)

    def test_missing(self) -> None:
        """What was deleted or taken away comes back."""
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
            one["rules"] for one in expected_cluster_roles() if one["metadata"]["name"] == "system:discovery"
        ]
        self.assertEqual(uncovered(rules, expected), [])
        master = self.admin("GET", f"{CLUSTER_BINDINGS}/cluster-admin")
        self.assertEqual([subject["name"] for subject in master["subjects"]], ["system:masters"])
        self.assertEqual(master["metadata"]["labels"], {"kubernetes.io/bootstrapping": "rbac-defaults"})
        self.assertEqual(self.reconcile(), 0)

    def test_owner(self) -> None:
        """What comes back is the server's."""
        self.reconcile()
        self.admin("PATCH", f"{CLUSTER_BINDINGS}/cluster-admin", {"subjects": None})
        owned: list[Any] = []
        store = self.server.stores.get(GROUP, "clusterrolebindings")
        self.patch(store, "own", lambda live, new, *said: owned.append((live.get("subjects"), new["subjects"], *said)))
        self.reconcile()
        ((before, now, *said),) = owned
        self.assertFalse(before)
        self.assertEqual(([one["name"] for one in now], said), (["system:masters"], ["", "kube-apiserver"]))

    def test_additions(self) -> None:
        """Rules, subjects, labels and annotations that were added are left alone."""
        self.reconcile()
        more = rule("get", "core", "pods")
        rules = [more, *self.admin("GET", f"{CLUSTER_ROLES}/system:kube-dns")["rules"]]
        changes = {"rules": rules, "metadata": {"labels": {"a": "b", "kubernetes.io/bootstrapping": "mine"}}}
        self.admin("PATCH", f"{CLUSTER_ROLES}/system:kube-dns", changes)
        eve = [{"kind": "User", "name": "eve"}, {"kind": "Group", "name": "system:masters"}]
        self.admin("PATCH", f"{CLUSTER_BINDINGS}/cluster-admin", {"subjects": eve})
        self.assertEqual(self.reconcile(), 0)
        self.assertEqual(self.admin("GET", f"{CLUSTER_ROLES}/system:kube-dns")["rules"], rules)

    def test_opted_out(self) -> None:
        """An object that says so is left as it is, even a binding of another role."""
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
        """A binding of another role is made anew."""
        self.reconcile()
        self.admin("DELETE", f"{CLUSTER_BINDINGS}/system:discovery")
        self.admin("POST", CLUSTER_BINDINGS, binding("system:discovery", "ClusterRole/other", "User/eve"))
        self.assertEqual(self.reconcile(), 2)
        again = self.admin("GET", f"{CLUSTER_BINDINGS}/system:discovery")
        self.assertEqual(again["roleRef"]["name"], "system:discovery")
        self.assertEqual([subject["name"] for subject in again["subjects"]], ["system:authenticated"])

    def test_selectors(self) -> None:
        """A role that gathers gets its selector back; one that should not gather stops."""
        admin, dns = (
            one for one in expected_cluster_roles() if one["metadata"]["name"] in ("admin", "system:kube-dns")
        )
        gathering = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        mended = mended_role({**admin, "aggregationRule": gathering}, admin)
        assert mended is not None
        selectors = mended["aggregationRule"]["clusterRoleSelectors"]
        self.assertEqual(selectors, [{"matchLabels": {"a": "b"}}, *admin["aggregationRule"]["clusterRoleSelectors"]])
        self.assertEqual(mended_role({**dns, "aggregationRule": gathering}, dns), dns)
        self.assertIsNone(mended_role(dns, dns))

    def test_scheduler(self) -> None:
        """With them components can do their work, and everyone can see what there is, but not change it."""
        self.reconcile()
        scheduler = UserInfo("system:kube-scheduler", groups=("system:authenticated",))

        def may(user: UserInfo, verb: str, **more: Any) -> bool:
            question = AuthorizerAttributes(user, verb, **more)
            return self.server.rbac.authorize(question).decision is Decision.ALLOW

        self.assertTrue(may(scheduler, "create", resource="pods", subresource="binding", namespace="a"))
        self.assertFalse(may(scheduler, "create", resource="pods", namespace="a"))
        bob = rbacserver.USERS["bob"]
        self.assertTrue(may(bob, "get", path="/apis/apps/v1", is_resource_request=False))
        self.assertFalse(may(bob, "list", resource="pods"))


class WeaknessTests(SynchronousTestCase):
    """What no role that is given to people may allow."""

    def test_cve_2021_25740(self) -> None:
        """CVE-2021-25740: who may edit a namespace can not lead its services to addresses of others."""
        given = (
            "edit",
            "admin",
            "view",
            "system:aggregate-to-edit",
            "system:aggregate-to-admin",
            "system:aggregate-to-view",
        )
        looked_at = 0
        for one in expected_cluster_roles():
            if one["metadata"]["name"] not in given:
                continue
            looked_at += 1
            for what in one.get("rules") or ():
                if {"endpoints", "endpointslices", "*"} & set(what.get("resources", ())):
                    self.assertLessEqual(set(what["verbs"]), {"get", "list", "watch"}, one["metadata"]["name"])
        self.assertEqual(looked_at, len(given))
