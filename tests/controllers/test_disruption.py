"""Tests for L{kubetwist.controllers.disruption}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.disruption import DELETION_TIMEOUT, STALE_POD_DISRUPTION_TIMEOUT, DisruptionController
from tests.controllers.harness import ControllerTestCase

GROUP, NAME = "policy", "poddisruptionbudgets"
LABELS = {"app": "web"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


class DisruptionControllerTests(ControllerTestCase):
    """Status of PodDisruptionBudgets."""

    resources = (
        "namespaces",
        "pods",
        NAME,
        "replicasets",
        "deployments",
        "statefulsets",
        "replicationcontrollers",
        "jobs",
        "events",
    )

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.make("namespaces", "default")

    def owner(self, resource: str, name: str, replicas: int, group: str = "apps", **meta: Any) -> Any:
        """Create a controller object with replicas."""
        selector: Any = {"matchLabels": LABELS} if group else LABELS
        spec = {"replicas": replicas, "selector": selector, "template": TEMPLATE}
        if resource == "statefulsets":
            spec["serviceName"] = "x"
        made = self.make(resource, name, "default", group, metadata=meta, spec=spec)
        kind = {
            "replicasets": "ReplicaSet",
            "deployments": "Deployment",
            "statefulsets": "StatefulSet",
            "replicationcontrollers": "ReplicationController",
        }[resource]
        return self.reference(f"{group}/v1" if group else "v1", kind, made)

    def reference(self, api_version: str, kind: str, made: Any) -> Any:
        """Return an owner reference to an object."""
        meta = made["metadata"]
        return {
            "apiVersion": api_version,
            "kind": kind,
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
        }

    def pod(self, name: str, owner: Any = None, *, ready: bool = True) -> None:
        """Create a running pod."""
        meta: dict[str, Any] = {"labels": LABELS}
        if owner is not None:
            meta["ownerReferences"] = [owner]
        ready_now = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "conditions": [ready_now]}
        self.make("pods", name, "default", metadata=meta, spec={**TEMPLATE["spec"], "nodeName": "n"}, status=status)

    def budget(self, name: str = "b", **spec: Any) -> None:
        """Create a budget."""
        self.make(NAME, name, "default", GROUP, spec={"selector": {"matchLabels": LABELS}, **spec})

    def status(self, name: str = "b") -> Any:
        """Return the status of a budget."""
        self.settle()
        return self.find(NAME, name, "default", GROUP).get("status")

    def numbers(self, name: str = "b") -> tuple[int, ...]:
        """Return the counters of a budget."""
        status = self.status(name)
        return tuple(
            status[field] for field in ("expectedPods", "desiredHealthy", "currentHealthy", "disruptionsAllowed")
        )

    def condition(self) -> Any:
        """Return the condition of a budget."""
        (condition,) = self.status()["conditions"]
        return condition

    def events(self) -> set[str]:
        """Return the reasons of all events."""
        self.settle(5)
        found = [self.find("events", name, "default") for name in self.names("events", "default")]
        return {event["reason"] for event in found}

    def test_min_available(self) -> None:
        """With an integer minAvailable, this number of the existing pods must be healthy."""
        self.start(DisruptionController)
        self.budget(minAvailable=2)
        self.assertEqual(self.numbers(), (0, 2, 0, 0))
        self.assertEqual(self.events(), {"NoPods"})
        for number in range(3):
            self.pod(f"p{number}")
        self.pod("sick", ready=False)
        self.assertEqual(self.numbers(), (4, 2, 3, 1))
        condition = self.condition()
        self.assertEqual(
            (condition["status"], condition["reason"], condition["message"], condition["observedGeneration"]),
            ("True", "SufficientPods", "", 1),
        )
        self.remove("pods", "p0", "default")
        self.assertEqual(self.numbers(), (4, 2, 2, 0))
        condition = self.condition()
        self.assertEqual((condition["status"], condition["reason"]), ("False", "InsufficientPods"))
        self.assertEqual(condition["lastTransitionTime"], format_time(self.clock.seconds()))

    def test_percentages(self) -> None:
        """Percentages are relative to the replicas of the pods' owners, rounded up."""
        self.start(DisruptionController)
        owner = self.owner("replicasets", "rs", 7)
        for number in range(7):
            self.pod(f"p{number}", owner)
        self.budget(minAvailable="50%")
        self.budget("most", maxUnavailable="30%")
        self.budget("some", maxUnavailable=10)
        self.assertEqual(self.numbers(), (7, 4, 7, 3))
        self.assertEqual(self.numbers("most"), (7, 4, 7, 3))
        self.assertEqual(self.numbers("some"), (7, 0, 7, 7))
        self.pod("sick", owner, ready=False)
        self.assertEqual(self.numbers(), (7, 4, 7, 3))
        self.assertIn("MultiplePodDisruptionBudgets", self.events())

    def test_owners(self) -> None:
        """Replicas are read from controllers, stateful sets, sets without a deployment, and deployments."""
        self.start(DisruptionController)
        deployment = self.owner("deployments", "d", 5)
        self.pod("a", self.owner("replicasets", "old", 2, ownerReferences=[deployment]))
        self.pod("b", self.owner("replicasets", "new", 4, ownerReferences=[deployment]))
        self.pod("c", self.owner("statefulsets", "s", 3))
        self.pod("e", self.owner("replicationcontrollers", "rc", 2, group=""))
        self.pod("f", self.owner("replicasets", "lone", 1))
        self.budget(maxUnavailable=1)
        self.assertEqual(self.numbers(), (11, 10, 5, 0))

    def test_unknown(self) -> None:
        """With an unknown expected count no disruption is allowed, and the condition has the reason."""
        self.start(DisruptionController)
        self.budget(maxUnavailable=1)
        job = self.make(
            "jobs",
            "j",
            "default",
            "batch",
            spec={"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}},
        )
        self.pod("p", self.reference("batch/v1", "Job", job))
        self.assertEqual(self.status()["disruptionsAllowed"], 0)
        condition = self.condition()
        self.assertEqual(
            (condition["status"], condition["reason"], condition["message"]),
            ("False", "SyncFailed", "jobs.batch does not implement the scale subresource"),
        )
        self.assertIn("CalculateExpectedPodCountFailed", self.events())
        self.remove("pods", "p", "default", grace=0)
        missing_owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "u", "controller": True}
        self.pod("q", missing_owner)
        self.settle()
        self.assertEqual(self.condition()["message"], 'found no controllers for pod "q"')
        self.remove("pods", "q", "default", grace=0)
        self.pod("r", {**missing_owner, "apiVersion": "example.com/v1", "kind": "Strange"})
        self.settle()
        self.assertEqual(self.condition()["message"], 'no matches for kind "Strange" in version "example.com/v1"')

    def test_unmanaged(self) -> None:
        """Pods without an owner are not counted if owners count, and an event is recorded."""
        self.start(DisruptionController)
        self.budget(maxUnavailable=1)
        self.pod("p")
        self.assertEqual(self.numbers(), (0, 0, 1, 0))
        self.assertIn("UnmanagedPods", self.events())

    def test_disrupted(self) -> None:
        """Evicted pods are unhealthy until they are deleted, or until a timeout."""
        self.start(DisruptionController)
        self.budget(minAvailable=1)
        for number in range(3):
            self.pod(f"p{number}")
        self.assertEqual(self.numbers(), (3, 1, 3, 2))
        now = format_time(self.clock.seconds())

        def evict(budget: Any) -> None:
            budget["status"].update(disruptionsAllowed=0, disruptedPods={"p0": now, "p1": now, "gone": now})

        self.change(NAME, "b", evict, "default", GROUP, subresource="status")
        self.assertEqual(self.numbers(), (3, 1, 1, 0))
        self.assertEqual(self.status()["disruptedPods"], {"p0": now, "p1": now})
        self.remove("pods", "p0", "default")
        self.assertEqual(self.status()["disruptedPods"], {"p1": now})
        self.settle(DELETION_TIMEOUT + 1)
        self.assertEqual(self.numbers(), (3, 1, 2, 1))
        self.assertNotIn("disruptedPods", self.status())
        self.assertIn("NotDeleted", self.events())

    def test_stale_target(self) -> None:
        """The condition DisruptionTarget of a pod that is not deleted is reset after a timeout."""
        self.start(DisruptionController)
        self.pod("p")
        since = format_time(self.clock.seconds())
        target = {"type": "DisruptionTarget", "status": "True", "reason": "X", "lastTransitionTime": since}
        self.change(
            "pods", "p", lambda pod: pod["status"]["conditions"].append(target), "default", subresource="status"
        )
        self.settle(STALE_POD_DISRUPTION_TIMEOUT - 1)
        self.assertEqual(self.find("pods", "p", "default")["status"]["conditions"][1]["status"], "True")
        self.settle(2)
        found = self.find("pods", "p", "default")["status"]["conditions"][1]
        self.assertEqual((found["status"], "reason" in found), ("False", False))

    def test_selectors(self) -> None:
        """A missing selector matches no pods, an empty one all. observedGeneration is set."""
        self.start(DisruptionController)
        self.pod("p")
        self.budget(selector=None, minAvailable=1)
        self.budget("all", selector={}, minAvailable=1)
        self.assertEqual((self.numbers(), self.numbers("all")), ((0, 1, 0, 0), (1, 1, 1, 0)))
        self.change(NAME, "all", lambda one: one["spec"].update(minAvailable=0), "default", GROUP)
        self.assertEqual(self.numbers("all"), (1, 0, 1, 1))
        self.assertEqual(self.status("all")["observedGeneration"], 2)

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, the status of budgets is correct in the end."""
        self.start(DisruptionController)
        for number in range(20):
            self.budget(f"b{number}", minAvailable=1)
        self.settle(5)
        self.backend.fails = lambda number: number % 10 == 0
        for number in range(3):
            try:
                self.pod(f"p{number}")
            except self.failureException:
                continue
        self.settle(60)
        self.backend.fails = lambda number: False
        there = len(self.names("pods"))
        ready = sum("conditions" in self.find("pods", name, "default")["status"] for name in self.names("pods"))
        for number in range(20):
            self.assertEqual(self.numbers(f"b{number}")[::2], (there, ready))
        for subscription in self.running[0]._registrations:
            subscription.stop()
        self.remove("pods", "p0", "default", grace=0)
        self.restart(DisruptionController)
        for number in range(20):
            self.assertEqual(self.numbers(f"b{number}")[0], there - 1)
