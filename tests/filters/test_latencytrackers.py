"""Tests of L{kubetwist.filters.latencytrackers}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.latency import ETCD, QUEUE, latencies
from kubetwist.filters.latencytrackers import with_latency_trackers


def request(**values: Any) -> Any:
    """Return a request with the attributes that the filter reads."""
    defaults = {"audit": None, "apf_queue_seconds": 0.0, "times": None, "info": SimpleNamespace(long_running=False)}
    return SimpleNamespace(**{**defaults, **values})


class MeasuringTests(SynchronousTestCase):
    """L{with_latency_trackers}."""

    def test_measured(self) -> None:
        """Seconds are attributed to the request; the context is restored afterwards."""

        def spend(request: Any) -> None:
            result = latencies.get()
            assert result is not None
            result[ETCD] = 1.0

        one = request(apf_queue_seconds=0.5)
        with_latency_trackers(spend)(one)
        self.assertEqual(one.times, {QUEUE: 0.5, ETCD: 1.0})
        self.assertIsNone(latencies.get())

    def test_audited(self) -> None:
        """The trackers of an audited request are those of its audit context."""
        trail = SimpleNamespace(times={})
        one = request(audit=trail)
        with_latency_trackers(lambda request: None)(one)
        self.assertIs(one.times, trail.times)

    def test_failure(self) -> None:
        """The context is restored if the handler fails."""

        def fail(request: Any) -> None:
            raise ValueError

        with self.assertRaises(ValueError):
            with_latency_trackers(fail)(request())
        self.assertIsNone(latencies.get())

    def test_long_running(self) -> None:
        """Long-running requests are not measured."""
        seen: list[Any] = []
        one = request(info=SimpleNamespace(long_running=True))
        with_latency_trackers(lambda request: seen.append(latencies.get()))(one)
        self.assertEqual((seen, one.times), ([None], None))
