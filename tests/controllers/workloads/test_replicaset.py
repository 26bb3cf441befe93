"""Tests for L{kubetwist.controllers.workloads.replicaset} and L{kubetwist.controllers.workloads.pods}."""

from __future__ import annotations

from kubetwist.controllers.workloads.replicaset import (
    ReplicaSetController,
)
from tests.controllers.workloads.replicasetcase import LABELS, ReplicaSetTestCase


class ReplicaSetTests(ReplicaSetTestCase):
    """Pods of ReplicaSets."""

    def test_pods_are_created(self) -> None:
        """The desired number of pods is created, with labels, owner and the name of the ReplicaSet as prefix."""
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

    def test_pod_is_replaced(self) -> None:
        """A deleted or failed pod is replaced."""
        self.start(ReplicaSetController)
        self.set_of(2)
        first, second = self.names("pods", "default")
        self.remove("pods", first, "default", grace=0)
        self.settle()
        self.assertEqual(len(self.pods()), 2)
        self.change("pods", second, lambda pod: pod.update(status={"phase": "Failed"}), "default", subresource="status")
        self.settle()
        self.assertEqual(len(self.pods()), 3)

    def test_scale_down(self) -> None:
        """Scaling down deletes pods that are not ready first."""
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
        """With minReadySeconds a pod is available when it has been ready for that time."""
        self.start(ReplicaSetController)
        self.set_of(1, minReadySeconds=10)
        self.ready(self.names("pods", "default")[0])
        self.settle()
        self.assertNotIn("availableReplicas", self.status())
        self.settle(11)
        self.assertEqual(self.status()["availableReplicas"], 1)

    def test_failure(self) -> None:
        """Failed pod creation sets ReplicaFailure and is retried."""
        self.start(ReplicaSetController)
        self.backend.fails = lambda number: number > 2
        self.set_of(1)
        self.backend.fails = lambda number: False
        self.settle(60)
        self.assertEqual(len(self.pods()), 1)
        self.assertNotIn("conditions", self.status())

    def test_restart(self) -> None:
        """After a kill the work is completed, and no pod is created twice."""
        self.start(ReplicaSetController)
        self.set_of(3)
        self.restart(ReplicaSetController)
        self.settle(60)
        self.assertEqual(len(self.pods()), 3)

    def test_faults(self) -> None:
        """With every tenth write failing, the number of pods is correct in the end."""
        self.backend.fails = lambda number: number % 10 == 0
        self.start(ReplicaSetController)
        self.set_of(20)
        self.settle(300)
        self.assertEqual(len(self.pods()), 20)
