"""Tests for L{kubetwist.controllers.workloads.replicaset} and L{kubetwist.controllers.workloads.pods}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.workloads.pods import deletion_rank
from kubetwist.controllers.workloads.replicaset import (
    ReplicaSetController,
)
from tests.controllers.harness import ControllerTestCase

LABELS = {"app": "a"}
SPEC = {"containers": [{"name": "c", "image": "c:1"}]}


class ReplicaSetTests(ControllerTestCase):
    """What a ReplicaSet has done for it."""

    resources = ("namespaces", "pods", "replicasets", "events")

    def setUp(self) -> None:
        """A namespace."""
        super().setUp()
        self.make("namespaces", "default")

    def set_of(self, replicas: int, **spec: Any) -> Any:
        """Make a set, and let its controller work."""
        template = {"metadata": {"labels": LABELS}, "spec": SPEC}
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, **spec}
        made = self.make("replicasets", "a", "default", "apps", spec=spec)
        self.settle()
        return made

    def pods(self) -> list[Any]:
        """All pods."""
        return [self.find("pods", name, "default") for name in self.names("pods", "default")]

    def ready(self, name: str) -> None:
        """Have a pod be ready from now on."""
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(self.clock.seconds())}
        status = {"phase": "Running", "conditions": [condition]}
        self.change("pods", name, lambda pod: pod.update(status=status), "default", part="status")

    def status(self) -> Any:
        """The status of the set."""
        return self.find("replicasets", "a", "default", "apps")["status"]

    def test_pods_are_made(self) -> None:
        """As many pods are made as are wanted, with labels, owner and a name of the set."""
        self.start(ReplicaSetController)
        made = self.set_of(3)
        pods = self.pods()
        self.assertEqual(len(pods), 3)
        for pod in pods:
            self.assertTrue(pod["metadata"]["name"].startswith("a-"))
            self.assertEqual(pod["metadata"]["labels"], LABELS)
            (owner,) = pod["metadata"]["ownerReferences"]
            self.assertEqual(
                (owner["kind"], owner["uid"], owner["controller"]), ("ReplicaSet", made["metadata"]["uid"], True)
            )
        self.assertEqual(
            self.status(),
            {"replicas": 3, "fullyLabeledReplicas": 3, "terminatingReplicas": 0, "observedGeneration": 1},
        )

    def test_pod_that_goes_is_replaced(self) -> None:
        """A pod that is deleted, or has failed, is replaced."""
        self.start(ReplicaSetController)
        self.set_of(2)
        first, second = self.names("pods", "default")
        self.remove("pods", first, "default", grace=0)
        self.settle()
        self.assertEqual(len(self.pods()), 2)
        self.change("pods", second, lambda pod: pod.update(status={"phase": "Failed"}), "default", part="status")
        self.settle()
        self.assertEqual(len(self.pods()), 3)

    def test_fewer(self) -> None:
        """When fewer are wanted, those that are not ready go first."""
        self.start(ReplicaSetController)
        self.set_of(3)
        kept = self.names("pods", "default")[1]
        self.ready(kept)
        self.settle()
        self.assertEqual(self.status()["readyReplicas"], 1)
        self.change("replicasets", "a", lambda obj: obj["spec"].update(replicas=1), "default", "apps")
        self.settle()
        self.assertEqual([pod["metadata"]["name"] for pod in self.pods()], [kept])
        self.assertEqual(self.status()["replicas"], 1)

    def test_available_after_a_while(self) -> None:
        """With minReadySeconds a pod is available when it has been ready for that long."""
        self.start(ReplicaSetController)
        self.set_of(1, minReadySeconds=10)
        self.ready(self.names("pods", "default")[0])
        self.settle()
        self.assertNotIn("availableReplicas", self.status())
        self.settle(11)
        self.assertEqual(self.status()["availableReplicas"], 1)

    def test_adoption(self) -> None:
        """A pod that nobody controls and that is selected becomes the set's; one that is selected no more is let go."""
        self.make("pods", "orphan", "default", metadata={"labels": LABELS}, spec=SPEC)
        self.start(ReplicaSetController)
        made = self.set_of(2)
        pods = self.pods()
        self.assertEqual(len(pods), 2)
        (owner,) = self.find("pods", "orphan", "default")["metadata"]["ownerReferences"]
        self.assertEqual(owner["uid"], made["metadata"]["uid"])
        self.change("pods", "orphan", lambda pod: pod["metadata"].update(labels={"app": "b"}), "default")
        self.settle()
        self.assertNotIn("ownerReferences", self.find("pods", "orphan", "default")["metadata"])
        self.assertEqual(len(self.pods()), 3)

    def test_other_controllers_pods(self) -> None:
        """A pod of somebody else is left alone, whatever its labels."""
        other = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
        self.make("pods", "theirs", "default", metadata={"labels": LABELS, "ownerReferences": [other]}, spec=SPEC)
        self.start(ReplicaSetController)
        self.set_of(1)
        self.assertEqual(len(self.pods()), 2)

    def test_failure(self) -> None:
        """What can not be made is told in a condition, and tried again until it can."""
        self.start(ReplicaSetController)
        self.backend.fails = lambda number: number > 2
        self.set_of(1)
        self.backend.fails = lambda number: False
        self.settle(60)
        self.assertEqual(len(self.pods()), 1)
        self.assertNotIn("conditions", self.status())

    def test_restart(self) -> None:
        """After a kill the work is finished, and nothing is made twice."""
        self.start(ReplicaSetController)
        self.set_of(3)
        self.restart(ReplicaSetController)
        self.settle(60)
        self.assertEqual(len(self.pods()), 3)

    def test_faults(self) -> None:
        """With every tenth write failing the number is right in the end."""
        self.backend.fails = lambda number: number % 10 == 0
        self.start(ReplicaSetController)
        self.set_of(20)
        self.settle(300)
        self.assertEqual(len(self.pods()), 20)

    def test_rank(self) -> None:
        """Pods that are missed least come first."""

        def pod(node: str = "n", phase: str = "Running", ready: str = "", cost: str = "", made: int = 0) -> Any:
            conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready}] if ready else []
            meta = {"creationTimestamp": format_time(1000 + made)}
            if cost:
                meta["annotations"] = {"controller.kubernetes.io/pod-deletion-cost": cost}  # type: ignore[assignment]
            return {"metadata": meta, "spec": {"nodeName": node}, "status": {"phase": phase, "conditions": conditions}}

        ordered = [
            pod(node=""),
            pod(phase="Pending"),
            pod(phase="Unknown"),
            pod(),
            pod(ready=format_time(500), cost="-1"),
            pod(ready=format_time(800)),
            pod(ready=format_time(500), made=5),
            pod(ready=format_time(500)),
            pod(ready=format_time(500), cost="7"),
        ]
        turned = ordered[::-1]
        self.assertEqual(sorted(turned, key=lambda one: deletion_rank(one, 1, 2000.0)), ordered)
