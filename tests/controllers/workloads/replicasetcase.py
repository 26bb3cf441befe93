"""Test case for ReplicaSets."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from tests.controllers.harness import ControllerTestCase

LABELS = {"app": "a"}


SPEC = {"containers": [{"name": "c", "image": "c:1"}]}


class ReplicaSetTestCase(ControllerTestCase):
    """Test case with a ReplicaSet and its pods."""

    resources = ("namespaces", "pods", "replicasets", "events")

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.make("namespaces", "default")

    def set_of(self, replicas: int, **spec: Any) -> Any:
        """Create a ReplicaSet, and let its controller run."""
        template = {"metadata": {"labels": LABELS}, "spec": SPEC}
        spec = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, **spec}
        made = self.make("replicasets", "a", "default", "apps", spec=spec)
        self.settle()
        return made

    def pods(self) -> list[Any]:
        """Return all pods."""
        return [self.find("pods", name, "default") for name in self.names("pods", "default")]

    def ready(self, name: str) -> None:
        """Make a pod ready."""
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(self.clock.seconds())}
        status = {"phase": "Running", "conditions": [condition]}
        self.change("pods", name, lambda pod: pod.update(status=status), "default", subresource="status")

    def status(self) -> Any:
        """Return the status of the ReplicaSet."""
        return self.find("replicasets", "a", "default", "apps")["status"]
