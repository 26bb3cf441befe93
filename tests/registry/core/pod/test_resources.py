"""Tests for L{kubetwist.registry.core.pod.resources}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.pod.resources import aggregate_container_resources, pod_resources


def container(cpu: str, **parts: Any) -> dict[str, Any]:
    """A container that asks for CPU."""
    return {"resources": {"requests": {"cpu": cpu}}, **parts}


def cpu(**spec: Any) -> str:
    """The CPU that a whole pod asks for."""
    return str(pod_resources(spec, "requests")["cpu"])


class AmountTests(SynchronousTestCase):
    """Tests for L{pod_resources}."""

    def test_containers(self) -> None:
        """Containers run at a time, so they add up."""
        self.assertEqual(cpu(containers=[container("1"), container("500m")]), "1500m")

    def test_init(self) -> None:
        """Init containers run one after the other, before the others: the greatest need counts."""
        self.assertEqual(cpu(containers=[container("1")], initContainers=[container("3"), container("2")]), "3")
        self.assertEqual(cpu(containers=[container("4")], initContainers=[container("3")]), "4")

    def test_sidecars(self) -> None:
        """An init container that is restarted runs beside all that come after it."""
        sidecar = container("1", restartPolicy="Always")
        self.assertEqual(cpu(containers=[container("1")], initContainers=[sidecar]), "2")
        self.assertEqual(cpu(containers=[container("1")], initContainers=[sidecar, container("5")]), "6")
        self.assertEqual(cpu(containers=[container("1")], initContainers=[container("5"), sidecar]), "5")

    def test_whole(self) -> None:
        """What is said for the pod as a whole counts instead, and overhead is added to either."""
        whole = {"requests": {"cpu": "7"}}
        self.assertEqual(cpu(containers=[container("1")], resources=whole), "7")
        self.assertEqual(cpu(containers=[container("1")], resources=whole, overhead={"cpu": "1"}), "8")
        spec = {"containers": [container("1")], "resources": whole}
        self.assertEqual(str(aggregate_container_resources(spec, "requests")["cpu"]), "1")

    def test_limits(self) -> None:
        """Overhead gives no limit to what has none."""
        spec = {"containers": [{"resources": {"limits": {"cpu": "1"}}}], "overhead": {"cpu": "1", "memory": "1Gi"}}
        found = {name: str(amount) for name, amount in pod_resources(spec, "limits").items()}
        self.assertEqual(found, {"cpu": "2"})
