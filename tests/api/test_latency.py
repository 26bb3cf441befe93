"""Tests for L{kubetwist.api.latency}."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import latency
from kubetwist.api.latency import ETCD, Spending, times


class SpendingTests(SynchronousTestCase):
    """Tests for L{Spending}."""

    def setUp(self) -> None:
        """Have a clock that advances by what the test says."""
        self.moments: Iterator[float] = iter(())
        self.patch(latency, "perf_counter", lambda: next(self.moments))
        token = times.set({})
        self.addCleanup(times.reset, token)

    def spend(self, begin: float, end: float, *, together: bool = False) -> None:
        """Spend time on the storage."""
        self.moments = iter((begin, end))
        with Spending(ETCD, together=together):
            pass

    def test_sum(self) -> None:
        """Spans one after the other are added up."""
        self.spend(1.0, 3.0)
        self.spend(10.0, 11.0)
        self.assertEqual(times.get(), {ETCD: 3.0})

    def test_together(self) -> None:
        """Of spans at the same time the longest counts."""
        self.spend(1.0, 3.0, together=True)
        self.spend(1.0, 2.0, together=True)
        self.assertEqual(times.get(), {ETCD: 2.0})

    def test_failure(self) -> None:
        """The time of what fails counts, too."""
        self.moments = iter((1.0, 3.0))
        with self.assertRaises(ValueError), Spending(ETCD):
            raise ValueError
        self.assertEqual(times.get(), {ETCD: 2.0})

    def test_unwanted(self) -> None:
        """Without a dictionary in the context the clock is not read."""
        times.set(None)
        with Spending(ETCD):
            pass
