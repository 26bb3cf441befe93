"""Tests of L{kubetwist.registry.rbac.bootstrap.roles}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.authorization import AuthorizerAttributes, Decision
from kubetwist.api.resource import UserInfo
from kubetwist.registry.rbac.bootstrap.reconcile import (
    expected_cluster_roles,
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
        for one in expected_cluster_roles():
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
