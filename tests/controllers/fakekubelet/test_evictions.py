"""Tests for L{kubetwist.controllers.fakekubelet.evictions}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.controllers.fakeimages import FakeImages, parse_images
from kubetwist.controllers.fakekubelet.evictions import exceeded_limit, next_eviction, rejection

MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 64Mi. "


def pod(name: str, priority: int = 0, requests: Any = None, qos: str = "Burstable", **usage: str) -> dict[str, Any]:
    """Return a pod with one container."""
    annotations = {f"kubetwist.dev/usage-{key.replace('_', '-')}": value for key, value in usage.items()}
    container = {"name": "c", "image": "i", "resources": {"requests": requests or {}}}
    meta = {"name": name, "namespace": "default", "annotations": annotations}
    return {"metadata": meta, "spec": {"containers": [container], "priority": priority}, "status": {"qosClass": qos}}


class EvictionTests(SynchronousTestCase):
    """L{next_eviction}, L{rejection} and L{exceeded_limit}."""

    images = FakeImages()

    def order(self, pods: list[dict[str, Any]], *pressures: str) -> list[str]:
        """Return the names of pods in the order of their eviction."""
        names = []
        while True:
            found = next_eviction(pods, pressures, self.images)
            if found is None:
                return names
            pods.remove(found.pod)
            names.append(found.pod["metadata"]["name"])

    def test_memory(self) -> None:
        """Pods that use more than they request are evicted: by priority, then by the excess."""
        pods = [
            pod("fits", requests={"memory": "1Gi"}, memory="512Mi"),
            pod("small", requests={"memory": "64Mi"}, memory="65Mi"),
            pod("important", 100, memory="8Gi"),
            pod("large", requests={"memory": "1Gi"}, memory="2Gi"),
            pod("critical", 2_000_000_000, memory="8Gi"),
            pod("besteffort"),
        ]
        self.assertEqual(self.order(pods, "MemoryPressure"), ["large", "besteffort", "small", "important"])
        found = next_eviction([pod("a", requests={"memory": "8Mi"})], {"MemoryPressure"}, self.images)
        assert found is not None
        sentence = "Container c was using 16Mi, request is 8Mi, has larger consumption of memory. "
        self.assertEqual(found.message, MEMORY + sentence)

    def test_disk(self) -> None:
        """Under pressure of the disk, the usage of ephemeral storage counts."""
        self.images = FakeImages(parse_images({"i": {"usage": {"ephemeral-storage": "2Gi"}}}))
        pods = [
            pod("fits", requests={"ephemeral-storage": "2Gi"}),
            pod("image"),
            pod("annotated", ephemeral_storage="3Gi", memory="8Gi"),
        ]
        found = next_eviction(pods, {"DiskPressure"}, self.images)
        assert found is not None
        self.assertEqual(
            found.message,
            "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 5Gi. Container c"
            " was using 3Gi, request is 0, has larger consumption of ephemeral-storage. ",
        )
        self.assertEqual(self.order(pods, "DiskPressure"), ["annotated", "image"])

    def test_processes(self) -> None:
        """Under pressure of process numbers, all pods are evicted by priority, then by their containers."""
        two = pod("two")
        two["spec"]["containers"].append({"name": "d", "image": "i"})
        pods = [pod("b"), pod("a"), pod("high", 10), two, pod("critical", 2_000_001_000)]
        found = next_eviction(pods, {"PIDPressure"}, self.images)
        assert found is not None
        self.assertEqual(found.message, "The node was low on resource: pids. Threshold quantity: 1k, available: 512. ")
        self.assertEqual(self.order(pods, "PIDPressure"), ["two", "a", "b", "high"])

    def test_several(self) -> None:
        """Memory is reclaimed first; without pressure, nothing is."""
        pods = [pod("disk", ephemeral_storage="1Gi", memory="0"), pod("memory", memory="1Gi", ephemeral_storage="0")]
        self.assertEqual(self.order(list(pods)), [])
        self.assertEqual(self.order(pods, "DiskPressure", "MemoryPressure"), ["memory", "disk"])

    def test_rejection(self) -> None:
        """A new pod is not admitted under pressure; under memory pressure only pods of class BestEffort are refused."""
        burstable, effort, critical = pod("a"), pod("b", qos="BestEffort"), pod("c", 2_000_000_000, qos="BestEffort")
        text = "Pod was rejected: The node had condition: [{}]. "
        for pressures, refused in (
            ((), [False, False, False]),
            (("MemoryPressure",), [False, True, False]),
            (("PIDPressure",), [True, True, False]),
            (("DiskPressure", "MemoryPressure"), [True, True, False]),
        ):
            found = [rejection(one, pressures) for one in (burstable, effort, critical)]
            expected = text.format(" ".join(sorted(pressures, reverse=True)))
            self.assertEqual(found, [expected if one else "" for one in refused])
        effort["spec"]["tolerations"] = [{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}]
        self.assertEqual(rejection(effort, {"MemoryPressure"}), "")

    def test_limit(self) -> None:
        """A container must not use more ephemeral storage than its limit."""
        one = pod("a", ephemeral_storage="2Gi")
        self.assertEqual(exceeded_limit(one, self.images), "")
        one["spec"]["containers"][0]["resources"]["limits"] = {"ephemeral-storage": "2Gi"}
        self.assertEqual(exceeded_limit(one, self.images), "")
        one["spec"]["containers"][0]["resources"]["limits"] = {"ephemeral-storage": "1Gi"}
        message = 'Container c exceeded its local ephemeral storage limit "1Gi". '
        self.assertEqual(exceeded_limit(one, self.images), message)
