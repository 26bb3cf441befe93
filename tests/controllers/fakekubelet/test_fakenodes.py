"""Tests for L{kubetwist.controllers.fakekubelet.fakenodes} and L{kubetwist.controllers.fakekubelet.podstatus}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kubetwist.api.times import seconds_since_epoch, use_clock
from kubetwist.controllers.fakeimages import FakeImages
from kubetwist.controllers.fakekubelet.fakenodes import FakeNodes
from tests.controllers.harness import ControllerTestCase

SPEC = {"containers": [{"name": "c", "image": "c:1"}]}


class PretendNodeTests(ControllerTestCase):
    """Simulated nodes and their pods."""

    resources = ("namespaces", "pods", "nodes", "leases", "events")
    config = SimpleNamespace(options={"fake-nodes": 3}, kubernetes_version="1.36", images=FakeImages())

    def setUp(self) -> None:
        """Create namespaces."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.make("namespaces", "default")
        self.make("namespaces", "kube-node-lease")

    def pod(self, name: str = "a", node: str = "pretend-node-1", **parts: Any) -> Any:
        """Create a pod on a node, and return its state after the controllers have run."""
        spec = {**SPEC, "nodeName": node, **parts.pop("spec", {})}
        self.make("pods", name, "default", spec=spec, **parts)
        self.settle()
        return self.current(name)

    def current(self, name: str = "a") -> Any:
        """Return the current pod."""
        return self.find("pods", name, "default")

    def conditions(self, name: str = "a") -> dict[str, str]:
        """Return the conditions of a pod."""
        return {one["type"]: one["status"] for one in self.current(name)["status"]["conditions"]}

    def test_nodes(self) -> None:
        """The requested number of nodes is registered: ready, with addresses, resources and a pod network."""
        self.start(FakeNodes)
        self.assertEqual(self.names("nodes"), ["pretend-node-0", "pretend-node-1", "pretend-node-2"])
        node = self.find("nodes", "pretend-node-1")
        status = node["status"]
        ready = {one["type"]: one["status"] for one in status["conditions"]}
        self.assertEqual(
            ready, {"MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False", "Ready": "True"}
        )
        self.assertEqual(node["metadata"]["labels"]["kubernetes.io/hostname"], "pretend-node-1")
        self.assertEqual(node["spec"]["podCIDR"], "10.244.1.0/24")
        self.assertEqual(status["addresses"][0], {"type": "InternalIP", "address": "172.18.0.3"})
        self.assertEqual(status["allocatable"]["pods"], "110")

    def test_leases(self) -> None:
        """Each node renews its lease every ten seconds and its status every five minutes."""
        self.start(FakeNodes)

        def renewed() -> str:
            lease = self.find("leases", "pretend-node-0", "kube-node-lease", "coordination.k8s.io")
            self.assertEqual(lease["spec"]["holderIdentity"], "pretend-node-0")
            text: str = lease["spec"]["renewTime"]
            return text

        first, first_heartbeat = (
            renewed(),
            self.find("nodes", "pretend-node-0")["status"]["conditions"][-1]["lastHeartbeatTime"],
        )
        self.settle(30)
        self.assertEqual(seconds_since_epoch(renewed()) - seconds_since_epoch(first), 30)
        condition = self.find("nodes", "pretend-node-0")["status"]["conditions"][-1]
        self.assertEqual(condition["lastHeartbeatTime"], first_heartbeat)
        self.settle(300)
        condition = self.find("nodes", "pretend-node-0")["status"]["conditions"][-1]
        self.assertEqual(
            seconds_since_epoch(condition["lastHeartbeatTime"]) - seconds_since_epoch(first_heartbeat), 300
        )
        self.assertEqual(condition["lastTransitionTime"], first_heartbeat)

    def test_deleted_node(self) -> None:
        """A deleted node is registered again."""
        self.start(FakeNodes)
        self.remove("nodes", "pretend-node-0")
        self.settle()
        self.assertEqual(len(self.names("nodes")), 3)
        self.assertEqual(self.find("nodes", "pretend-node-0")["status"]["conditions"][-1]["status"], "True")

    def test_runs(self) -> None:
        """A pod on a simulated node runs immediately, is ready, and has addresses of that node."""
        self.start(FakeNodes)
        pod = self.pod()
        status = pod["status"]
        self.assertEqual((status["phase"], status["podIP"], status["hostIP"]), ("Running", "10.244.1.2", "172.18.0.3"))
        self.assertEqual(status["podIPs"], [{"ip": "10.244.1.2"}])
        self.assertEqual(
            self.conditions(),
            dict.fromkeys(
                ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
            ),
        )
        (container,) = status["containerStatuses"]
        self.assertEqual((container["ready"], container["started"], container["restartCount"]), (True, True, 0))
        self.assertIn("running", container["state"])
        self.assertEqual(self.pod("b")["status"]["podIP"], "10.244.1.3")
        host = self.pod("h", spec={"hostNetwork": True})
        self.assertEqual(host["status"]["podIP"], "172.18.0.3")

    def test_other_nodes(self) -> None:
        """Pods on other nodes are not changed."""
        self.make("nodes", "real")
        self.start(FakeNodes)
        self.assertEqual(self.pod(node="real")["status"]["phase"], "Pending")

    def test_init_containers(self) -> None:
        """Init containers have completed when a pod runs. Sidecars run beside it."""
        self.start(FakeNodes)
        side = {"name": "s", "image": "s", "restartPolicy": "Always"}
        pod = self.pod(spec={"initContainers": [{"name": "i", "image": "i"}, side]})
        first, second = pod["status"]["initContainerStatuses"]
        self.assertEqual(first["state"]["terminated"]["exitCode"], 0)
        self.assertIn("running", second["state"])

    def test_readiness(self) -> None:
        """A pod becomes ready after a probe's initialDelaySeconds."""
        self.start(FakeNodes)
        probe = {"httpGet": {"port": 80}, "initialDelaySeconds": 5}
        self.pod(spec={"containers": [{"name": "c", "image": "c", "readinessProbe": probe}]})
        self.assertEqual(self.conditions()["Ready"], "False")
        self.settle(5)
        self.assertEqual(self.conditions()["Ready"], "True")

    def test_readiness_gates(self) -> None:
        """A readiness gate keeps a pod from being ready until its condition is true."""
        self.start(FakeNodes)
        pod = self.pod(spec={"readinessGates": [{"conditionType": "example.com/up"}]})
        (ready,) = (one for one in pod["status"]["conditions"] if one["type"] == "Ready")
        self.assertEqual((ready["status"], ready["reason"]), ("False", "ReadinessGatesNotReady"))
        self.assertEqual(
            ready["message"], 'corresponding condition of pod readiness gate "example.com/up" does not exist.'
        )
        up = {"type": "example.com/up", "status": "True"}
        self.change("pods", "a", lambda obj: obj["status"]["conditions"].append(up), "default", subresource="status")
        self.settle()
        self.assertEqual((self.conditions()["Ready"], self.conditions()["example.com/up"]), ("True", "True"))

    def test_annotations(self) -> None:
        """A pod that is not restarted terminates as its annotations define."""
        self.start(FakeNodes)
        annotations = {"kubetwist.dev/run-seconds": "20", "kubetwist.dev/exit-code": "3"}
        self.pod(metadata={"annotations": annotations}, spec={"restartPolicy": "Never"})
        self.settle(19)
        self.assertEqual(self.current()["status"]["phase"], "Running")
        self.settle(1)
        status = self.current()["status"]
        self.assertEqual(status["phase"], "Failed")
        ended = status["containerStatuses"][0]["state"]["terminated"]
        self.assertEqual((ended["exitCode"], ended["reason"]), (3, "Error"))
        self.assertEqual(seconds_since_epoch(ended["finishedAt"]) - seconds_since_epoch(ended["startedAt"]), 20)

    def test_images(self) -> None:
        """Images called true and false exit with 0 and 1. The image pull-error cannot be pulled."""
        self.start(FakeNodes)
        for image, phase in (("x.io/true:1", "Succeeded"), ("false", "Failed"), ("x/pull-error", "Pending")):
            name = image.replace("/", "-").replace(":", "-")
            self.pod(name, spec={"containers": [{"name": "c", "image": image}], "restartPolicy": "Never"})
            self.settle(1)
            self.assertEqual(self.current(name)["status"]["phase"], phase)

    def test_restarts(self) -> None:
        """Containers that exit are restarted with increasing backoff."""
        self.start(FakeNodes)
        annotations = {"kubetwist.dev/run-seconds": "1", "kubetwist.dev/exit-code": "1,0"}
        self.pod(metadata={"annotations": annotations}, spec={"restartPolicy": "OnFailure"})
        self.settle(1)
        (status,) = self.current()["status"]["containerStatuses"]
        self.assertEqual(status["state"]["waiting"]["reason"], "CrashLoopBackOff")
        self.assertEqual(self.conditions()["Ready"], "False")
        self.settle(10)
        (status,) = self.current()["status"]["containerStatuses"]
        self.assertEqual((status["restartCount"], status["lastState"]["terminated"]["exitCode"]), (1, 1))
        self.settle(1)
        self.assertEqual(self.current()["status"]["phase"], "Succeeded")

    def test_deadline(self) -> None:
        """A pod that is active longer than its deadline fails."""
        self.start(FakeNodes)
        self.pod(spec={"activeDeadlineSeconds": 7})
        self.settle(7)
        status = self.current()["status"]
        self.assertEqual((status["phase"], status["reason"]), ("Failed", "DeadlineExceeded"))

    def test_deletion(self) -> None:
        """A deleted pod terminates within its grace period, and is removed."""
        self.start(FakeNodes)
        self.pod()
        self.remove("pods", "a", "default")
        self.settle()
        self.assertIsNone(self.current())
        self.pod("slow", metadata={"annotations": {"kubetwist.dev/stop-seconds": "12"}})
        self.remove("pods", "slow", "default")
        self.settle(11)
        self.assertEqual(self.current("slow")["status"]["phase"], "Running")
        self.settle(1)
        self.assertIsNone(self.current("slow"))
        self.pod("held", metadata={"annotations": {"kubetwist.dev/stop-seconds": "99"}, "finalizers": ["x.io/f"]})
        self.remove("pods", "held", "default", grace=5)
        self.settle(6)
        held = self.current("held")
        self.assertEqual((held["status"]["phase"], held["metadata"]["deletionGracePeriodSeconds"]), ("Failed", 0))

    def test_addresses_return(self) -> None:
        """The address of a deleted pod can be reused."""
        controller = self.start(FakeNodes)
        for number in range(300):
            name = f"p{number}"
            self.pod(name)
            self.assertTrue(self.current(name)["status"]["podIP"].startswith("10.244.1."))
            self.remove("pods", name, "default", grace=0)
        self.assertEqual(len(controller.nodes["pretend-node-1"]._used), 0)

    def test_faults(self) -> None:
        """With every tenth write failing, all pods run and terminate in the end."""
        self.backend.fails = lambda number: number % 10 == 0
        self.start(FakeNodes)
        self.settle(5)
        self.backend.fails = lambda number: False
        for number in range(30):
            self.make("pods", f"p{number}", "default", spec={**SPEC, "nodeName": f"pretend-node-{number % 3}"})
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(60)
        self.assertEqual({self.current(name)["status"]["phase"] for name in self.names("pods", "default")}, {"Running"})
        addresses = {self.current(name)["status"]["podIP"] for name in self.names("pods", "default")}
        self.assertEqual(len(addresses), 30)
        self.backend.fails = lambda number: False
        for name in self.names("pods", "default"):
            self.remove("pods", name, "default")
            self.backend.fails = lambda number: number % 3 == 0
            self.settle(1)
            self.backend.fails = lambda number: False
        self.settle(60)
        self.assertEqual(self.names("pods", "default"), [])

    def test_restart(self) -> None:
        """After a kill pods keep their addresses, and surplus nodes are deleted."""
        self.start(FakeNodes)
        annotations = {"kubetwist.dev/run-seconds": "20"}
        before = self.pod(metadata={"annotations": annotations}, spec={"restartPolicy": "Never"})
        self.pod("lost", node="pretend-node-2")
        self.settle(5)
        self.config = SimpleNamespace(options={"fake-nodes": 2}, kubernetes_version="1.36", images=FakeImages())
        self.restart(FakeNodes)
        self.assertEqual(self.names("nodes"), ["pretend-node-0", "pretend-node-1"])
        self.assertEqual(self.current(), before)
        self.assertNotEqual(self.pod("b")["status"]["podIP"], before["status"]["podIP"])
        self.settle(15)
        self.assertEqual(self.current()["status"]["phase"], "Succeeded")
        self.assertIsNone(self.current("lost"))
