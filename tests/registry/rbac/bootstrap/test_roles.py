"""Tests for L{kubetwist.registry.rbac.bootstrap.roles}."""

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


class SchedulerTests(ReconcileTestCase):
    """Tests for the roles of the scheduler."""

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
