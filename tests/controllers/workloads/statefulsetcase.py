"""Test case for StatefulSets."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.workloads.statefulset import StatefulSetController
from tests.controllers.kubelet import KubeletTestCase

LABELS = {"app": "db"}


def template(image: str) -> Any:
    """Return a pod template."""
    container = {"name": "c", "image": image, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


class StatefulSetTestCase(KubeletTestCase):
    """Test case with a StatefulSet and its pods."""

    resources = (
        "namespaces",
        "pods",
        "statefulsets",
        "controllerrevisions",
        "persistentvolumeclaims",
        "events",
    )

    def setUp(self) -> None:
        """Create a namespace and start the controller."""
        super().setUp()
        self.make("namespaces", "default")
        self.start(StatefulSetController)

    def set_of(self, replicas: int = 3, image: str = "a", **spec: Any) -> Any:
        """Create a StatefulSet."""
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
        """Return the status."""
        return self.find("statefulsets", "db", "default", "apps")["status"]

    def pod_names(self) -> list[str]:
        """Return the names of all pods."""
        return self.names("pods", "default")

    def images(self) -> list[str]:
        """Return the images of the pods, by ordinal."""
        return [pod["spec"]["containers"][0]["image"] for pod in self.pods()]

    def claims(self) -> list[str]:
        """Return the names of all claims."""
        return self.names("persistentvolumeclaims", "default")
