"""Tests for L{kubetwist.controllers.workloads.daemonset} and L{kubetwist.controllers.workloads.daemonpods}."""

from __future__ import annotations

from kubetwist.controllers.workloads import daemonpods
from kubetwist.controllers.workloads.daemonset import DaemonSetController
from kubetwist.controllers.workloads.history import REVISION_LABEL
from tests.controllers.workloads.daemonsetcase import LABELS, DaemonSetTestCase, UpdateTestCase, template

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


class PlacementTests(DaemonSetTestCase):
    """Nodes that pods run on."""

    def setUp(self) -> None:
        """Start the controller."""
        super().setUp()
        self.start(DaemonSetController)

    def test_pod_on_every_node(self) -> None:
        """Each node gets one pod, with node affinity to it and with tolerations for node problems."""
        self.nodes(3)
        made = self.daemon()
        self.assertEqual(self.placed(), {"n0": ["a"], "n1": ["a"], "n2": ["a"]})
        pod = self.pods()[0]
        self.assertTrue(pod["metadata"]["name"].startswith("agent-"))
        (owner,) = pod["metadata"]["ownerReferences"]
        self.assertEqual(
            (owner["kind"], owner["uid"], owner["controller"]), ("DaemonSet", made["metadata"]["uid"], True)
        )
        (revision,) = self.names("controllerrevisions", "default", "apps")
        self.assertEqual(
            pod["metadata"]["labels"],
            {**LABELS, REVISION_LABEL: revision.removeprefix("agent-"), "pod-template-generation": "1"},
        )
        self.assertNotIn("nodeName", pod["spec"])
        self.assertEqual(len(pod["spec"]["tolerations"]), 6)
        self.assertEqual(self.events().count("SuccessfulCreate"), 3)

    def test_status(self) -> None:
        """The status counts nodes."""
        self.nodes(3)
        self.daemon()
        counts = {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "numberMisscheduled": 0}
        started = {"updatedNumberScheduled": 3, "observedGeneration": 1}
        self.assertEqual(self.status, {**counts, **started, "numberReady": 0, "numberUnavailable": 3})
        self.run_pods()
        self.assertEqual(self.status, {**counts, **started, "numberReady": 3, "numberAvailable": 3})

    def test_min_ready_seconds(self) -> None:
        """With minReadySeconds a pod is available when it has been ready for that time."""
        self.nodes(1)
        self.daemon(minReadySeconds=10)
        self.run_pods()
        self.assertEqual((self.status["numberReady"], self.status["numberUnavailable"]), (1, 1))
        self.settle(11)
        self.assertEqual(self.status["numberAvailable"], 1)
        self.assertNotIn("numberUnavailable", self.status)

    def test_selection(self) -> None:
        """Nodes are selected by labels and affinity. Pods are created and deleted when labels change."""
        self.node("n0", disk="ssd")
        self.node("n1", disk="ssd", zone="b")
        self.node("n2")
        zone = {"key": "zone", "operator": "NotIn", "values": ["b"]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        self.daemon(pod={"nodeSelector": {"disk": "ssd"}, "affinity": affinity})
        self.assertEqual(self.placed(), {"n0": ["a"]})
        self.edit_node("n2", disk="ssd")
        self.assertEqual(self.placed(), {"n0": ["a"], "n2": ["a"]})
        self.edit_node("n0", disk="hdd")
        self.assertEqual(self.placed(), {"n2": ["a"]})
        self.edit_node("n1", zone="c")
        self.assertEqual(self.placed(), {"n1": ["a"], "n2": ["a"]})
        self.assertEqual(self.status["desiredNumberScheduled"], 2)

    def test_taints(self) -> None:
        """A NoSchedule taint prevents new pods. A NoExecute taint deletes existing pods, too."""
        self.node("n0", [TAINT])
        self.node("n1")
        self.daemon()
        self.run_pods()
        self.assertEqual(self.placed(), {"n1": ["a"]})
        self.edit_node("n1", [TAINT])
        self.assertEqual(self.placed(), {"n1": ["a"]})
        self.assertEqual((self.status["desiredNumberScheduled"], self.status["numberMisscheduled"]), (0, 1))
        self.edit_node("n1", [{**TAINT, "effect": "NoExecute"}])
        self.run_pods()
        self.assertEqual(self.placed(), {})
        self.edit(template=template("a", tolerations=[{"key": "gpu", "operator": "Exists"}]))
        self.assertEqual(self.placed(), {"n0": ["a"], "n1": ["a"]})

    def test_node_in_trouble(self) -> None:
        """Pods are created on nodes that are cordoned, not ready, or under pressure."""
        kinds = [("not-ready", "NoExecute"), ("memory-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")]
        for number, (kind, effect) in enumerate(kinds):
            self.node(f"n{number}", [{"key": f"node.kubernetes.io/{kind}", "effect": effect}])
        self.node("n3", [{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}])
        self.daemon()
        self.assertEqual(list(self.placed()), ["n0", "n1", "n2"])
        self.edit(template=template(hostNetwork=True))
        self.assertIn("n3", self.placed())

    def test_nodes_added_and_deleted(self) -> None:
        """A new node gets a pod. An unbound pod of a deleted node is deleted."""
        self.nodes(1)
        self.daemon()
        self.node("n1")
        self.settle()
        self.assertEqual(list(self.placed()), ["n0", "n1"])
        self.remove("nodes", "n0")
        self.settle()
        self.assertEqual(list(self.placed()), ["n1"])
        self.assertEqual(self.status["desiredNumberScheduled"], 1)

    def test_duplicates(self) -> None:
        """
        Of two pods on a node the older one is kept. Orphans are adopted, and pods of other controllers are ignored.
        """
        self.nodes(1)
        self.daemon()
        (first,) = self.pods()
        self.clock.advance(5)
        spec = {"nodeName": "n0", "containers": [{"name": "c", "image": "x"}]}
        other = {"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "u", "controller": True}
        self.make("pods", "theirs", "default", metadata={"labels": LABELS, "ownerReferences": [other]}, spec=spec)
        self.make("pods", "orphan", "default", metadata={"labels": LABELS}, spec=spec)
        self.settle()
        # A pod that is bound to the node has precedence over an unbound one.
        orphan = self.find("pods", "orphan", "default")
        self.assertEqual(orphan["metadata"]["ownerReferences"][0]["name"], "agent")
        self.assertIsNone(self.find("pods", first["metadata"]["name"], "default"))
        self.assertIsNotNone(self.find("pods", "theirs", "default"))

    def test_terminated_pods(self) -> None:
        """A failed pod is replaced with increasing backoff, a succeeded one immediately."""
        self.nodes(1)
        self.daemon()
        made = set()
        for _ in range(4):
            (pod,) = self.pods()
            made.add(pod["metadata"]["name"])
            self.set_status(pod, "Failed")
            self.settle()
        self.assertEqual(len(made), 2)
        self.settle(1)
        self.assertNotIn(self.names("pods", "default")[0], made)
        (pod,) = self.pods()
        self.set_status(pod, "Failed")
        self.settle(1.5)
        self.assertEqual(self.names("pods", "default"), [pod["metadata"]["name"]])
        self.settle(1)
        self.assertNotEqual(self.names("pods", "default"), [pod["metadata"]["name"]])
        (pod,) = self.pods()
        self.set_status(pod, "Succeeded")
        self.settle()
        self.assertNotEqual(self.names("pods", "default"), [pod["metadata"]["name"]])
        reasons = self.events()
        self.assertIn("FailedDaemonPod", reasons)
        self.assertIn("SucceededDaemonPod", reasons)

    def test_many_nodes(self) -> None:
        """With many nodes, events of pods are coalesced."""
        self.nodes(120)
        self.daemon()
        self.settle(1)
        (controller,) = self.running
        done = controller.queue.metrics.done
        for pod in self.pods():
            self.set_status(pod, "Running", ready=True)
        self.settle(1)
        self.assertEqual(self.status["numberAvailable"], 120)
        self.assertLess(controller.queue.metrics.done - done, 5)

    def test_foreign_status(self) -> None:
        """A foreign status is corrected. Status updates of the controller are ignored."""
        self.nodes(2)
        self.daemon()
        (controller,) = self.running
        status = dict(self.status)
        done = controller.queue.metrics.done
        self.change("daemonsets", "agent", lambda obj: obj["status"].update(numberReady=7), "default", "apps", "status")
        self.settle()
        self.assertEqual(self.status, status)
        self.assertEqual(controller.queue.metrics.done, done + 1)

    def test_adoption_fails(self) -> None:
        """The status is correct even if a pod cannot be adopted yet."""
        self.nodes(2)
        self.daemon()
        self.make(
            "pods", "orphan", "default", metadata={"labels": LABELS}, spec={**template()["spec"], "nodeName": "n0"}
        )
        first = self.backend.commits + 1
        self.backend.fails = lambda number: number == first
        self.settle()
        self.assertGreaterEqual(self.backend.commits, first)
        self.assertNotIn("ownerReferences", self.find("pods", "orphan", "default")["metadata"])
        self.assertEqual(self.status["currentNumberScheduled"], 2)
        self.settle(60)
        self.assertEqual(self.find("pods", "orphan", "default")["metadata"]["ownerReferences"][0]["name"], "agent")
        self.assertEqual(len(self.pods()), 2)

    def test_deleted(self) -> None:
        """A DaemonSet that is being deleted creates no pods."""
        self.nodes(1)
        self.daemon()
        self.remove("daemonsets", "agent", "default", "apps", propagation="Foreground")
        self.node("n1")
        self.settle()
        self.assertEqual(list(self.placed()), ["n0"])


class UpdateTests(UpdateTestCase):
    """Updates of the pod template."""

    def test_unavailable(self) -> None:
        """At most maxUnavailable nodes have no available pod, and no node has two pods."""
        self.create_and_run(maxUnavailable=2)
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("b"))
        self.assertEqual((self.min_ready_nodes, self.max_pods), (2, 4))
        self.assertEqual((self.status["updatedNumberScheduled"], self.status["numberAvailable"]), (4, 4))
        self.assertEqual(self.status["observedGeneration"], 2)
        self.assertEqual(self.revisions(), [(1, "a"), (2, "b")])

    def test_percentage(self) -> None:
        """Percentages are relative to the nodes that should run a pod, rounded up."""
        self.create_and_run(maxUnavailable="30%")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual((self.placed(), self.min_ready_nodes), (self.every("b"), 2))

    def test_surge(self) -> None:
        """With maxSurge a pod is deleted when its replacement is available."""
        self.create_and_run(maxSurge=1, maxUnavailable=0)
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("b"))
        self.assertEqual((self.min_ready_nodes, self.max_pods), (4, 5))

    def test_broken_update(self) -> None:
        """A failing update stops. The next update replaces unavailable pods first."""
        self.create_and_run(maxUnavailable=1)
        self.broken.add("b")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(sorted(self.placed().values()), [["a"]] * 3 + [["b"]])
        self.edit(template=template("c"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("c"))
        self.assertEqual(self.min_ready_nodes, 3)

    def test_broken_surge(self) -> None:
        """With maxSurge, a failing update keeps the old pods and stops at the limit."""
        self.create_and_run(maxSurge=2, maxUnavailable=0)
        self.broken.add("b")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(sorted(self.placed().values()), [["a"], ["a"], ["a", "b"], ["a", "b"]])
        self.assertEqual(self.min_ready_nodes, 4)

    def test_on_delete(self) -> None:
        """With OnDelete, a pod is replaced only after its deletion."""
        self.create_and_run()
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("a"))
        self.assertNotIn("updatedNumberScheduled", self.status)
        victim = next(pod for pod in self.pods() if daemonpods.target_node(pod) == "n2")
        self.remove("pods", victim["metadata"]["name"], "default", grace=0)
        self.run_pods()
        self.assertEqual(self.placed(), {**self.every("a"), "n2": ["b"]})
        self.assertEqual(self.status["updatedNumberScheduled"], 1)

    def test_terminating(self) -> None:
        """A node with a terminating pod gets no other pod, except with maxSurge."""
        self.create_and_run(maxUnavailable=1)
        victim = self.pods()[0]
        node = daemonpods.target_node(victim)
        assert node is not None
        self.change(
            "pods", victim["metadata"]["name"], lambda obj: obj["metadata"].update(finalizers=["a.io/b"]), "default"
        )
        self.remove("pods", victim["metadata"]["name"], "default", grace=0)
        self.settle()
        self.assertEqual(self.placed(), self.every("a"))
        self.edit(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}})
        self.assertEqual(self.placed(), {**self.every("a"), node: ["a", "a"]})


class ReliabilityTests(DaemonSetTestCase):
    """Failing writes and kills."""

    def test_faults(self) -> None:
        """With every tenth write failing, all nodes get the right pod in the end, through an update."""
        self.nodes(12)
        self.start(DaemonSetController)
        self.backend.fails = lambda number: number % 10 == 0
        self.daemon(updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 5}})
        self.settle(300)
        self.assertEqual(self.placed(), {f"n{number}": ["a"] for number in range(12)})

        def unharmed() -> None:
            self.backend.fails = lambda number: False

        def harmed() -> None:
            self.backend.fails = lambda number: number % 10 == 0

        unharmed()
        self.run_pods()
        self.change("daemonsets", "agent", lambda obj: obj["spec"].update(template=template("b")), "default", "apps")
        for _ in range(100):
            harmed()
            self.settle(60)
            unharmed()
            if not self.run_one():
                break
        self.settle(60)
        self.assertEqual(set(map(tuple, self.placed().values())), {("b",)})
        self.assertEqual(self.status["updatedNumberScheduled"], 12)

    def test_killed(self) -> None:
        """After a kill at any write the work is completed, and no pod is created twice."""

        def prepare() -> None:
            self.make("namespaces", "default")
            self.nodes(3)
            spec = {"selector": {"matchLabels": LABELS}, "template": template()}
            self.make("daemonsets", "agent", "default", "apps", spec=spec)

        self.reset_stores()
        self.check_kill_at_each_write(
            prepare, lambda: (self.placed(), self.revisions(), dict(self.status)), DaemonSetController
        )

    def test_killed_in_update(self) -> None:
        """An update continues after a kill."""
        self.nodes(3)
        self.start(DaemonSetController)
        self.daemon()
        self.run_pods()
        self.edit(template=template("b"))
        for _ in range(40):
            self.restart(DaemonSetController)
            if not self.run_one():
                break
        self.assertEqual(self.placed(), {f"n{number}": ["b"] for number in range(3)})
        self.assertEqual(self.revisions(), [(1, "a"), (2, "b")])
