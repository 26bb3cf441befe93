"""Tests for L{kubetwist.controllers.workloads.scheduler} and L{kubetwist.controllers.workloads.scheduling}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import use_clock
from kubetwist.controllers.workloads.scheduler import Scheduler
from tests.controllers.harness import ControllerTestCase

NO_VICTIMS = "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
NO_HELP = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"


class SchedulerTests(ControllerTestCase):
    """Scheduling of pods."""

    resources = ("namespaces", "pods", "nodes", "events")

    def setUp(self) -> None:
        """Create a namespace, and two nodes with 2 CPUs."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.make("namespaces", "default")
        for name in ("a", "b"):
            self.node(name)

    def node(self, name: str, cpu: str = "2", pods: str = "10", **spec: Any) -> None:
        """Create a node."""
        labels = {"kubernetes.io/hostname": name, "zone": f"z{name}"}
        allocatable = {"cpu": cpu, "memory": "8Gi", "pods": pods}
        self.make("nodes", name, metadata={"labels": labels}, spec=spec, status={"allocatable": allocatable})

    def pod(self, name: str, cpu: str = "", labels: Any = None, **spec: Any) -> str:
        """Create a pod, and return the node that it is bound to."""
        container: dict[str, Any] = {"name": "c", "image": "c"}
        if cpu:
            container["resources"] = {"requests": {"cpu": cpu}}
        if "ports" in spec:
            container["ports"] = spec.pop("ports")
        self.make("pods", name, "default", metadata={"labels": labels or {}}, spec={"containers": [container], **spec})
        self.settle()
        return self.node_of(name)

    def node_of(self, name: str) -> str:
        """Return the node of a pod."""
        node: str = self.find("pods", name, "default")["spec"].get("nodeName") or ""
        return node

    def reason_of(self, name: str) -> str:
        """Return the reason why a pod is unschedulable."""
        (condition,) = (
            one for one in self.find("pods", name, "default")["status"]["conditions"] if one["type"] == "PodScheduled"
        )
        self.assertEqual((condition["status"], condition["reason"]), ("False", "Unschedulable"))
        message: str = condition["message"]
        return message

    def events(self, name: str) -> list[tuple[str, str]]:
        """Return the types and reasons of a pod's events."""
        found = [self.find("events", one, "default") for one in self.names("events", "default")]
        return [(one["reason"], one["message"]) for one in found if one["involvedObject"]["name"] == name]

    def test_spread(self) -> None:
        """Pods are bound to the node with the most free resources, with condition and event."""
        self.start(Scheduler)
        self.assertEqual([self.pod(f"p{number}") for number in range(4)], ["a", "b", "a", "b"])
        self.assertEqual(self.pod("big", cpu="1"), "a")
        self.assertEqual(self.pod("next"), "b")
        (condition,) = self.find("pods", "p0", "default")["status"]["conditions"]
        self.assertEqual((condition["type"], condition["status"]), ("PodScheduled", "True"))
        self.assertEqual(self.events("p0"), [("Scheduled", "Successfully assigned default/p0 to a")])

    def test_other_scheduler(self) -> None:
        """Pods of other schedulers, and pods with scheduling gates, are not scheduled."""
        self.start(Scheduler)
        self.assertEqual(self.pod("theirs", schedulerName="mine"), "")
        self.assertEqual(self.pod("gated", schedulingGates=[{"name": "x.io/wait"}]), "")
        self.change("pods", "gated", lambda pod: pod["spec"].pop("schedulingGates"), "default")
        self.settle()
        self.assertEqual(self.node_of("gated"), "a")

    def test_resources(self) -> None:
        """An unschedulable pod has the reason in its condition and is bound when a node fits."""
        self.start(Scheduler)
        self.pod("one", cpu="1500m")
        self.pod("two", cpu="1500m")
        self.assertEqual(self.pod("three", cpu="1"), "")
        self.assertEqual(self.reason_of("three"), f"0/2 nodes are available: 2 Insufficient cpu. {NO_VICTIMS}")
        self.assertEqual(self.events("three"), [("FailedScheduling", self.reason_of("three"))])
        self.assertEqual(self.pod("huge", cpu="3"), "")
        self.assertEqual(self.reason_of("huge"), f"0/2 nodes are available: 2 Insufficient cpu. {NO_HELP}")
        self.remove("pods", "one", "default", grace=0)
        self.settle(2)
        self.assertEqual((self.node_of("three"), self.node_of("huge")), ("a", ""))
        self.node("c", cpu="4")
        self.settle(2)
        self.assertEqual(self.node_of("huge"), "c")

    def test_terminated_pods(self) -> None:
        """Resources of terminated pods are released."""
        self.start(Scheduler)
        for name in ("one", "two"):
            self.pod(name, cpu="2")
        self.change(
            "pods", "two", lambda pod: pod.update(status={"phase": "Succeeded"}), "default", subresource="status"
        )
        self.settle(2)
        self.assertEqual(self.pod("three", cpu="2"), "b")

    def test_many_pods(self) -> None:
        """The number of pods on a node is limited by its capacity."""
        self.node("small", cpu="100", pods="1")
        self.start(Scheduler)
        self.pod("one", nodeSelector={"kubernetes.io/hostname": "small"})
        self.assertEqual(self.pod("two", nodeSelector={"kubernetes.io/hostname": "small"}), "")
        self.assertIn(
            "0/3 nodes are available: 1 Too many pods, 2 node(s) didn't match Pod's node affinity/selector. ",
            self.reason_of("two"),
        )

    def test_no_nodes(self) -> None:
        """Without nodes, the condition has the reason."""
        for name in ("a", "b"):
            self.remove("nodes", name)
        self.start(Scheduler)
        self.pod("p")
        self.assertEqual(self.reason_of("p"), "no nodes available to schedule pods")

    def test_affinity_to_nodes(self) -> None:
        """Required node affinity is respected: terms are alternatives, and all expressions of a term must match."""
        self.start(Scheduler)
        cases = (
            ({"key": "zone", "operator": "In", "values": ["zb"]}, "b"),
            ({"key": "zone", "operator": "NotIn", "values": ["za"]}, "b"),
            ({"key": "other", "operator": "Exists"}, ""),
            ({"key": "other", "operator": "DoesNotExist"}, "a"),
        )
        for number, (expression, node) in enumerate(cases):
            terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            found = self.pod(f"p{number}", affinity={"nodeAffinity": {AFFINITY: terms}})
            self.assertEqual(found, node, expression)
        fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
        self.assertEqual(self.pod("f", affinity={"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": [fields]}}}), "b")

    def test_taints(self) -> None:
        """Tainted and unschedulable nodes get only pods with tolerations."""
        taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
        self.change("nodes", "a", lambda node: node["spec"].update(taints=[taint]))
        self.change("nodes", "b", lambda node: node["spec"].update(unschedulable=True))
        self.start(Scheduler)
        self.assertEqual(self.pod("p"), "")
        self.assertEqual(
            self.reason_of("p"),
            "0/2 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable. " + NO_HELP,
        )
        self.assertEqual(self.pod("t", tolerations=[{"key": "k", "operator": "Equal", "value": "v"}]), "a")
        self.assertEqual(self.pod("e", tolerations=[{"operator": "Exists"}]), "b")
        self.change("nodes", "b", lambda node: node["spec"].pop("unschedulable"))
        self.settle(2)
        self.assertEqual(self.node_of("p"), "b")

    def test_host_ports(self) -> None:
        """Two pods with the same host port are on different nodes."""
        self.start(Scheduler)
        ports = [{"containerPort": 80, "hostPort": 80}]
        self.assertEqual([self.pod(f"p{number}", ports=ports) for number in range(3)], ["a", "b", ""])
        self.assertIn("2 node(s) didn't have free ports for the requested pod ports.", self.reason_of("p2"))

    def test_pod_affinity(self) -> None:
        """Pod affinity and anti-affinity are respected, also anti-affinity of existing pods."""
        self.start(Scheduler)
        term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "zone"}
        far = {"podAntiAffinity": {AFFINITY: [term]}}
        near = {"podAffinity": {AFFINITY: [term]}}
        self.assertEqual(self.pod("lonely", affinity=near), "")
        self.assertIn("2 node(s) didn't match pod affinity rules.", self.reason_of("lonely"))
        self.assertEqual(self.pod("x0", labels={"app": "x"}, affinity=far), "a")
        self.settle(2)
        self.assertEqual(self.node_of("lonely"), "a")
        self.assertEqual(self.pod("x1", labels={"app": "x"}, affinity=far), "b")
        self.assertEqual(self.pod("x2", labels={"app": "x"}, affinity=far), "")
        self.assertIn("2 node(s) didn't match pod anti-affinity rules.", self.reason_of("x2"))
        self.assertEqual(self.pod("x3", labels={"app": "x"}), "")
        self.assertIn("2 node(s) didn't satisfy existing pods anti-affinity rules.", self.reason_of("x3"))

    def test_topology_spread(self) -> None:
        """A topology spread constraint limits the skew between zones."""
        self.start(Scheduler)
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        self.pod("filler", cpu="1900m", nodeSelector={"zone": "zb"})
        placed = [
            self.pod(f"p{number}", "500m", labels={"app": "x"}, topologySpreadConstraints=[constraint])
            for number in range(2)
        ]
        self.assertEqual(placed, ["a", ""])
        self.assertIn(
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints. ",
            self.reason_of("p1"),
        )

    def test_faults(self) -> None:
        """With every tenth write failing, all pods are bound in the end."""
        self.start(Scheduler)
        for number in range(15):
            self.make("pods", f"p{number}", "default", spec={"containers": [{"name": "c", "image": "c"}]})
        self.backend.fails = lambda number: number % 10 == 0
        self.settle(60)
        self.assertEqual({self.node_of(f"p{number}") for number in range(15)}, {"a", "b"})

    def test_restart(self) -> None:
        """After a kill bound pods are counted, and pending pods are scheduled."""
        self.start(Scheduler)
        self.pod("one", cpu="2")
        self.pod("two", cpu="2")
        self.pod("three", cpu="1")
        self.restart(Scheduler)
        self.assertEqual(self.node_of("three"), "")
        self.remove("pods", "two", "default", grace=0)
        self.settle(2)
        self.assertEqual(self.node_of("three"), "b")
