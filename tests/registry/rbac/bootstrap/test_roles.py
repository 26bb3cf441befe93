"""Tests of L{kubetwist.registry.rbac.bootstrap.roles}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import UserInfo
from kubetwist.registry.rbac.bootstrap.reconcile import (
    expected_cluster_role_bindings,
    expected_cluster_roles,
    expected_roles,
)
from tests.registry.rbac import rbacserver
from tests.registry.rbac.bootstrap.reconcilecase import ReconcileTestCase


class VulnerabilityTests(SynchronousTestCase):
    """Tests of permissions that roles for users must not have."""

    def test_cve_2021_25740(self) -> None:
        """CVE-2021-25740: editors of a namespace cannot direct its services to other addresses."""
        given = (
            "edit",
            "admin",
            "view",
            "system:aggregate-to-edit",
            "system:aggregate-to-admin",
            "system:aggregate-to-view",
        )
        checked = 0
        for one in expected_cluster_roles(FeatureGates()):
            if one["metadata"]["name"] not in given:
                continue
            checked += 1
            for rule in one.get("rules") or ():
                if {"endpoints", "endpointslices", "*"} & set(rule.get("resources", ())):
                    self.assertLessEqual(set(rule["verbs"]), {"get", "list", "watch"}, one["metadata"]["name"])
        self.assertEqual(checked, len(given))


class SchedulerTests(ReconcileTestCase):
    """Tests of the roles of the scheduler."""

    def test_scheduler(self) -> None:
        """The roles let components do their work, and let all users discover the API, but not change objects."""
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


def rules(name: str, features: FeatureGates) -> list[Any]:
    """Return the rules of a ClusterRole; an empty list if a server with C{features} does not have it."""
    for role in expected_cluster_roles(features):
        if role["metadata"]["name"] == name:
            return role["rules"] or []
    return []


def verbs(name: str, resource: str, features: FeatureGates) -> set[str]:
    """Return the verbs that a ClusterRole has for a resource."""
    return {verb for rule in rules(name, features) if resource in rule.get("resources", ()) for verb in rule["verbs"]}


class ReleaseTests(SynchronousTestCase):
    """Tests of the roles of other releases than the default."""

    def test_edit(self) -> None:
        """Editors may change Endpoints until 1.33, and events of C{events.k8s.io} since 1.35."""
        edit = "system:aggregate-to-edit"
        self.assertIn("patch", verbs(edit, "endpoints", FeatureGates((1, 33))))
        self.assertEqual(verbs(edit, "endpoints", FeatureGates((1, 34))), set())
        for release, groups in (((1, 34), [[""]]), ((1, 35), [["", "events.k8s.io"]])):
            found = [rule["apiGroups"] for rule in rules(edit, FeatureGates(release)) if "events" in rule["resources"]]
            self.assertEqual(found, groups, release)

    def test_gate(self) -> None:
        """Rules for dynamic resource allocation need its gate, which is off by default until 1.33."""
        scheduler = "system:kube-scheduler"
        self.assertEqual(verbs(scheduler, "deviceclasses", FeatureGates((1, 33))), set())
        enabled = FeatureGates((1, 33), {"DynamicResourceAllocation": True})
        self.assertEqual(verbs(scheduler, "deviceclasses", enabled), {"get", "list", "watch"})
        self.assertEqual(verbs(scheduler, "devicetaintrules", enabled), {"get", "list", "watch"})
        self.assertEqual(verbs(scheduler, "deviceclasses", FeatureGates((1, 34))), {"get", "list", "watch"})
        self.assertEqual(verbs(scheduler, "devicetaintrules", FeatureGates((1, 34))), set())

    def test_controllers_of_gates(self) -> None:
        """The role of a controller and its binding exist if the gate of the controller is enabled."""
        name = "system:controller:volumeattributesclass-protection-controller"
        for features, exists in (
            (FeatureGates((1, 33)), False),
            (FeatureGates((1, 33), {"VolumeAttributesClass": True}), True),
            (FeatureGates((1, 34)), True),
        ):
            self.assertEqual(bool(rules(name, features)), exists)
            bindings = [one["metadata"]["name"] for one in expected_cluster_role_bindings(features)]
            self.assertEqual(name in bindings, exists)

    def test_monitoring(self) -> None:
        """Monitoring may read metrics of nodes since 1.34; the pages of gates had separate rules until 1.35."""
        name, gates = "system:monitoring", {"ComponentFlagz": True}
        self.assertEqual(len(rules(name, FeatureGates((1, 33)))), 1)
        self.assertEqual(
            [rule.get("nonResourceURLs") for rule in rules(name, FeatureGates((1, 35), gates))][1:], [None, ["/flagz"]]
        )
        newest = rules(name, FeatureGates((1, 36), {"ComponentFlagz": True, "ComponentStatusz": False}))
        self.assertEqual(newest[0]["nonResourceURLs"][0], "/flagz")
        self.assertNotIn("/statusz", newest[0]["nonResourceURLs"])

    def test_watch(self) -> None:
        """Controllers may watch what they list since 1.32."""
        for name, resource in (
            ("horizontal-pod-autoscaler", "pods"),
            ("cronjob-controller", "pods"),
            ("node-controller", "nodes"),
        ):
            name = f"system:controller:{name}"
            before, after = (verbs(name, resource, FeatureGates(release)) for release in ((1, 31), (1, 32)))
            self.assertEqual(after - before, {"watch"})

    def test_leader_locking(self) -> None:
        """The roles for leader election include ConfigMaps until 1.34."""
        for release, count in (((1, 34), 4), ((1, 35), 2)):
            for role in expected_roles(FeatureGates(release)):
                if "leader-locking" in role["metadata"]["name"]:
                    self.assertEqual(len(role["rules"]), count)

    def test_all_gates(self) -> None:
        """All releases have roles with all gates enabled and disabled, and each rule of them grants something."""
        for minor in range(31, 38):
            for value in (True, False):
                features = FeatureGates((1, minor), {"AllAlpha": value, "AllBeta": value})
                for role in expected_cluster_roles(features):
                    for rule in role["rules"] or ():
                        self.assertTrue(all(rule.values()), (minor, role["metadata"]["name"], rule))
