"""Tests for L{kubetwist.controllers.autoscaling.metricsclient}."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, cast

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersion, UserInfo
from kubetwist.api.selectors import EVERYTHING, LabelSelector, parse_label_selector
from kubetwist.client.errors import Unreachable
from kubetwist.client.httpclient import Response
from kubetwist.controllers.autoscaling.metricsclient import (
    CUSTOM_METRICS,
    EXTERNAL_METRICS,
    RESOURCE_METRICS,
    MetricsClient,
    MetricTarget,
)
from kubetwist.controllers.autoscaling.samples import MetricsError, Sample

STAMP = "2027-01-15T08:00:00Z"
NOW = 1_800_000_000.0


class Server:
    """
    An API server that answers every request alike.

    @ivar requests: The paths with their queries.
    """

    def __init__(self, group_version: GroupVersion, answer: Any, code: int = 200, available: bool = True) -> None:
        self.group_version = group_version
        self.path = f"/apis/{group_version}"
        self.available = available
        self.requests: list[str] = []
        self._answer, self._code = answer, code

    async def call(
        self,
        method: str,
        path: str,
        user: UserInfo,
        *,
        headers: Mapping[str, Sequence[str]],
        body: bytes = b"",
        query: str = "",
        timeout: float = 0.0,
    ) -> Response:
        """Answer a request."""
        self.requests.append(f"{method} {path}" + (f"?{query}" if query else ""))
        if isinstance(self._answer, Exception):
            raise self._answer
        return Response(self._code, {"content-type": "application/json"}, json.dumps(self._answer).encode())


class Aggregation:
    """The servers behind APIServices."""

    def __init__(self, *servers: Server) -> None:
        self.aggregated_servers = {server.group_version: server for server in servers}


def pod_metrics(name: str, *containers: tuple[str, dict[str, str]]) -> Any:
    """Return PodMetrics."""
    return {
        "metadata": {"name": name, "namespace": "ns"},
        "timestamp": STAMP,
        "window": "15s",
        "containers": [{"name": container, "usage": usage} for container, usage in containers],
    }


PODS = [
    pod_metrics("a", ("c", {"cpu": "250m", "memory": "1Ki"}), ("d", {"cpu": "1", "memory": "1Ki"})),
    pod_metrics("b", ("c", {"cpu": "1"})),
]


class MetricsClientTests(SynchronousTestCase):
    """Metrics of other servers, and of this one."""

    def client(self, *servers: Server, local: Any = None) -> MetricsClient:
        """Return a client of the servers."""
        return MetricsClient(UserInfo("u"), cast("Any", Aggregation(*servers)), local)

    def failure(self, result: Coroutine[Any, Any, Any]) -> str:
        """Return the text of an error."""
        return str(self.failureResultOf(result, MetricsError).value)

    def test_resource(self) -> None:
        """The usage of containers is added; a pod with a container without usage is left out."""
        server = Server(RESOURCE_METRICS, {"items": PODS})
        client, selector = self.client(server), parse_label_selector("app=web,x!=y")
        found = self.successResultOf(client.resource("cpu", "ns", selector))
        self.assertEqual(found, {"a": Sample(1250, NOW, 15.0), "b": Sample(1000, NOW, 15.0)})
        self.assertEqual(
            server.requests,
            ["GET /apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Dweb%2Cx%21%3Dy"],
        )
        found = self.successResultOf(client.resource("memory", "ns", EVERYTHING))
        self.assertEqual(found, {"a": Sample(2048_000, NOW, 15.0)})

    def test_container(self) -> None:
        """One container counts if it is named."""
        client = self.client(Server(RESOURCE_METRICS, {"items": PODS}))
        found = self.successResultOf(client.resource("cpu", "ns", EVERYTHING, "c"))
        self.assertEqual({name: one.value for name, one in found.items()}, {"a": 250, "b": 1000})
        self.assertEqual(
            self.failure(client.resource("cpu", "ns", EVERYTHING, "d")),
            "container d not present in metrics for pod ns/b",
        )

    def test_local(self) -> None:
        """The usage that this server knows is used unless another server serves it."""
        asked = []

        async def local(namespace: str, selector: LabelSelector) -> Any:
            asked.append((namespace, str(selector)))
            return PODS[1:]

        selector = parse_label_selector("a=b")
        found = self.successResultOf(self.client(local=local).resource("cpu", "ns", selector))
        self.assertEqual((list(found), asked), (["b"], [("ns", "a=b")]))
        server = Server(RESOURCE_METRICS, {"items": PODS})
        found = self.successResultOf(self.client(server, local=local).resource("cpu", "ns", selector))
        self.assertEqual((list(found), len(asked)), (["a", "b"], 1))

    def test_resource_errors(self) -> None:
        """Errors have the texts of the reference."""
        missing = "the server could not find the requested resource (get pods.metrics.k8s.io)"
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "message": "not you"}
        down = "the server is currently unable to handle the request (get pods.metrics.k8s.io)"
        cases: list[tuple[MetricsClient, str]] = [
            (MetricsClient(UserInfo("u"), None), missing),
            (self.client(), missing),
            (self.client(Server(RESOURCE_METRICS, {}, available=False)), down),
            (self.client(Server(RESOURCE_METRICS, Unreachable("no route"))), "no route"),
            (self.client(Server(RESOURCE_METRICS, status, 403)), "not you"),
            (self.client(Server(RESOURCE_METRICS, [])), "the response is no list of metrics"),
            (self.client(Server(RESOURCE_METRICS, {"items": [1]})), "the response is no list of metrics"),
            (self.client(Server(RESOURCE_METRICS, {"items": [{}]})), "the response is no list of metrics"),
        ]
        for client, text in cases:
            self.assertEqual(
                self.failure(client.resource("cpu", "ns", EVERYTHING)),
                f"unable to fetch metrics from resource metrics API: {text}",
            )
        empty = self.client(Server(RESOURCE_METRICS, {"items": []}))
        self.assertEqual(
            self.failure(empty.resource("cpu", "ns", EVERYTHING)), "no metrics returned from resource metrics API"
        )

    def test_pods(self) -> None:
        """Metrics of pods have a window of one minute, or the one that they state."""
        items = [
            {"describedObject": {"name": "a"}, "timestamp": STAMP, "value": "5"},
            {"describedObject": {"name": "b"}, "timestamp": STAMP, "value": "10m", "windowSeconds": 5},
        ]
        server = Server(CUSTOM_METRICS[0], {"items": items})
        result = self.client(server).pods("rate", "ns", parse_label_selector("a=b"), parse_label_selector("c=d"))
        self.assertEqual(self.successResultOf(result), {"a": Sample(5000, NOW, 60.0), "b": Sample(10, NOW, 5.0)})
        path = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/*/rate"
        self.assertEqual(server.requests, [f"GET {path}?labelSelector=a%3Db&metricLabelSelector=c%3Dd"])

    def test_object(self) -> None:
        """Metrics of objects are read in the newest version that is served."""
        server = Server(CUSTOM_METRICS[1], {"items": [{"value": "1500m"}]})
        client = self.client(server)
        targets = (
            MetricTarget("ingresses.networking.k8s.io", "ns", "main"),
            MetricTarget("nodes", "", "n"),
            MetricTarget("namespaces", "", "ns"),
        )
        for target in targets:
            self.assertEqual(self.successResultOf(client.object("hits", target, EVERYTHING)), 1500)
        base = "GET /apis/custom.metrics.k8s.io/v1beta1"
        self.assertEqual(
            server.requests,
            [
                f"{base}/namespaces/ns/ingresses.networking.k8s.io/main/hits",
                f"{base}/nodes/n/hits",
                f"{base}/namespaces/ns/metrics/hits",
            ],
        )

    def test_custom_errors(self) -> None:
        """Missing and invalid custom metrics are errors."""
        target = MetricTarget("services", "ns", "s")
        prefix = "unable to fetch metrics from custom metrics API: "
        cases: list[tuple[MetricsClient, str]] = [
            (self.client(), f"{prefix}no custom metrics API (custom.metrics.k8s.io) registered"),
            (self.client(Server(CUSTOM_METRICS[0], {"items": []})), "no metrics returned from custom metrics API"),
            (self.client(Server(CUSTOM_METRICS[0], {"items": [{}]})), f"{prefix}the response is no list of metrics"),
        ]
        for client, text in cases:
            self.assertEqual(self.failure(client.object("m", target, EVERYTHING)), text)
        broken = self.client(Server(CUSTOM_METRICS[0], {"items": [{}]}))
        self.assertEqual(
            self.failure(broken.pods("m", "ns", EVERYTHING, EVERYTHING)), f"{prefix}the response is no list of metrics"
        )

    def test_external(self) -> None:
        """All values of an external metric are returned."""
        server = Server(EXTERNAL_METRICS, {"items": [{"value": "1"}, {"value": "2m"}]})
        result = self.client(server).external("queue", "ns", parse_label_selector("a=b"))
        self.assertEqual(self.successResultOf(result), [1000, 2])
        path = "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue"
        self.assertEqual(server.requests, [f"GET {path}?labelSelector=a%3Db"])
        missing = "the server could not find the requested resource (get queue.external.metrics.k8s.io)"
        self.assertEqual(
            self.failure(self.client().external("queue", "ns", EVERYTHING)),
            f"unable to fetch metrics from external metrics API: {missing}",
        )
        empty = self.client(Server(EXTERNAL_METRICS, {"items": []}))
        self.assertEqual(
            self.failure(empty.external("queue", "ns", EVERYTHING)), "no metrics returned from external metrics API"
        )
