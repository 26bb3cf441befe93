"""Tests for L{kubetwist.controllers.fakekubelet.usage}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.selectors import parse_label_selector
from kubetwist.api.times import format_time
from kubetwist.controllers.fakeimages import FakeImages, parse_images
from kubetwist.controllers.fakekubelet.usage import SimulatedUsage, simulated_usage
from kubetwist.controllers.machinery.context import ControllerContext
from tests.controllers.harness import ControllerTestCase

LABEL = "kubetwist.dev/pretend-node"


class SimulatedUsageTests(ControllerTestCase):
    """The usage of pods on two simulated nodes, and on one that is not simulated."""

    resources = ("namespaces", "nodes", "pods")

    def setUp(self) -> None:
        """Create the nodes."""
        super().setUp()
        self.make("namespaces", "default")
        self.make("namespaces", "other")
        for name, simulated in (("one", "true"), ("two", "true"), ("real", "false")):
            self.make("nodes", name, metadata={"labels": {LABEL: simulated}})
        self.images = FakeImages(parse_images({"web": {"usage": {"cpu": "250m", "memory": "64Mi"}}}))
        self.usage = SimulatedUsage(self.stores, self.images, self.clock)

    def pod(
        self,
        name: str,
        *images: str,
        node: str = "one",
        namespace: str = "default",
        phase: str = "Running",
        waiting: int = 0,
        **meta: Any,
    ) -> None:
        """
        Create a pod with containers C{c0}, C{c1}, ...

        @param name: Its name.
        @param images: The images of the containers; one C{web} without them.
        @param node: Its node.
        @param namespace: Its namespace.
        @param phase: Its phase.
        @param waiting: Number of containers that are not running yet.
        @param meta: Further metadata.
        """
        images = images or ("web",)
        containers = [{"name": f"c{index}", "image": image} for index, image in enumerate(images)]
        running = {"running": {"startedAt": format_time(self.clock.seconds())}}
        states = [running] * (len(images) - waiting) + [{"waiting": {"reason": "ContainerCreating"}}] * waiting
        status = {
            "phase": phase,
            "containerStatuses": [
                {"name": f"c{index}", "ready": True, "restartCount": 0, "image": "", "imageID": "", "state": state}
                for index, state in enumerate(states)
            ],
        }
        self.make(
            "pods", name, namespace, metadata=meta, spec={"containers": containers, "nodeName": node}, status=status
        )

    def usages(self, namespace: str = "", selector: str = "") -> dict[str, Any]:
        """Return the usage of containers by pod."""
        found = self.successResultOf(self.usage.pods(namespace, parse_label_selector(selector)))
        return {
            one["metadata"]["name"]: {container["name"]: container["usage"] for container in one["containers"]}
            for one in found
        }

    def test_configured(self) -> None:
        """The configuration of the image states the usage; there is a small one without it."""
        self.pod("a", "web:1.2", "unknown")
        self.assertEqual(
            self.usages(), {"a": {"c0": {"cpu": "250m", "memory": "64Mi"}, "c1": {"cpu": "1m", "memory": "16Mi"}}}
        )
        self.images.replace(parse_images({"web": {"usage": {"cpu": "2"}}}))
        self.assertEqual(self.usages()["a"]["c0"], {"cpu": "2", "memory": "0"})

    def test_annotations(self) -> None:
        """Annotations of the pod precede the image; invalid ones are ignored."""
        notes = {
            "kubetwist.dev/usage-cpu": "500m",
            "kubetwist.dev/usage-cpu.c1": "0",
            "kubetwist.dev/usage-memory": "much",
            "kubetwist.dev/usage-memory.c1": "-1",
        }
        self.pod("a", "web", "web", annotations=notes)
        self.assertEqual(
            self.usages(), {"a": {"c0": {"cpu": "500m", "memory": "64Mi"}, "c1": {"cpu": "0", "memory": "64Mi"}}}
        )

    def test_selection(self) -> None:
        """Running pods on simulated nodes have metrics, and their running containers."""
        self.pod("a", "web", "web", waiting=1)
        self.pod("b", namespace="other", labels={"app": "b"})
        self.pod("c", phase="Pending")
        self.pod("d", phase="Succeeded")
        self.pod("e", node="real")
        self.pod("f", "web", waiting=1)
        self.assertEqual({name: list(found) for name, found in self.usages().items()}, {"a": ["c0"], "b": ["c0"]})
        self.assertEqual(list(self.usages("other")), ["b"])
        self.assertEqual(list(self.usages(selector="app=b")), ["b"])
        self.assertEqual(self.usage.pod("default", "e"), None)
        self.assertEqual(self.usage.pod("default", "c"), None)
        self.assertEqual(self.usage.pod("default", "x"), None)

    def test_form(self) -> None:
        """The objects have the form of the API."""
        self.pod("b", namespace="other", labels={"app": "b"})
        stamp = format_time(self.clock.seconds())
        usage = {"cpu": "250m", "memory": "64Mi"}
        head = {"apiVersion": "metrics.k8s.io/v1beta1", "timestamp": stamp, "window": "15s"}
        meta: dict[str, Any] = {
            "name": "b",
            "namespace": "other",
            "creationTimestamp": stamp,
            "labels": {"app": "b"},
        }
        expected = {**head, "kind": "PodMetrics", "metadata": meta, "containers": [{"name": "c0", "usage": usage}]}
        self.assertEqual(self.usage.pod("other", "b"), expected)
        (node,) = self.successResultOf(self.usage.nodes("one"))
        meta = {"name": "one", "creationTimestamp": stamp, "labels": {LABEL: "true"}}
        self.assertEqual(node, {**head, "kind": "NodeMetrics", "metadata": meta, "usage": usage})

    def test_nodes(self) -> None:
        """The usage of a node is the sum of its pods."""
        self.pod("a")
        self.pod("b", "web", "unknown")
        found = self.successResultOf(self.usage.nodes())
        self.assertEqual(
            {one["metadata"]["name"]: one["usage"] for one in found},
            {"one": {"cpu": "501m", "memory": "144Mi"}, "two": {"cpu": "0", "memory": "0"}},
        )
        self.assertEqual(self.successResultOf(self.usage.nodes("real")), [])

    def test_slices(self) -> None:
        """Between the slices of a long computation the reactor runs."""
        for number in range(120):
            self.pod(f"p{number}")
        seconds = self.clock.seconds()

        class Slow:
            """A clock on which each look takes five milliseconds."""

            callLater = self.clock.callLater
            looks = 0

            def seconds(self) -> float:
                self.looks += 1
                return seconds + self.looks * 0.005

        usage = SimulatedUsage(self.stores, self.images, Slow())  # type: ignore[arg-type] # the methods that are called
        result = Deferred.fromCoroutine(usage.pods())
        self.assertNoResult(result)
        self.settle()
        self.assertEqual(len(self.successResultOf(result)), 120)

    def test_enabled(self) -> None:
        """There is usage if the server has simulated nodes."""
        self.assertIsNone(simulated_usage(self.context))
        for number in (0, 3):
            config: Any = SimpleNamespace(options={"fake-nodes": number}, images=self.images)
            context = ControllerContext(self.registry, self.clock, config)
            self.assertEqual(simulated_usage(context) is not None, number > 0)
