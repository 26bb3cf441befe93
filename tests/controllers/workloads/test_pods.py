"""Tests for L{kubetwist.controllers.workloads.pods}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.workloads.pods import deletion_rank
from kubetwist.controllers.workloads.replicaset import (
    ReplicaSetController,
)
from tests.controllers.workloads.replicasetcase import LABELS, SPEC, ReplicaSetTestCase


class PodTests(ReplicaSetTestCase):
    """Tests for L{kubetwist.controllers.workloads.pods}."""

    def test_adoption(self) -> None:
        """Matching orphans are adopted. Pods that no longer match are released."""
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
        """A pod with another controller is ignored."""
        other = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
        self.make("pods", "theirs", "default", metadata={"labels": LABELS, "ownerReferences": [other]}, spec=SPEC)
        self.start(ReplicaSetController)
        self.set_of(1)
        self.assertEqual(len(self.pods()), 2)

    def test_rank(self) -> None:
        """Unready, young and cheap pods are sorted first."""

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
