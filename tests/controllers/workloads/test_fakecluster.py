"""Tests of all controllers together on simulated nodes: undisturbed, with failing writes, and with kills."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.times import use_clock
from kubetwist.controllers.fakeimages import FakeImages
from kubetwist.controllers.machinery.manager import ControllerManager
from kubetwist.controllers.machinery.selection import select_controllers
from tests.controllers.harness import ControllerTestCase
from tests.controllers.serviceaccounts.test_serviceaccounttokens import Config

NODES = ("pretend-nodes", "kube-scheduler", "node-lifecycle-controller", "taint-eviction-controller")
WANTED = ("*", "workloads", *NODES)


class ClusterConfig(Config):
    """Configuration of a server with simulated nodes."""

    kubernetes_version = "1.36"
    images = FakeImages()


class PretendClusterTests(ControllerTestCase):
    """A deployment, a job and a cron job, from creation to deletion."""

    admission = True

    def setUp(self) -> None:
        """Create the configuration and start all controllers."""
        self.config = ClusterConfig(options={"fake-nodes": 3})
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.all: Any = None
        self.begin()
        for name in ("kube-node-lease", "default"):
            self.make("namespaces", name)
        self.settle(30)
        self.addCleanup(self.stop)

    def begin(self) -> None:
        """Start all controllers."""
        self.all = ControllerManager(self.context, select_controllers(WANTED))
        self.all.start()
        self.settle()

    def stop(self) -> None:
        """Stop all controllers."""
        self.successResultOf(Deferred.fromCoroutine(self.all.stop()))

    def kill(self) -> None:
        """Kill the server, and start again with the stored objects."""
        for controller in self.all.controllers.values():
            for subscription in getattr(controller, "_registrations", ()):
                subscription.stop()
            for name in ("queue", "_own", "_left"):
                queue = getattr(controller, name, None)
                if queue is not None:
                    queue._stopped = True
        self.restart()
        self.begin()

    def use(self) -> None:
        """Create the objects of users."""
        pod: dict[str, Any] = {"containers": [{"name": "c", "image": "c"}]}
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"replicas": 6, "selector": {"matchLabels": labels}, "template": template}
        self.make("deployments", "web", "default", "apps", spec=spec)
        job = {"template": {"spec": {**pod, "restartPolicy": "Never"}}, "completions": 8, "parallelism": 3}
        self.make("jobs", "work", "default", "batch", spec=job)
        cron = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {**job, "completions": 1, "parallelism": 1}}}
        self.make("cronjobs", "often", "default", "batch", spec=cron)

    def check(self) -> None:
        """Check the expected state."""
        status = self.find("deployments", "web", "default", "apps")["status"]
        self.assertEqual((status["availableReplicas"], status["updatedReplicas"]), (6, 6))
        pods = [self.find("pods", name, "default") for name in self.names("pods", "default")]
        web = [pod for pod in pods if pod["metadata"]["labels"].get("app") == "web"]
        self.assertEqual([pod["status"]["phase"] for pod in web], ["Running"] * 6)
        self.assertEqual(len({pod["spec"]["nodeName"] for pod in web}), 3)
        self.assertEqual(len({pod["status"]["podIP"] for pod in web}), 6)
        status = self.find("jobs", "work", "default", "batch")["status"]
        self.assertEqual((status["succeeded"], status["conditions"][-1]["type"]), (8, "Complete"))
        self.assertEqual(sum(name.startswith("work-") for name in self.names("pods", "default")), 8)
        status = self.find("cronjobs", "often", "default", "batch")["status"]
        self.assertIn("lastSuccessfulTime", status)
        self.assertNotIn("active", status)

    def remove_all(self) -> None:
        """Delete the objects, and check that nothing remains."""
        for resource, name, group in (("deployments", "web", "apps"), ("cronjobs", "often", "batch")):
            self.remove(resource, name, "default", group, propagation="Background")
        self.remove("jobs", "work", "default", "batch", propagation="Foreground")

    def test_undisturbed(self) -> None:
        """Workloads run and finish, and everything is removed after their deletion."""
        self.use()
        self.settle(700)
        self.check()
        self.remove_all()
        self.settle(120)
        self.assertEqual((self.names("pods", "default"), self.names("jobs", "default", "batch")), ([], []))

    def test_faults(self) -> None:
        """With every tenth write failing, the result is the same."""
        self.use()
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(900)
        self.backend.fails = lambda number: False
        self.settle(120)
        self.check()
        self.remove_all()
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(600)
        self.assertEqual((self.names("pods", "default"), self.names("jobs", "default", "batch")), ([], []))

    def test_killed(self) -> None:
        """With a kill every few writes, the result is the same."""
        self.use()
        for count in (1, 2, 3, 5, 8, 13, 21, 34):
            start = self.backend.commits
            limit = start + count
            self.backend.fails = lambda number, limit=limit: number > limit  # type: ignore[misc]
            self.settle(1)
            self.backend.fails = lambda number: False
            self.kill()
        self.settle(900)
        self.check()
