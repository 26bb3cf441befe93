"""Tests for L{kubetwist.filters.latencytrackers}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.latency import ETCD, QUEUE, latencies
from kubetwist.filters.latencytrackers import with_latency_trackers


def request(**values: Any) -> Any:
    """A request, as far as it matters here."""
    given = {"audit": None, "apf_queue_seconds": 0.0, "times": None, "info": SimpleNamespace(long_running=False)}
    return SimpleNamespace(**{**given, **values})


class MeasuringTests(SynchronousTestCase):
    """Tests for L{with_latency_trackers}."""

    def test_measured(self) -> None:
        """What a handler spends is in the request; the context is as before afterwards."""

        def spend(request: Any) -> None:
            found = latencies.get()
            assert found is not None
            found[ETCD] = 1.0

        one = request(apf_queue_seconds=0.5)
        with_latency_trackers(spend)(one)
        self.assertEqual(one.times, {QUEUE: 0.5, ETCD: 1.0})
        self.assertIsNone(latencies.get())

    def test_audited(self) -> None:
        """Where there is an audit its trail is told."""
        trail = SimpleNamespace(times={})
        one = request(audit=trail)
        with_latency_trackers(lambda request: None)(one)
        self.assertIs(one.times, trail.times)

    def test_failure(self) -> None:
        """The context is restored also when the handler fails."""

        def fail(request: Any) -> None:
            raise ValueError

        with self.assertRaises(ValueError):
            with_latency_trackers(fail)(request())
        self.assertIsNone(latencies.get())

    def test_long_running(self) -> None:
        """Watches and the like are not measured."""
        seen: list[Any] = []
        one = request(info=SimpleNamespace(long_running=True))
        with_latency_trackers(lambda request: seen.append(latencies.get()))(one)
        self.assertEqual((seen, one.times), ([None], None))
