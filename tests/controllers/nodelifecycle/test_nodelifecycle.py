"""
Tests for L{kubetwist.controllers.nodelifecycle.nodelifecycle} and L{kubetwist.controllers.nodelifecycle.tainteviction},
with simulated nodes.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.fakeimages import FakeImages
from kubetwist.controllers.fakekubelet.fakenodes import FakeNodes
from kubetwist.controllers.nodelifecycle.nodelifecycle import NodeLifecycleController
from kubetwist.controllers.nodelifecycle.tainteviction import TaintEvictionController
from tests.controllers.harness import ControllerTestCase

UNREACHABLE = "node.kubernetes.io/unreachable"


class NodeLifecycleTests(ControllerTestCase):
    """L{NodeLifecycleController} and L{TaintEvictionController}."""

    resources = ("namespaces", "pods", "nodes", "leases", "events")
    config = SimpleNamespace(options={"fake-nodes": 3}, kubernetes_version="1.36", images=FakeImages())

    def setUp(self) -> None:
        """Start the controllers, and create a pod."""
        super().setUp()
        for name in ("default", "kube-node-lease"):
            self.make("namespaces", name)
        self.start(FakeNodes, NodeLifecycleController, TaintEvictionController)
        self.settle(20)

    def pod(self, name: str, seconds: int | None = None, **spec: Any) -> None:
        """Create a pod on node 1, which tolerates the loss of its node for some seconds."""
        if seconds is not None:
            toleration = {"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}
            spec["tolerations"] = [toleration]
        spec = {"containers": [{"name": "c", "image": "c"}], "nodeName": "pretend-node-1", **spec}
        self.make("pods", name, "default", spec=spec)
        self.settle()

    def annotate(self, number: int, **annotations: str) -> None:
        """Replace the annotations of a node."""
        renamed = {f"kubetwist.dev/{key}": value for key, value in annotations.items()}
        self.change("nodes", f"pretend-node-{number}", lambda obj: obj["metadata"].update(annotations=renamed))
        self.settle()

    def conditions(self, number: int) -> dict[str, str]:
        """Return the conditions of a node."""
        node = self.find("nodes", f"pretend-node-{number}")
        return {one["type"]: one["status"] for one in node["status"]["conditions"]}

    def taints(self, number: int) -> list[str]:
        """Return the taints of a node."""
        taints = self.find("nodes", f"pretend-node-{number}")["spec"].get("taints") or ()
        return [f"{one['key'].rpartition('/')[2]}:{one['effect']}" for one in taints]

    def ready(self, name: str) -> str:
        """Return whether a pod is ready."""
        conditions = self.find("pods", name, "default")["status"]["conditions"]
        return next(one["status"] for one in conditions if one["type"] == "Ready")

    def phase(self, name: str) -> str:
        """Return the phase of a pod."""
        return str(self.find("pods", name, "default")["status"]["phase"])

    def reasons(self) -> set[str]:
        """Return the reasons of all events."""
        events = (self.find("events", name, "default") for name in self.names("events", "default"))
        return {event["reason"] for event in events}

    def test_loss(self) -> None:
        """A lost node becomes unreachable; its pods are evicted after the time that they tolerate."""
        self.pod("now")
        self.pod("later", 300)
        self.pod("never", tolerations=[{"operator": "Exists"}])
        self.annotate(1, lost="true")
        self.settle(45)
        self.assertEqual((self.conditions(1)["Ready"], self.ready("later"), self.taints(1)), ("True", "True", []))
        self.settle(25)
        self.assertEqual(set(self.conditions(1).values()), {"Unknown"})
        self.assertEqual(self.taints(1), ["unreachable:NoExecute", "unreachable:NoSchedule"])
        self.assertEqual((self.ready("later"), self.ready("never")), ("False", "False"))
        self.assertEqual((self.taints(0), self.conditions(0)["Ready"]), ([], "True"))
        deleted = self.find("pods", "now", "default")
        self.assertIn("deletionTimestamp", deleted["metadata"])
        self.assertEqual(deleted["status"]["conditions"][-1]["reason"], "DeletionByTaintManager")
        self.assertNotIn("deletionTimestamp", self.find("pods", "later", "default")["metadata"])
        self.settle(300)
        self.assertIn("deletionTimestamp", self.find("pods", "later", "default")["metadata"])
        self.settle(1000)
        self.assertNotIn("deletionTimestamp", self.find("pods", "never", "default")["metadata"])
        self.assertLessEqual({"NodeNotReady", "TaintManagerEviction"}, self.reasons())
        # Its kubelet stops deleted pods when it returns.
        self.annotate(1)
        self.assertEqual((self.names("pods", "default"), self.taints(1)), (["never"], []))
        self.assertEqual((self.conditions(1)["Ready"], self.ready("never")), ("True", "True"))

    def test_recovery(self) -> None:
        """If a node returns in time, its pods remain."""
        self.pod("a", 300)
        self.annotate(1, lost="true")
        self.settle(200)
        self.assertEqual(self.ready("a"), "False")
        self.annotate(1)
        self.assertEqual((self.ready("a"), self.taints(1), self.conditions(1)["Ready"]), ("True", [], "True"))
        self.settle(1000)
        self.assertNotIn("deletionTimestamp", self.find("pods", "a", "default")["metadata"])

    def test_all_lost(self) -> None:
        """If all nodes are lost, no pod is evicted until one returns."""
        self.pod("a")
        for number in range(3):
            self.annotate(number, lost="true")
        self.settle(600)
        self.assertEqual([self.taints(number) for number in range(3)], [["unreachable:NoSchedule"]] * 3)
        self.assertNotIn("deletionTimestamp", self.find("pods", "a", "default")["metadata"])
        self.annotate(0)
        self.assertEqual(self.taints(1), ["unreachable:NoSchedule", "unreachable:NoExecute"])
        self.assertIn("deletionTimestamp", self.find("pods", "a", "default")["metadata"])

    def test_jump(self) -> None:
        """A jump of the clock makes no node unreachable."""
        writes = self.backend.commits
        self.clock.advance(3600)
        self.settle(10)
        self.assertEqual([self.conditions(number)["Ready"] for number in range(3)], ["True"] * 3)
        self.assertEqual([self.taints(number) for number in range(3)], [[]] * 3)
        # Three statuses and some leases.
        self.assertLess(self.backend.commits - writes, 12)

    def test_pressure(self) -> None:
        """Under memory pressure, a node is tainted, and its kubelet evicts pods without resources."""
        self.pod("besteffort")
        self.pod("critical", priority=2_000_000_000)
        resources = {"requests": {"memory": "1Gi"}}
        self.pod("burstable", containers=[{"name": "c", "image": "c", "resources": resources}])
        self.settle(1)
        self.annotate(1, pressure="MemoryPressure, DiskPressure")
        expected = {"MemoryPressure": "True", "DiskPressure": "True", "PIDPressure": "False", "Ready": "True"}
        self.assertEqual(self.conditions(1), expected)
        self.assertEqual(self.taints(1), ["disk-pressure:NoSchedule", "memory-pressure:NoSchedule"])
        status = self.find("pods", "besteffort", "default")["status"]
        self.assertEqual((status["phase"], status["reason"]), ("Failed", "Evicted"))
        self.assertTrue(status["message"].startswith("The node was low on resource: memory. "))
        self.assertEqual(status["containerStatuses"][0]["state"]["terminated"]["exitCode"], 137)
        self.assertEqual(status["conditions"][-1]["reason"], "TerminationByKubelet")
        for name in ("burstable", "critical"):
            self.assertEqual(self.find("pods", name, "default")["status"]["phase"], "Running")
        # Later pods are rejected.
        self.pod("late")
        status = self.find("pods", "late", "default")["status"]
        self.assertEqual((status["phase"], status["reason"]), ("Failed", "Evicted"))
        message = "Pod was rejected: The node had condition: [MemoryPressure DiskPressure]. "
        self.assertEqual(status["message"], message)
        self.annotate(1)
        self.assertEqual((self.taints(1), self.conditions(1)["MemoryPressure"]), ([], "False"))
        self.assertIn("Evicted", self.reasons())

    def test_eviction_order(self) -> None:
        """Every ten seconds, a kubelet under pressure evicts the next pod: by priority, then by usage."""
        for name, priority, usage in (("high", 10, "9Gi"), ("small", 0, "1Gi"), ("large", 0, "2Gi")):
            annotations = {"kubetwist.dev/usage-ephemeral-storage": usage}
            spec = {"containers": [{"name": "c", "image": "c"}], "nodeName": "pretend-node-1", "priority": priority}
            self.make("pods", name, "default", spec=spec, metadata={"annotations": annotations})
        self.settle(1)
        self.annotate(1, pressure="DiskPressure")
        for expected in (["large"], ["large", "small"], ["high", "large", "small"]):
            found = [one for one in self.names("pods", "default") if self.phase(one) == "Failed"]
            self.assertEqual(found, expected)
            self.settle(10)

    def test_rate(self) -> None:
        """The nodes of a zone become evicting one after the other, as fast as the rate permits."""
        self.annotate(1, lost="true")
        self.annotate(2, lost="true")
        self.settle(60)
        evicting = ["unreachable:NoExecute", "unreachable:NoSchedule"]
        self.assertEqual((sorted(self.taints(1)), self.taints(2)), (evicting, ["unreachable:NoSchedule"]))
        self.settle(10)
        self.assertEqual(sorted(self.taints(2)), evicting)
        self.annotate(1)
        self.annotate(2)
        self.assertEqual((self.taints(1), self.taints(2)), ([], []))

    def test_cordon(self) -> None:
        """An unschedulable node is tainted."""
        self.change("nodes", "pretend-node-0", lambda obj: obj["spec"].update(unschedulable=True))
        self.settle()
        self.assertEqual(self.taints(0), ["unschedulable:NoSchedule"])

    def test_other_nodes(self) -> None:
        """The same rules are valid for nodes of other kubelets."""
        self.make("nodes", "other")
        self.settle(70)
        node = self.find("nodes", "other")
        self.assertEqual({one["reason"] for one in node["status"]["conditions"]}, {"NodeStatusNeverUpdated"})
        self.assertEqual([one["key"] for one in node["spec"]["taints"]], [UNREACHABLE] * 2)
        timestamp = format_time(self.clock.seconds())
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": timestamp, "reason": "KubeletReady"}
        status = {"conditions": [ready]}
        self.change("nodes", "other", lambda obj: obj.update(status=status), subresource="status")
        self.settle()
        self.assertNotIn("taints", self.find("nodes", "other")["spec"])
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 40}
        self.make("leases", "other", "kube-node-lease", "coordination.k8s.io", spec=spec)
        self.settle(45)
        self.change(
            "leases",
            "other",
            lambda obj: obj["spec"].update(leaseTransitions=1),
            "kube-node-lease",
            "coordination.k8s.io",
        )
        self.settle(45)
        self.assertNotIn("taints", self.find("nodes", "other")["spec"])
        self.settle(20)
        self.assertEqual(len(self.find("nodes", "other")["spec"]["taints"]), 2)

    def test_faults(self) -> None:
        """With failing writes, the result is the same."""
        self.pod("a", 60)
        self.annotate(1, lost="true")
        self.backend.fails = lambda number: number % 3 == 0
        self.settle(400)
        self.backend.fails = lambda number: False
        self.settle(30)
        self.assertEqual(sorted(self.taints(1)), ["unreachable:NoExecute", "unreachable:NoSchedule"])
        self.assertIn("deletionTimestamp", self.find("pods", "a", "default")["metadata"])
