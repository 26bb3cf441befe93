"""Tests of L{kubetwist.registry.core.pod.resources}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.resources import aggregate_container_resources, pod_resources


def container(cpu: str, **parts: Any) -> dict[str, Any]:
    """Return a container that requests CPU."""
    return {"resources": {"requests": {"cpu": cpu}}, **parts}


def cpu(**spec: Any) -> str:
    """Return the CPU that a pod requests."""
    return str(pod_resources(spec, "requests")["cpu"])


class AmountTests(SynchronousTestCase):
    """Tests of L{pod_resources}."""

    def test_containers(self) -> None:
        """The requests of containers are added."""
        self.assertEqual(cpu(containers=[container("1"), container("500m")]), "1500m")

    def test_init(self) -> None:
        """The maximum request of init containers counts."""
        self.assertEqual(cpu(containers=[container("1")], initContainers=[container("3"), container("2")]), "3")
        self.assertEqual(cpu(containers=[container("4")], initContainers=[container("3")]), "4")

    def test_sidecars(self) -> None:
        """The requests of sidecars are added to those of later containers."""
        sidecar = container("1", restartPolicy="Always")
        self.assertEqual(cpu(containers=[container("1")], initContainers=[sidecar]), "2")
        self.assertEqual(cpu(containers=[container("1")], initContainers=[sidecar, container("5")]), "6")
        self.assertEqual(cpu(containers=[container("1")], initContainers=[container("5"), sidecar]), "5")

    def test_whole(self) -> None:
        """Pod-level requests replace those of containers; the overhead is added to either."""
        whole = {"requests": {"cpu": "7"}}
        self.assertEqual(cpu(containers=[container("1")], resources=whole), "7")
        self.assertEqual(cpu(containers=[container("1")], resources=whole, overhead={"cpu": "1"}), "8")
        spec = {"containers": [container("1")], "resources": whole}
        self.assertEqual(str(aggregate_container_resources(spec, "requests")["cpu"]), "1")

    def test_limits(self) -> None:
        """The overhead is not added to missing limits."""
        spec = {"containers": [{"resources": {"limits": {"cpu": "1"}}}], "overhead": {"cpu": "1", "memory": "1Gi"}}
        found = {name: str(amount) for name, amount in pod_resources(spec, "limits").items()}
        self.assertEqual(found, {"cpu": "2"})
