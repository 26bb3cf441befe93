"""Tests for L{kubetwist.resources.metricsapi}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.api.resource import GroupVersion
from kubetwist.controllers.fakeimages import FakeImages, parse_images
from kubetwist.controllers.fakekubelet.usage import SimulatedUsage
from kubetwist.controllers.machinery.client import Client
from kubetwist.controllers.machinery.context import ControllerContext
from kubetwist.resources.handlers.watch import WatchFlusher
from kubetwist.resources.metricsapi import MetricsAPI
from kubetwist.resources.servedresources import Priority
from tests.resources.server import ADMIN, Server, definitions

BASE = "/apis/metrics.k8s.io/v1beta1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


class MetricsAPITests(SynchronousTestCase):
    """The metrics of a node with two pods, over HTTP in memory."""

    def setUp(self) -> None:
        """Create the objects."""
        self.server = server = Server("namespaces", "nodes", "pods", types=definitions())
        images = FakeImages(parse_images({"web": {"usage": {"cpu": "250m", "memory": "64Mi"}}}))
        self.api = MetricsAPI(
            server.installer.mux,
            SimulatedUsage(server.stores, images, server.clock),
            definitions(),
            server.clock,  # type: ignore[arg-type] # the methods that are called
            WatchFlusher(server.clock),
            defer_to_thread=server._in_thread,
            traced=False,
            features=FeatureGates(),
        )
        self.client = server.client()
        self.write = Client(ControllerContext(server.registry, server.clock), ADMIN)
        self.make("namespaces", {"metadata": {"name": "default"}})
        self.make("nodes", {"metadata": {"name": "n", "labels": {"kubetwist.dev/pretend-node": "true"}}})
        for name in "ab":
            containers = [{"name": "c", "image": "web"}, {"name": "d", "image": "web"}]
            meta = {"name": name, "namespace": "default", "labels": {"app": name}}
            self.make("pods", {"metadata": meta, "spec": {"nodeName": "n", "containers": containers}})
            self.run_(self.write.update_status("", "pods", "default", name, _start))

    def run_(self, coroutine: Any) -> Any:
        """Return the result of a coroutine."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def make(self, resource: str, obj: Any) -> None:
        """Create an object."""
        self.run_(self.write.create("", resource, obj))

    def get(self, path: str, **headers: str) -> Any:
        """Return the answer to a GET, which succeeds."""
        code, answer = self.client.ask("GET", BASE + path, **headers)
        self.assertEqual(code, 200, answer)
        return answer

    def test_pods(self) -> None:
        """Pods are listed in all namespaces and in one, by labels and fields, and read by name."""
        listed = self.get("/pods")
        self.assertEqual((listed["kind"], listed["apiVersion"]), ("PodMetricsList", "metrics.k8s.io/v1beta1"))
        self.assertEqual([one["metadata"]["name"] for one in listed["items"]], ["a", "b"])
        usage = {"cpu": "250m", "memory": "64Mi"}
        expected = [{"name": "c", "usage": usage}, {"name": "d", "usage": usage}]
        self.assertEqual(listed["items"][0]["containers"], expected)
        inside = "/namespaces/default/pods"
        for query in ("?labelSelector=app%3Db", "?fieldSelector=metadata.name%3Db"):
            self.assertEqual([one["metadata"]["name"] for one in self.get(inside + query)["items"]], ["b"])
        self.assertEqual(self.get("/namespaces/other/pods")["items"], [])
        self.assertEqual(self.get("/pods?fieldSelector=metadata.name%3Da,metadata.name%3Db")["items"], [])
        one = self.get(f"{inside}/a")
        self.assertEqual((one["kind"], one["metadata"]["namespace"]), ("PodMetrics", "default"))

    def test_nodes(self) -> None:
        """Nodes have no namespace."""
        self.assertEqual(len(self.get("/nodes")["items"]), 1)
        node = self.get("/nodes/n")
        self.assertEqual((node["kind"], node["usage"]), ("NodeMetrics", {"cpu": "1", "memory": "256Mi"}))

    def test_errors(self) -> None:
        """Unknown objects are not found. There are no writes and no watches."""
        cases = [
            ("GET", "/namespaces/default/pods/x", 404, 'podmetrics.metrics.k8s.io "default/x" not found'),
            ("GET", "/nodes/x", 404, 'nodemetrics.metrics.k8s.io "x" not found'),
            ("GET", "/nodes?watch=1", 405, 'watch is not supported on resources of kind "nodes.metrics.k8s.io"'),
        ]
        for method, path, code, message in cases:
            answer = self.client.ask(method, BASE + path)
            self.assertEqual((answer[0], answer[1]["message"]), (code, message))
        self.assertEqual(self.client.answer("DELETE", f"{BASE}/nodes/n").code, 405)

    def test_tables(self) -> None:
        """Tables have the columns of metrics-server; the usage of containers is added."""
        table = self.get("/namespaces/default/pods", Accept=TABLE)
        self.assertEqual([one["name"] for one in table["columnDefinitions"]], ["Name", "cpu", "memory", "window"])
        self.assertEqual(table["rows"][0]["cells"], ["a", "500m", "128Mi", "15s"])
        self.assertEqual(self.get("/nodes", Accept=TABLE)["rows"][0]["cells"], ["n", "1", "256Mi", "15s"])

    def test_json_first(self) -> None:
        """Clients that would prefer protobuf get JSON, as for custom resources."""
        self.assertEqual(
            len(self.get("/nodes", Accept="application/vnd.kubernetes.protobuf,application/json")["items"]), 1
        )

    def test_discovery(self) -> None:
        """The resources are in discovery and OpenAPI, with the priority of metrics-server."""
        group_version = GroupVersion("metrics.k8s.io", "v1beta1")
        served = self.api.served_resources
        self.assertEqual(served.group_versions(), [group_version])
        self.assertEqual(served.priorities[group_version], Priority(100, 100))
        entries = served.resources(group_version)
        self.assertEqual(
            [(one.resource, one.kind.kind, one.singular, one.namespaced, one.verbs) for one in entries],
            [("nodes", "NodeMetrics", "", False, ("get", "list")), ("pods", "PodMetrics", "", True, ("get", "list"))],
        )
        self.assertIn("usage", str(entries[0].custom.definitions("#/")))


def _start(pod: Any) -> None:
    """Set the status of a running pod."""
    running = {"running": {"startedAt": "2027-01-15T08:00:00Z"}}
    pod["status"] = {
        "phase": "Running",
        "containerStatuses": [
            {"name": name, "ready": True, "restartCount": 0, "image": "", "imageID": "", "state": running}
            for name in "cd"
        ],
    }
