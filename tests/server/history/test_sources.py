"""Tests of L{kubetwist.server.history.sources}; F{test_endpoint.py} reads samples of a server."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.registry import Histogram, Registry
from kubetwist.server.history.sources import SLICE, ProcessSource, _key, batched, history_bounds

LABELS = ("verb", "group", "version", "resource", "subresource", "scope", "component", "dry_run")
_TOTAL = (*LABELS, "code")


class ProcessSourceTests(SynchronousTestCase):
    """L{ProcessSource}."""

    def setUp(self) -> None:
        """Create the source of a process without APIs."""
        self.registry = Registry()
        self.durations = self.registry.histogram("apiserver_request_duration_seconds", "", (0.1, 1.0), LABELS)
        self.total = self.registry.counter("apiserver_request_total", "", _TOTAL)
        self.clock = Clock()
        self.ready = True
        config: Any = Mock(metrics=self.registry, reactor=self.clock, backend=Mock(spec=["path"], path="/missing"))
        config.workers.number = 0
        site: Any = Mock(long_running_requests={1: None, 2: None})
        self.delays = Histogram((0.1,))
        self.source = ProcessSource(config, None, site, None, self.delays, lambda: self.ready)

    def test_slices(self) -> None:
        """A sample of many series is taken in several turns of the reactor."""
        for number in range(3 * SLICE):
            labels = ("GET", "", "v1", f"r{number}", "", "resource", "apiserver", "")
            self.durations.with_label_values(*labels).observe(0.5)
            self.total.with_label_values(*labels, "404").value += 2
            self.total.with_label_values(*labels, "200").value += 1
        turns: list[object] = []

        def call_later(delay: float, call: Any, *arguments: Any) -> Any:
            turns.append(delay)
            return Clock.callLater(self.clock, delay, call, *arguments)

        self.patch(self.clock, "callLater", call_later)
        taken = Deferred.fromCoroutine(self.source.take())
        self.assertNoResult(taken)
        self.clock.advance(0)
        sample = self.successResultOf(taken)
        self.assertEqual(turns, [0, 0, 0])
        self.assertEqual(len(sample.requests), 3 * SLICE)
        self.assertEqual(sample.requests["GET", "r1"].counts, [0, 1, 0])
        self.assertEqual(sample.errors["GET", "r1"].refused, 2)

    def test_values(self) -> None:
        """A sample has what has changed, and the state of the process."""
        self.delays.observe(0.05)
        self.ready = False
        values = self.successResultOf(self.source.take_encoded())
        self.assertEqual(values[3], [0.05, [1, 0]])
        self.assertEqual(values[5]["long_running"], 2.0)
        self.assertGreater(values[5]["memory"], 1e6)
        self.assertEqual(values[6]["storage_size"], 0.0)
        self.assertEqual(values[7], {"ready": 0.0})
        again = self.successResultOf(self.source.take_encoded())
        self.assertEqual(again[3], [0.0, []])

    def test_etcd(self) -> None:
        """The size of the largest database, and the health of the members, are read from the client of etcd."""
        healthy, unhealthy = Mock(unhealthy_since=None), Mock(unhealthy_since=5.0)
        client = Mock(members=[healthy, unhealthy], metrics=Mock(sizes={"a": 5, "b": 7}))
        self.source._backend = Mock(spec=["client"], client=client)
        self.source._config.backend = Mock(spec=["client"])
        sample = self.successResultOf(self.source.take())
        self.assertEqual(sample.highest, {"storage_size": 7.0, "etcd_members": 2.0, "etcd_healthy": 1.0})
        self.assertEqual(sample.lowest, {"ready": 1.0})
        healthy.unhealthy_since = 6.0
        self.assertEqual(self.successResultOf(self.source.take()).lowest, {"ready": 0.0})

    def test_unwritable(self) -> None:
        """A server whose store cannot be written is not ready."""
        self.source._backend = Mock(spec=["metrics"], metrics=Mock(writable=False))
        self.assertEqual(self.successResultOf(self.source.take()).lowest, {"ready": 0.0})

    def test_key(self) -> None:
        """Resources are named as in kubectl, with their subresource; other requests by their path."""
        for group, resource, subresource, name in (
            ("", "pods", "", "pods"),
            ("apps", "deployments", "scale", "deployments.apps/scale"),
            ("", "", "/healthz", "/healthz"),
        ):
            self.assertEqual(_key(("GET", group, "v1", resource, subresource, "", "")), ("GET", name))

    def test_batched(self) -> None:
        """There is a pause after each full slice."""
        self.assertEqual(len(list(batched(range(7), 3))), 2)
        self.assertEqual(len(list(batched(range(6), 3))), 2)
        self.assertEqual(len(list(batched([], 3))), 0)

    def test_bounds(self) -> None:
        """The bounds are read from the metric, which is not changed."""
        self.assertEqual(history_bounds(self.registry).requests, (0.1, 1.0))
        self.assertEqual(self.durations.children(), [])
        self.assertEqual(history_bounds(Registry()).requests, ())
