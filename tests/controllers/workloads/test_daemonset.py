"""Tests for L{kubetwist.controllers.workloads.daemonset} and L{kubetwist.controllers.workloads.daemonpods}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.times import format_time
from kubetwist.controllers.workloads import daemonpods
from kubetwist.controllers.workloads.daemonpods import DaemonPlan, FailureBackoff, Fit, daemon_tolerations, update_step
from kubetwist.controllers.workloads.daemonset import DaemonSetController
from kubetwist.controllers.workloads.history import REVISION_LABEL
from tests.controllers.harness import ControllerTestCase

LABELS = {"app": "agent"}
TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def template(image: str = "a", **spec: Any) -> Any:
    """A template of pods."""
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


class DaemonSetTestCase(ControllerTestCase):
    """A DaemonSet, nodes, and somebody who binds and runs pods."""

    resources = ("namespaces", "nodes", "pods", "daemonsets", "controllerrevisions", "events")

    def setUp(self) -> None:
        """A namespace."""
        super().setUp()
        #: The images of pods that never work.
        self.broken: set[str] = set()
        #: On how many nodes a pod worked at least, and how many pods there were at most, while pods were run.
        self.least, self.most = 10**6, 0
        self.make("namespaces", "default")

    def node(self, name: str, taints: Any = (), **labels: str) -> None:
        """Make a node."""
        spec = {"taints": [dict(one) for one in taints]} if taints else {}
        self.make("nodes", name, metadata={"labels": labels}, spec=spec)

    def nodes(self, number: int) -> None:
        """Make nodes n0, n1, ..."""
        for one in range(number):
            self.node(f"n{one}")

    def edit_node(self, name: str, taints: Any = None, **labels: str) -> None:
        """Change a node."""

        def change(obj: Any) -> None:
            if taints is not None:
                obj["spec"]["taints"] = [dict(one) for one in taints]
            obj["metadata"].setdefault("labels", {}).update(labels)

        self.change("nodes", name, change)
        self.settle()

    def daemon(self, image: str = "a", pod: Any = None, **spec: Any) -> Any:
        """Make a DaemonSet, and let its controller work."""
        spec = {"selector": {"matchLabels": LABELS}, "template": template(image, **(pod or {})), **spec}
        made = self.make("daemonsets", "agent", "default", "apps", spec=spec)
        self.settle()
        return made

    def edit(self, **spec: Any) -> None:
        """Change the spec."""
        self.change("daemonsets", "agent", lambda obj: obj["spec"].update(spec), "default", "apps")
        self.settle()

    @property
    def status(self) -> Any:
        """Of the DaemonSet."""
        return self.find("daemonsets", "agent", "default", "apps")["status"]

    def pods(self) -> list[Any]:
        """All pods."""
        return [self.find("pods", name, "default") for name in self.names("pods", "default")]

    def placed(self) -> dict[str, list[str]]:
        """The images of pods by their nodes."""
        found: dict[str, list[str]] = {}
        for pod in self.pods():
            name = daemonpods.target_node(pod)
            assert name is not None
            found.setdefault(name, []).append(pod["spec"]["containers"][0]["image"])
        return {name: sorted(images) for name, images in sorted(found.items())}

    def revisions(self) -> list[tuple[int, str]]:
        """Numbers and images of revisions."""
        every = [
            self.find("controllerrevisions", name, "default", "apps")
            for name in self.names("controllerrevisions", "default", "apps")
        ]
        return sorted(
            (one["revision"], one["data"]["spec"]["template"]["spec"]["containers"][0]["image"]) for one in every
        )

    def events(self) -> list[str]:
        """The reasons of events."""
        self.settle(1)
        return [self.find("events", name, "default")["reason"] for name in self.names("events", "default")]

    def set_status(self, pod: Any, phase: str, ready: bool = False) -> None:
        """Say something of a pod."""
        status: Any = {"phase": phase}
        if ready:
            since = format_time(self.clock.seconds())
            status["conditions"] = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
        self.change("pods", pod["metadata"]["name"], lambda obj: obj.update(status=status), "default", part="status")

    def run_one(self) -> bool:
        """Do something that a kubelet has to do, for one pod; tell whether there was anything."""
        for pod in self.pods():
            if "deletionTimestamp" in pod["metadata"]:
                self.remove("pods", pod["metadata"]["name"], "default", grace=0)
                return True
            works = pod.get("status", {}).get("conditions")
            if not works and pod["spec"]["containers"][0]["image"] not in self.broken:
                self.set_status(pod, "Running", ready=True)
                return True
        return False

    def run_pods(self) -> None:
        """Let the controller and kubelets work in turns, until nothing changes any more."""
        for _ in range(200):
            self.settle()
            pods = self.pods()
            works = {
                daemonpods.target_node(pod)
                for pod in pods
                if pod.get("status", {}).get("conditions") and "deletionTimestamp" not in pod["metadata"]
            }
            self.least, self.most = min(self.least, len(works)), max(self.most, len(pods))
            if not self.run_one():
                return
        raise AssertionError("it does not come to an end")


class PlacementTests(DaemonSetTestCase):
    """On which nodes pods are."""

    def setUp(self) -> None:
        """The controller."""
        super().setUp()
        self.start(DaemonSetController)

    def test_pod_on_every_node(self) -> None:
        """Each node gets one pod, that only this node will do for, and that nodes in trouble do not scare."""
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
        """With minReadySeconds a pod is available when it has been ready for that long."""
        self.nodes(1)
        self.daemon(minReadySeconds=10)
        self.run_pods()
        self.assertEqual((self.status["numberReady"], self.status["numberUnavailable"]), (1, 1))
        self.settle(11)
        self.assertEqual(self.status["numberAvailable"], 1)
        self.assertNotIn("numberUnavailable", self.status)

    def test_selection(self) -> None:
        """Nodes are selected by labels and affinity, and as that changes pods come and go."""
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
        """A taint keeps new pods away; only NoExecute drives away the one that is there."""
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
        """Pods are made on nodes that are cordoned, not ready, or short of something."""
        kinds = [("not-ready", "NoExecute"), ("memory-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")]
        for number, (kind, effect) in enumerate(kinds):
            self.node(f"n{number}", [{"key": f"node.kubernetes.io/{kind}", "effect": effect}])
        self.node("n3", [{"key": "node.kubernetes.io/network-unavailable", "effect": "NoSchedule"}])
        self.daemon()
        self.assertEqual(list(self.placed()), ["n0", "n1", "n2"])
        self.edit(template=template(hostNetwork=True))
        self.assertIn("n3", self.placed())

    def test_node_comes_and_goes(self) -> None:
        """A new node gets a pod; the pod of a node that is gone, and that was never bound, is deleted."""
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
        """Of two pods on a node the older stays; pods without a controller are taken, those of others are not."""
        self.nodes(1)
        self.daemon()
        (first,) = self.pods()
        self.clock.advance(5)
        spec = {"nodeName": "n0", "containers": [{"name": "c", "image": "x"}]}
        other = {"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "u", "controller": True}
        self.make("pods", "theirs", "default", metadata={"labels": LABELS, "ownerReferences": [other]}, spec=spec)
        self.make("pods", "orphan", "default", metadata={"labels": LABELS}, spec=spec)
        self.settle()
        # One that is on its node counts for more than one that waits for that.
        orphan = self.find("pods", "orphan", "default")
        self.assertEqual(orphan["metadata"]["ownerReferences"][0]["name"], "agent")
        self.assertIsNone(self.find("pods", first["metadata"]["name"], "default"))
        self.assertIsNotNone(self.find("pods", "theirs", "default"))

    def test_pods_that_end(self) -> None:
        """A pod that failed is replaced, later each time; one that succeeded at once."""
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
        """With many nodes the changes of pods are seen to together."""
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
        """What somebody else says in the status does not last; what the controller says is no news to it."""
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
        """A status is right even when a pod can not be taken yet."""
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
        """A DaemonSet on its way out gets no pods."""
        self.nodes(1)
        self.daemon()
        self.remove("daemonsets", "agent", "default", "apps", propagation="Foreground")
        self.node("n1")
        self.settle()
        self.assertEqual(list(self.placed()), ["n0"])


class UpdateTests(DaemonSetTestCase):
    """How pods get the template of now."""

    def setUp(self) -> None:
        """Nodes, and the controller."""
        super().setUp()
        self.nodes(4)
        self.start(DaemonSetController)

    def begin(self, **rolling: Any) -> None:
        """Run a DaemonSet that is updated in some way."""
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling} if rolling else {"type": "OnDelete"}
        self.daemon(updateStrategy=strategy)
        self.run_pods()
        self.least, self.most = 10**6, 0

    def every(self, image: str) -> dict[str, list[str]]:
        """All nodes have one pod of an image."""
        return {f"n{number}": [image] for number in range(4)}

    def test_unavailable(self) -> None:
        """No more nodes than may be are without a pod that works, and no node has two."""
        self.begin(maxUnavailable=2)
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("b"))
        self.assertEqual((self.least, self.most), (2, 4))
        self.assertEqual((self.status["updatedNumberScheduled"], self.status["numberAvailable"]), (4, 4))
        self.assertEqual(self.status["observedGeneration"], 2)
        self.assertEqual(self.revisions(), [(1, "a"), (2, "b")])

    def test_percentage(self) -> None:
        """Percentages are of the nodes that are to have a pod, rounded up."""
        self.begin(maxUnavailable="30%")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual((self.placed(), self.least), (self.every("b"), 2))

    def test_surge(self) -> None:
        """With maxSurge a pod goes when its successor works."""
        self.begin(maxSurge=1, maxUnavailable=0)
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("b"))
        self.assertEqual((self.least, self.most), (4, 5))

    def test_broken_update(self) -> None:
        """An update that does not work stops; the next one replaces what does not work first."""
        self.begin(maxUnavailable=1)
        self.broken.add("b")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(sorted(self.placed().values()), [["a"]] * 3 + [["b"]])
        self.edit(template=template("c"))
        self.run_pods()
        self.assertEqual(self.placed(), self.every("c"))
        self.assertEqual(self.least, 3)

    def test_broken_surge(self) -> None:
        """A successor that does not work leaves its predecessor where it is, and takes the turn of the others."""
        self.begin(maxSurge=2, maxUnavailable=0)
        self.broken.add("b")
        self.edit(template=template("b"))
        self.run_pods()
        self.assertEqual(sorted(self.placed().values()), [["a"], ["a"], ["a", "b"], ["a", "b"]])
        self.assertEqual(self.least, 4)

    def test_on_delete(self) -> None:
        """With OnDelete nothing happens until somebody deletes a pod."""
        self.begin()
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
        """A pod that takes its time to end keeps its node from getting another one, unless nodes may have two."""
        self.begin(maxUnavailable=1)
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

    def test_rollback(self) -> None:
        """The template of before brings its revision back, as the newest."""
        self.begin(maxUnavailable=4)
        first = self.pods()[0]["metadata"]["labels"][REVISION_LABEL]
        for image in "ba":
            self.edit(template=template(image))
            self.run_pods()
        self.assertEqual(self.revisions(), [(2, "b"), (3, "a")])
        self.assertEqual({pod["metadata"]["labels"][REVISION_LABEL] for pod in self.pods()}, {first})

    def test_history_limit(self) -> None:
        """Only so many revisions are kept beside the newest."""
        self.begin(maxUnavailable=4)
        self.edit(revisionHistoryLimit=2)
        for image in "bcde":
            self.edit(template=template(image))
            self.run_pods()
        self.assertEqual(self.revisions(), [(3, "c"), (4, "d"), (5, "e")])
        self.edit(revisionHistoryLimit=0)
        self.assertEqual(self.revisions(), [(5, "e")])

    def test_history_in_use(self) -> None:
        """Revisions that pods are of stay."""
        self.begin()
        self.edit(revisionHistoryLimit=0)
        for image in "bc":
            self.edit(template=template(image))
        self.assertEqual(self.revisions(), [(1, "a"), (3, "c")])

    def test_same_revision_twice(self) -> None:
        """Of two revisions of one template that are taken, one is left; its pods are not replaced."""
        self.begin(maxUnavailable=1)
        (name,) = self.names("controllerrevisions", "default", "apps")
        known = self.find("controllerrevisions", name, "default", "apps")
        names = self.names("pods", "default")
        labels = {**LABELS, REVISION_LABEL: "twin"}
        self.make(
            "controllerrevisions",
            "twin",
            "default",
            "apps",
            metadata={"labels": labels},
            data=dict(known["data"]),
            revision=7,
        )
        self.settle()
        self.assertEqual(self.names("controllerrevisions", "default", "apps"), ["twin"])
        self.assertEqual({pod["metadata"]["labels"][REVISION_LABEL] for pod in self.pods()}, {"twin"})
        self.assertEqual(self.names("pods", "default"), names)

    def test_name_taken(self) -> None:
        """Where the name of a revision is taken, another one is found, and that is counted."""
        self.begin(maxUnavailable=4)
        (name,) = self.names("controllerrevisions", "default", "apps")
        self.remove("daemonsets", "agent", "default", "apps")
        self.remove("controllerrevisions", name, "default", "apps")
        self.make("controllerrevisions", name, "default", "apps", data={"x": 1}, revision=1)
        self.daemon()
        self.assertEqual(self.status["collisionCount"], 1)
        self.assertEqual(len(self.names("controllerrevisions", "default", "apps")), 2)


class ReliabilityTests(DaemonSetTestCase):
    """What happens when something fails."""

    def test_faults(self) -> None:
        """With every tenth write failing, all nodes have the right pod in the end, through an update."""
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
        """After a kill at any point the work is finished, and nothing is made twice."""

        def prepare() -> None:
            self.make("namespaces", "default")
            self.nodes(3)
            spec = {"selector": {"matchLabels": LABELS}, "template": template()}
            self.make("daemonsets", "agent", "default", "apps", spec=spec)

        self.begin_anew()
        self.killed_at_each_write(
            prepare, lambda: (self.placed(), self.revisions(), dict(self.status)), DaemonSetController
        )

    def test_killed_in_update(self) -> None:
        """An update goes on after a kill."""
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


class PlanTests(SynchronousTestCase):
    """What is worked out without doing anything."""

    def test_tolerations(self) -> None:
        """What a template tolerates for some time it tolerates for good."""
        short = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}
        own = {"key": "a", "operator": "Exists"}
        made = daemon_tolerations({"tolerations": [own, {**short, "tolerationSeconds": 3}], "hostNetwork": True})
        self.assertEqual(made[:2], [own, short])
        self.assertEqual(len(made), 8)
        self.assertEqual(made[-1]["key"], "node.kubernetes.io/network-unavailable")

    def test_pod(self) -> None:
        """The node takes the place of what the affinity required; what it prefers stays."""
        preferred = [{"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}]
        zones = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]}
        affinity = {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": zones,
                "preferredDuringSchedulingIgnoredDuringExecution": preferred,
            },
            "podAntiAffinity": {},
        }
        plan = DaemonPlan({"metadata": {"name": "d"}, "spec": {"template": template(affinity=affinity)}})
        made = plan.pod("n", "h", {"uid": "u"}, "d-", "ns")
        self.assertEqual(daemonpods.target_node(made), "n")
        on_node = made["spec"]["affinity"]["nodeAffinity"]
        self.assertEqual(on_node["preferredDuringSchedulingIgnoredDuringExecution"], preferred)
        self.assertEqual(made["spec"]["affinity"]["podAntiAffinity"], {})
        self.assertNotIn("pod-template-generation", made["metadata"]["labels"])
        self.assertEqual(affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"], zones)

    def test_backoff(self) -> None:
        """Each failure doubles the wait, up to a quarter of an hour; after a long while all is forgotten."""
        backoff, now = FailureBackoff(), 0.0
        waits = []
        for _ in range(12):
            backoff.failed("k", now)
            waits.append(backoff.left("k", now))
            now += waits[-1]
            self.assertEqual(backoff.left("k", now), 0)
        self.assertEqual(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900])
        backoff.failed("other", now + 3000)
        backoff.failed("k", now + 3000)
        self.assertEqual(backoff.left("k", now + 3000), 1)

    @given(
        st.lists(st.tuples(st.sampled_from(["", "old", "new", "both"]), st.booleans(), st.booleans()), max_size=12),
        st.integers(0, 4),
        st.integers(0, 4),
    )
    def test_bounds(self, nodes: list[tuple[str, bool, bool]], surge: int, unavailable: int) -> None:
        """An update never takes more pods that work than may be missing, nor makes more than may be surplus."""
        rolling = {"maxSurge": surge, "maxUnavailable": 0 if surge else unavailable}
        strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
        plan = DaemonPlan({"metadata": {"name": "d"}, "spec": {"template": template(), "updateStrategy": strategy}})

        def pod(name: str, works: bool) -> Any:
            conditions = [{"type": "Ready", "status": "True"}] if works else []
            meta = {"name": name, "labels": {REVISION_LABEL: name.split("-")[0]}}
            return {"metadata": meta, "spec": {}, "status": {"conditions": conditions}}

        pods, fits = {}, {}
        for number, (kind, old_works, new_works) in enumerate(nodes):
            name = f"n{number}"
            fits[name] = Fit(True, True)
            there = [pod(f"old-{number}", old_works)] if kind in ("old", "both") else []
            there += [pod(f"new-{number}", new_works)] if kind in ("new", "both") else []
            if there:
                pods[name] = there
        delete, create = update_step(plan, fits, pods, "new", 0.0)
        gone = {one["metadata"]["name"] for one in delete}

        def works(name: str, left: bool) -> bool:
            return any(
                plan.available(one, 0.0) and not (left and one["metadata"]["name"] in gone)
                for one in pods.get(name, ())
            )

        self.assertFalse([name for name in gone if name.startswith("new")])
        before, after = sum(works(name, False) for name in fits), sum(works(name, True) for name in fits)
        least = len(fits) - (0 if surge else max(unavailable, 1))
        self.assertGreaterEqual(after, min(before, least))
        for name in create:
            self.assertEqual([one["metadata"]["labels"][REVISION_LABEL] for one in pods[name]], ["old"])
        beside = [name for name in create if works(name, False)]
        waiting = [name for name, there in pods.items() if len(there) == 2 and not plan.available(there[1], 0.0)]
        if beside:
            self.assertLessEqual(len(beside) + len(waiting), surge)
