"""Tests of L{kubetwist.client.metrics}."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import CallError
from kubetwist.client.factory import ClientFactory
from kubetwist.client.metrics import CallMetrics
from kubetwist.client.restconfig import RESTConfig
from kubetwist.metrics.registry import Histogram
from kubetwist.testing.webhooks import HANG_UP, Reply

from .clientcase import ClientCase


def values_of(readings: Any, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of a metric by labels; for histograms the number of observations."""
    return {
        labels: value.count if isinstance(value, Histogram) else value
        for reading in readings
        if reading.name == f"rest_client_{name}"
        for labels, value in reading.values
    }


class CallMetricsTests(SynchronousTestCase):
    """L{CallMetrics<kubetwist.client.metrics.CallMetrics>}."""

    def test_bounded(self) -> None:
        """The number of hosts with separate counters is limited."""
        metrics = CallMetrics()
        for number in range(500):
            metrics.answered(f"h{number}:443", 200, 0.1, 10, 20)
        counts = values_of(metrics.collect(0), "requests_total")
        self.assertEqual(len(counts), 201)
        self.assertEqual(counts["200", "POST", "other"], 300)

    def test_nameless(self) -> None:
        """Calls that fail because of a certificate without SANs are counted."""
        metrics = CallMetrics()
        metrics.failed("a", 0.1, 1, nameless=True)
        metrics.failed("a", 0.1, 1)
        counted = [reading for reading in metrics.collect(0) if reading.name.endswith("missing_san_total")]
        self.assertEqual([list(one.values) for one in counted], [[((), 1.0)]])


class OutgoingTests(ClientCase):
    """Metrics of a factory's clients."""

    async def test_counted(self) -> None:
        """Calls are counted by host and code; calls without a response as errors without a response size."""
        server = await self.serve(lambda call: HANG_UP if call.body == b"bad" else Reply(201, b"12345"))
        outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.addCleanup(lambda: Deferred.fromCoroutine(outgoing.close()))
        client = outgoing.client(RESTConfig(url=f"{server.url}/hook", ca=server.ca))
        for body in (b"good", b"good"):
            await client.post(body, timeout=10)
        try:
            await client.post(b"bad", timeout=10)
        except CallError:
            pass
        else:
            self.fail("it was answered")
        host = server.url.removeprefix("https://")
        readings = list(outgoing.collect())
        counts = {("201", "POST", host): 2, ("<error>", "POST", host): 1}
        self.assertEqual(values_of(readings, "requests_total"), counts)
        self.assertEqual(values_of(readings, "request_duration_seconds"), {("POST", host): 3})
        self.assertEqual(values_of(readings, "request_size_bytes"), {("POST", host): 3})
        self.assertEqual(values_of(readings, "response_size_bytes"), {("POST", host): 2})
        self.assertEqual(values_of(readings, "transport_create_calls_total"), {("miss",): 1})
        self.assertEqual(values_of(readings, "transport_cache_entries"), {(): 1})
