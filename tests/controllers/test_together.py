"""Tests of all built-in controllers together: undisturbed, with failing writes, and with kills."""

from __future__ import annotations

from functools import partial
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.featuregates import FeatureGates
from kubetwist.authorization.rbac import RBAC
from kubetwist.controllers.machinery.manager import ControllerManager
from kubetwist.controllers.machinery.selection import select_controllers
from kubetwist.controllers.serviceaccounts.serviceaccounttokens import (
    ACCOUNT_NAME,
    TYPE,
)
from kubetwist.registry.rbac.bootstrap.reconcile import reconcile
from kubetwist.registry.rbac.ruleresolver import RuleResolver
from tests.controllers.harness import ControllerTestCase
from tests.controllers.serviceaccounts.test_serviceaccounttokens import Config


class TogetherTests(ControllerTestCase):
    """A namespace with objects of many kinds, from creation to deletion."""

    admission = True

    def setUp(self) -> None:
        """Start all controllers that need no other parts of a server."""
        self.config = Config()
        super().setUp()
        self.successResultOf(Deferred.fromCoroutine(reconcile(self.stores, FeatureGates())))
        self.all = ControllerManager(self.context, select_controllers(("*", "workloads")))
        self.all.start()
        self.settle()
        self.addCleanup(self.stop)

    def create_authorizer(self, grants: RuleResolver) -> RBAC:
        """Authorize with RBAC."""
        return RBAC(grants)

    def stop(self) -> None:
        """Stop the controllers."""
        self.successResultOf(Deferred.fromCoroutine(self.all.stop()))

    def kill(self) -> None:
        """Kill the server, and start again with the stored objects."""
        for controller in self.all.controllers.values():
            for subscription in getattr(controller, "_registrations", ()):
                subscription.stop()
            queue = getattr(controller, "queue", None)
            if queue is not None:
                queue._stopped = True
        self.restart()
        self.all = ControllerManager(self.context, select_controllers(("*", "workloads")))
        self.all.start()
        self.settle()

    def use(self) -> None:
        """Create the objects of users."""
        self.make("namespaces", "one")
        self.settle(30)
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec: Any = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
        self.make("deployments", "web", "one", "apps", spec=spec)
        ports = [{"port": 80, "protocol": "TCP", "targetPort": 80}]
        self.make("services", "web", "one", spec={"selector": labels, "ports": ports})
        self.make("secrets", "token", "one", type=TYPE, metadata={"annotations": {ACCOUNT_NAME: "default"}})

    def check(self) -> None:
        """Check the objects that controllers create for them."""
        self.assertEqual(self.names("serviceaccounts", "one"), ["default"])
        self.assertEqual(self.names("configmaps", "one"), ["kube-root-ca.crt"])
        self.assertIn("token", self.find("secrets", "token", "one")["data"])
        self.assertEqual(len(self.names("replicasets", "one", "apps")), 1)
        self.assertEqual(len(self.names("pods", "one")), 3)
        self.assertEqual(len(self.names("endpointslices", "one", "discovery.k8s.io")), 1)
        self.assertEqual(self.find("deployments", "web", "one", "apps")["status"]["unavailableReplicas"], 3)
        self.assertGreater(len(self.find("clusterroles", "admin", "", "rbac.authorization.k8s.io")["rules"]), 20)

    def end(self) -> None:
        """Discard the cluster."""
        self.stop()
        super().end()

    def check_deleted(self) -> None:
        """Check that the namespace is deleted."""
        self.assertIsNone(self.find("namespaces", "one"))
        for store in self.stores:
            if store.info.namespaced:
                self.assertEqual(store.cache.list("one/").records, [], str(store.info.group_resource))

    def test_undisturbed(self) -> None:
        """Objects of controllers are created, and deleted with the namespace. No delayed calls remain."""
        self.use()
        self.settle(60)
        self.check()
        before = self.memory.revision
        self.settle(60)
        self.assertEqual(self.memory.revision, before)
        self.remove("namespaces", "one")
        self.settle(60)
        self.check_deleted()

    def fails(self, often: int, number: int) -> bool:
        """Return whether a write fails."""
        return number % often == 0 and self.failing

    def test_faults(self) -> None:
        """With every tenth or third write of controllers failing, the result is the same."""
        for often in (10, 3):
            self.failing = False
            self.backend.fails = partial(self.fails, often)
            self.use()
            self.failing = True
            self.settle(120)
            self.failing = False
            self.check()
            self.remove("namespaces", "one")
            self.failing = True
            self.settle(300)
            self.check_deleted()
        self.assertGreater(self.backend.failed, 10)

    def test_killed(self) -> None:
        """With repeated kills after every few writes, the result is the same."""
        self.use()
        for _ in range(40):
            last = self.backend.commits + 3
            self.backend.fails = lambda number, last=last: number > last  # type: ignore[misc]
            self.settle(1)
            self.backend.fails = lambda number: False
            self.kill()
        self.settle(120)
        self.check()
        self.remove("namespaces", "one")
        for _ in range(20):
            last = self.backend.commits + 2
            self.backend.fails = lambda number, last=last: number > last  # type: ignore[misc]
            self.settle(1)
            self.backend.fails = lambda number: False
            self.kill()
        self.settle(300)
        self.check_deleted()
