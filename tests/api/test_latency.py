"""Tests for L{kubetwist.api.latency}."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import latency
from kubetwist.api.latency import ETCD, LatencyTracker, latencies


class SpendingTests(SynchronousTestCase):
    """Tests for L{LatencyTracker}."""

    def setUp(self) -> None:
        """Have a clock that advances by what the test says."""
        self.moments: Iterator[float] = iter(())
        self.patch(latency, "perf_counter", lambda: next(self.moments))
        token = latencies.set({})
        self.addCleanup(latencies.reset, token)

    def spend(self, begin: float, end: float, *, concurrent: bool = False) -> None:
        """Spend time on the storage."""
        self.moments = iter((begin, end))
        with LatencyTracker(ETCD, concurrent=concurrent):
            pass

    def test_sum(self) -> None:
        """Spans one after the other are added up."""
        self.spend(1.0, 3.0)
        self.spend(10.0, 11.0)
        self.assertEqual(latencies.get(), {ETCD: 3.0})

    def test_concurrent(self) -> None:
        """Of spans at the same time the longest counts."""
        self.spend(1.0, 3.0, concurrent=True)
        self.spend(1.0, 2.0, concurrent=True)
        self.assertEqual(latencies.get(), {ETCD: 2.0})

    def test_failure(self) -> None:
        """The time of what fails counts, too."""
        self.moments = iter((1.0, 3.0))
        with self.assertRaises(ValueError), LatencyTracker(ETCD):
            raise ValueError
        self.assertEqual(latencies.get(), {ETCD: 2.0})

    def test_unwanted(self) -> None:
        """Without a dictionary in the context the clock is not read."""
        latencies.set(None)
        with LatencyTracker(ETCD):
            pass
