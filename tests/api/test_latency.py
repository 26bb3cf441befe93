"""Tests for L{kubetwist.api.latency}."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import latency
from kubetwist.api.latency import ETCD, LatencyTracker, latencies


class LatencyTrackerTests(SynchronousTestCase):
    """Tests for L{LatencyTracker}."""

    def setUp(self) -> None:
        """Replace the clock by one that the test advances."""
        self.moments: Iterator[float] = iter(())
        self.patch(latency, "perf_counter", lambda: next(self.moments))
        token = latencies.set({})
        self.addCleanup(latencies.reset, token)

    def measure(self, begin: float, end: float, *, concurrent: bool = False) -> None:
        """Measure an interval for the storage."""
        self.moments = iter((begin, end))
        with LatencyTracker(ETCD, concurrent=concurrent):
            pass

    def test_sum(self) -> None:
        """Sequential intervals are added."""
        self.measure(1.0, 3.0)
        self.measure(10.0, 11.0)
        self.assertEqual(latencies.get(), {ETCD: 3.0})

    def test_concurrent(self) -> None:
        """The longest of concurrent intervals counts."""
        self.measure(1.0, 3.0, concurrent=True)
        self.measure(1.0, 2.0, concurrent=True)
        self.assertEqual(latencies.get(), {ETCD: 2.0})

    def test_failure(self) -> None:
        """The time of a failed call counts, too."""
        self.moments = iter((1.0, 3.0))
        with self.assertRaises(ValueError), LatencyTracker(ETCD):
            raise ValueError
        self.assertEqual(latencies.get(), {ETCD: 2.0})

    def test_disabled(self) -> None:
        """The clock is not read without a dictionary in the context."""
        latencies.set(None)
        with LatencyTracker(ETCD):
            pass
