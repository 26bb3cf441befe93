"""ReplicaSets and their pods."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from tests.controllers.harness import ControllerTestCase

LABELS = {"app": "a"}


SPEC = {"containers": [{"name": "c", "image": "c:1"}]}


class ReplicaSetTestCase(ControllerTestCase):
    """A test with the tools of several test cases."""

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
        self.change("pods", name, lambda pod: pod.update(status=status), "default", subresource="status")

    def status(self) -> Any:
        """The status of the set."""
        return self.find("replicasets", "a", "default", "apps")["status"]
