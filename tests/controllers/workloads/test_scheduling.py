"""Tests for L{kubetwist.controllers.workloads.scheduling}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.workloads.scheduling import NodeInfo, PodInfo, ScheduleResult, new_pod_info, schedule_pod


def node(name: str, cpu: str = "4", spec: Any = None, **labels: str) -> NodeInfo:
    """Return an empty node."""
    load = NodeInfo(name)
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "2"}
    load.set_node(
        {"metadata": {"name": name, "labels": labels}, "spec": spec or {}, "status": {"allocatable": allocatable}}
    )
    return load


def pod_info(name: str, cpu: str = "1", port: int = 0, labels: Any = None, **spec: Any) -> PodInfo:
    """Return a pod with requests."""
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": [{"hostPort": port}]}
    meta = {"name": name, "namespace": "ns", "labels": labels or {}}
    return new_pod_info(f"ns/{name}", {"metadata": meta, "spec": {"containers": [container], **spec}})


def near(app: str, topology: str = "zone") -> dict[str, Any]:
    """Return an affinity term."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology}
    return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}


class SchedulePodTests(SynchronousTestCase):
    """Tests for L{schedule_pod}."""

    def assert_unschedulable(self, decision: ScheduleResult, *why: str) -> None:
        """Assert that no node fits, with the reasons."""
        self.assertEqual(decision.node, "")
        for text in why:
            self.assertIn(text, decision.message)

    def test_room(self) -> None:
        """A pod is scheduled to the node with the most free resources, or to none until resources are released."""
        small, large = node("a", "2"), node("b", "4")
        self.assertEqual(schedule_pod(pod_info("p"), [small, large]).node, "b")
        large.add(pod_info("q", "4"))
        self.assertEqual(schedule_pod(pod_info("p"), [small, large]).node, "a")
        message = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        self.assert_unschedulable(
            schedule_pod(pod_info("p"), [large]), f"{message}1 No preemption victims found for incoming pod."
        )
        self.assert_unschedulable(
            schedule_pod(pod_info("p", "5"), [large]), f"{message}1 Preemption is not helpful for scheduling."
        )
        large.remove("ns/q")
        self.assertEqual(schedule_pod(pod_info("p"), [large]).node, "b")

    def test_many_pods(self) -> None:
        """A node takes no more pods than its capacity. A pod counts once."""
        one = node("a")
        for name in ("p", "p", "q"):
            self.assertEqual(schedule_pod(pod_info("x"), [one]).node, "a")
            one.add(pod_info(name))
        self.assert_unschedulable(schedule_pod(pod_info("x"), [one]), "1 Too many pods")

    def test_none(self) -> None:
        """Without nodes no pod can be scheduled."""
        self.assert_unschedulable(schedule_pod(pod_info("p"), []), "no nodes available to schedule pods")

    def test_taints(self) -> None:
        """A pod is scheduled to a tainted node only with a toleration."""
        tainted = node("a", spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
        self.assert_unschedulable(schedule_pod(pod_info("p"), [tainted]), "1 node(s) had untolerated taint(s)")
        tolerant = pod_info("p", tolerations=[{"key": "k", "operator": "Exists"}])
        self.assertEqual(schedule_pod(tolerant, [tainted]).node, "a")
        self.assert_unschedulable(
            schedule_pod(tolerant, [node("a", spec={"unschedulable": True})]), "1 node(s) were unschedulable"
        )
        required_anti_affinity = node("a", spec={"taints": [{"key": "k", "effect": "PreferNoSchedule"}]})
        self.assertEqual(schedule_pod(pod_info("p"), [required_anti_affinity]).node, "a")
        self.assertEqual(schedule_pod(pod_info("p"), [required_anti_affinity, node("b", "2")]).node, "b")

    def test_ports(self) -> None:
        """A host port can be used once per node."""
        one = node("a")
        one.add(pod_info("p", port=80))
        self.assert_unschedulable(schedule_pod(pod_info("q", port=80), [one]), "1 node(s) didn't have free ports")
        self.assertEqual(schedule_pod(pod_info("q", port=81), [one]).node, "a")

    def test_affinity(self) -> None:
        """A pod with affinity is scheduled near matching pods. The first pod of a group can run anywhere."""
        nodes = [node("a", zone="1"), node("b", zone="2"), node("c", "8")]
        first = pod_info("p", labels={"app": "x"}, affinity={"podAffinity": near("x")})
        self.assertIn(schedule_pod(first, nodes).node, ("a", "b"))
        nodes[1].add(first)
        second = pod_info("q", labels={"app": "x"}, affinity={"podAffinity": near("x")})
        self.assertEqual(schedule_pod(second, nodes).node, "b")
        stranger = pod_info("s", affinity={"podAffinity": near("y")})
        self.assert_unschedulable(schedule_pod(stranger, nodes), "3 node(s) didn't match pod affinity rules")

    def test_anti_affinity(self) -> None:
        """A pod is scheduled neither near pods that it excludes, nor near pods that exclude it."""
        nodes = [node("a", "8", zone="1"), node("b", zone="2")]
        nodes[0].add(pod_info("p", labels={"app": "x"}, affinity={"podAntiAffinity": near("x")}))
        self.assertEqual(schedule_pod(pod_info("q", labels={"app": "x"}), nodes).node, "b")
        self.assert_unschedulable(
            schedule_pod(pod_info("q", labels={"app": "x"}), nodes[:1]), "existing pods anti-affinity rules"
        )
        pods_with_required_anti_affinity = pod_info("r", affinity={"podAntiAffinity": near("x")})
        self.assertEqual(schedule_pod(pods_with_required_anti_affinity, nodes).node, "b")
        self.assert_unschedulable(
            schedule_pod(pods_with_required_anti_affinity, nodes[:1]), "didn't match pod anti-affinity rules"
        )

    def test_spread(self) -> None:
        """Pods are spread over zones within the maximum skew."""
        constraint = {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
        nodes = [node("a", "8", zone="1"), node("b", zone="2"), node("c", "16")]
        placed = []
        for name in ("p", "q"):
            pod = pod_info(name, labels={"app": "x"}, topologySpreadConstraints=[constraint])
            placed.append(schedule_pod(pod, nodes).node)
            next(one for one in nodes if one.name == placed[-1]).add(pod)
        self.assertEqual(placed, ["a", "b"])
        alone = pod_info("r", labels={"app": "x"}, topologySpreadConstraints=[constraint])
        self.assert_unschedulable(schedule_pod(alone, nodes[2:]), "(missing required label)")
