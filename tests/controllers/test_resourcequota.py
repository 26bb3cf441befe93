"""Tests for L{kubetwist.controllers.resourcequota}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.controllers.resourcequota import (
    RESYNC,
    ResourceQuotaController,
)
from tests.controllers.harness import ControllerTestCase

CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}


class ResourceQuotaControllerTests(ControllerTestCase):
    """Usage of quotas."""

    resources = (
        "namespaces",
        "resourcequotas",
        "pods",
        "services",
        "persistentvolumeclaims",
        "configmaps",
        "serviceaccounts",
        "deployments",
    )
    admission = True

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.make("namespaces", "default")
        self.make("serviceaccounts", "default", "default")

    def pod(self, name: str, **spec: Any) -> None:
        """Create a pod that requests half a CPU."""
        self.make("pods", name, "default", spec={"containers": [CONTAINER], **spec})

    def quota(self, hard: dict[str, str], name: str = "q", **spec: Any) -> None:
        """Create a quota."""
        self.make("resourcequotas", name, "default", spec={"hard": hard, **spec})

    def used(self, name: str = "q") -> Any:
        """Return the used resources of a quota."""
        return (self.find("resourcequotas", name, "default").get("status") or {}).get("used")

    def test_first_count(self) -> None:
        """A new quota has the usage of existing objects, and its limits are in status.hard."""
        self.pod("one")
        self.pod("two")
        self.make("configmaps", "c", "default")
        self.start(ResourceQuotaController)
        hard = {
            "pods": "2",
            "requests.cpu": "4",
            "memory": "8Gi",
            "count/configmaps": "3",
            "count/deployments.apps": "1",
        }
        self.quota(hard)
        self.settle()
        self.assertEqual(
            self.used(),
            {
                "pods": "2",
                "requests.cpu": "1",
                "memory": "2Gi",
                "count/configmaps": "1",
                "count/deployments.apps": "0",
            },
        )
        self.assertEqual(self.find("resourcequotas", "q", "default")["status"]["hard"], hard)
        self.failureResultOf(
            Deferred.fromCoroutine(
                self.user.create(
                    "", "pods", {"metadata": {"name": "x", "namespace": "default"}, "spec": {"containers": [CONTAINER]}}
                )
            )
        )

    def test_charges(self) -> None:
        """Usage that admission charged is not counted twice, and is given back when the object is deleted."""
        self.start(ResourceQuotaController)
        self.quota({"pods": "5", "requests.cpu": "4", "configmaps": "9"})
        self.settle()
        self.pod("one")
        self.make("configmaps", "c", "default")
        self.settle(RESYNC + 1)
        self.assertEqual(self.used(), {"pods": "1", "requests.cpu": "500m", "configmaps": "1"})
        self.remove("pods", "one", "default", grace=0)
        self.settle()
        self.assertEqual(self.used(), {"pods": "0", "requests.cpu": "0", "configmaps": "1"})

    def test_unchanged(self) -> None:
        """An unchanged usage is not written."""
        self.start(ResourceQuotaController)
        self.quota({"pods": "5"})
        self.settle()
        before = self.find("resourcequotas", "q", "default")["metadata"]["resourceVersion"]
        self.settle(RESYNC * 3)
        self.assertEqual(self.find("resourcequotas", "q", "default")["metadata"]["resourceVersion"], before)

    def test_shrinking(self) -> None:
        """Terminated pods use nothing, and changed services use less."""
        self.start(ResourceQuotaController)
        self.quota({"pods": "5", "services.nodeports": "3", "services": "3"})
        self.settle()
        self.pod("one")
        ports = [{"name": "a", "port": 1}, {"name": "b", "port": 2}]
        self.make("services", "s", "default", spec={"type": "NodePort", "ports": ports, "selector": {"a": "b"}})
        self.settle()
        self.assertEqual(self.used(), {"pods": "1", "services.nodeports": "2", "services": "1"})
        self.change(
            "pods", "one", lambda pod: pod.update(status={"phase": "Succeeded"}), "default", subresource="status"
        )

        def smaller(service: Any) -> None:
            service["spec"]["ports"] = service["spec"]["ports"][:1]

        self.change("services", "s", smaller, "default")
        self.settle()
        self.assertEqual(self.used(), {"pods": "0", "services.nodeports": "1", "services": "1"})

    def test_scopes(self) -> None:
        """A quota with scopes counts matching objects only."""
        self.start(ResourceQuotaController)
        self.pod("one")
        self.pod("two", activeDeadlineSeconds=5)
        self.quota({"pods": "5"}, scopes=["Terminating"])
        self.quota({"pods": "5"}, name="n", scopes=["NotTerminating", "BestEffort"])
        self.settle()
        self.assertEqual((self.used(), self.used("n")), ({"pods": "1"}, {"pods": "0"}))

    def test_limits_change(self) -> None:
        """Usage is added for new limits, and removed for deleted limits."""
        self.start(ResourceQuotaController)
        self.pod("one")
        self.quota({"pods": "5"})
        self.settle()
        self.change(
            "resourcequotas",
            "q",
            lambda quota: quota["spec"].update(hard={"count/pods": "5", "requests.example.com/gpu": "1"}),
            "default",
        )
        self.settle()
        self.assertEqual(self.used(), {"count/pods": "1", "requests.example.com/gpu": "0"})

    def test_foreign_changes(self) -> None:
        """A wrong usage is corrected within five minutes."""
        self.start(ResourceQuotaController)
        self.quota({"pods": "5"})
        self.settle()
        self.change(
            "resourcequotas",
            "q",
            lambda quota: quota["status"].update(used={"pods": "4"}),
            "default",
            subresource="status",
        )
        self.settle(RESYNC + 1)
        self.assertEqual(self.used(), {"pods": "0"})

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, the usage is correct in the end."""
        self.start(ResourceQuotaController)
        self.backend.fails = lambda number: number % 10 == 0
        for number in range(12):
            try:
                self.quota({"count/configmaps": "50"}, name=f"q{number}")
                self.make("configmaps", f"c{number}", "default")
            except self.failureException:
                continue
        self.settle(60)
        there = str(len(self.names("configmaps", "default")))
        for name in self.names("resourcequotas"):
            self.assertEqual(self.used(name), {"count/configmaps": there}, name)
        for subscription in self.running[0]._registrations:
            subscription.stop()
        self.backend.fails = lambda number: False
        self.remove("configmaps", "c0", "default")
        self.restart(ResourceQuotaController)
        self.settle(1)
        for name in self.names("resourcequotas"):
            self.assertEqual(self.used(name), {"count/configmaps": str(int(there) - 1)}, name)
