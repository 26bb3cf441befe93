"""Tests for L{kubetwist.controllers.workloads.replicationcontroller}."""

from __future__ import annotations

from kubetwist.controllers.workloads.replicationcontroller import ReplicationControllerController
from tests.controllers.harness import ControllerTestCase

LABELS = {"app": "a"}
SPEC = {"containers": [{"name": "c", "image": "c:1"}]}


class ReplicationControllerTests(ControllerTestCase):
    """Pods of ReplicationControllers."""

    resources = ("namespaces", "pods", "replicationcontrollers", "events")

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.make("namespaces", "default")

    def test_replication_controller(self) -> None:
        """A ReplicationController maintains its pods, with a map of labels as the selector."""
        self.start(ReplicationControllerController)
        template = {"metadata": {"labels": LABELS}, "spec": SPEC}
        spec = {"replicas": 2, "selector": LABELS, "template": template}
        self.make("replicationcontrollers", "a", "default", spec=spec)
        self.settle()
        pods = [self.find("pods", name, "default") for name in self.names("pods", "default")]
        self.assertEqual([pod["metadata"]["ownerReferences"][0]["kind"] for pod in pods], ["ReplicationController"] * 2)
