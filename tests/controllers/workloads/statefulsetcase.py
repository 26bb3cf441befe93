"""StatefulSets and their pods."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.workloads.statefulset import StatefulSetController
from tests.controllers.kubelet import KubeletTestCase

LABELS = {"app": "db"}


def template(image: str) -> Any:
    """A template of pods."""
    container = {"name": "c", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


class StatefulSetTestCase(KubeletTestCase):
    """A test with the tools of several test cases."""

    resources = (
        "namespaces",
        "pods",
        "statefulsets",
        "controllerrevisions",
        "persistentvolumeclaims",
        "events",
    )

    def setUp(self) -> None:
        """A namespace and the controller."""
        super().setUp()
        self.make("namespaces", "default")
        self.start(StatefulSetController)

    def set_of(self, replicas: int = 3, image: str = "a", **spec: Any) -> Any:
        """Make a set."""
        spec = {
            "replicas": replicas,
            "serviceName": "db",
            "selector": {"matchLabels": LABELS},
            "template": template(image),
            "volumeClaimTemplates": [CLAIM],
            **spec,
        }
        return self.make("statefulsets", "db", "default", "apps", spec=spec)

    def edit(self, **spec: Any) -> None:
        """Change the spec."""
        self.change("statefulsets", "db", lambda obj: obj["spec"].update(spec), "default", "apps")

    def status(self) -> Any:
        """Of the set."""
        return self.find("statefulsets", "db", "default", "apps")["status"]

    def pod_names(self) -> list[str]:
        """All pods' names."""
        return self.names("pods", "default")

    def images(self) -> list[str]:
        """The images of the pods, by number."""
        return [pod["spec"]["containers"][0]["image"] for pod in self.pods()]

    def claims(self) -> list[str]:
        """The names of all claims."""
        return self.names("persistentvolumeclaims", "default")
