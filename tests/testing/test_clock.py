"""Tests for L{kubetwist.testing._clock}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis.strategies import floats, lists

from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api import times
from kubetwist.testing._clock import (
    REAL_TIME_THRESHOLD,
    ServerClock,
)


class ServerClockTests(SynchronousTestCase):
    """L{ServerClock}."""

    def setUp(self) -> None:
        """Create a clock on a reactor whose time is 1000."""
        self.reactor = Clock()
        self.reactor.advance(1000)
        self.clock = ServerClock(self.reactor)
        self.called: list[Any] = []
        self.addCleanup(times.use_clock)

    def later(self, delay: float, name: Any = None) -> Any:
        """Schedule a call that records C{name}."""
        return self.clock.callLater(delay, self.called.append, delay if name is None else name)

    def test_runs(self) -> None:
        """Without adjustments it behaves like its reactor."""
        self.assertTrue(IReactorTime.providedBy(self.clock))
        self.later(0.5)
        self.later(5)
        self.assertEqual(self.clock.seconds(), 1000)
        self.reactor.advance(0.5)
        self.assertEqual(self.called, [0.5])
        self.reactor.advance(4.5)
        self.assertEqual((self.called, self.clock.seconds(), self.clock.calls), ([0.5, 5], 1005, {}))

    def test_frozen(self) -> None:
        """While the clock is frozen long delays do not end, and short ones do."""
        self.later(5)
        self.clock.freeze()
        self.later(REAL_TIME_THRESHOLD)
        self.later(6)
        self.reactor.advance(100)
        self.assertEqual((self.called, self.clock.seconds()), ([REAL_TIME_THRESHOLD], 1000))
        self.clock.advance(5)
        self.reactor.advance(0)
        self.assertEqual(self.called, [REAL_TIME_THRESHOLD, 5])
        self.clock.resume()
        self.reactor.advance(1)
        self.assertEqual((self.called, self.clock.seconds()), ([REAL_TIME_THRESHOLD, 5, 6], 1006))

    def test_wall_time(self) -> None:
        """Timestamps of objects follow the clock while it is adjusted."""
        self.clock.freeze(0)
        self.assertEqual(times.now(), "1970-01-01T00:00:00Z")
        self.assertEqual(times.now_micro(), "1970-01-01T00:00:00.000000Z")
        self.clock.advance(86400)
        self.assertEqual(times.utc_now().isoformat(), "1970-01-02T00:00:00+00:00")
        self.clock.restore_real_time()
        self.assertGreater(times.posix_now(), 1_700_000_000)

    def test_advance(self) -> None:
        """Advancing the running clock runs the due calls."""
        self.later(50)
        self.later(500)
        self.clock.advance(60)
        self.reactor.advance(0)
        self.assertEqual((self.called, self.clock.seconds()), ([50], 1060))
        self.reactor.advance(440)
        self.assertEqual(self.called, [50, 500])
        with self.assertRaisesRegex(ValueError, "back"):
            self.clock.advance(-1)

    def test_calls(self) -> None:
        """Delayed calls can be cancelled, postponed and queried, whether or not the clock runs."""
        for frozen in (False, True):
            if frozen:
                self.clock.freeze()
            cancelled, moved, put_off = self.later(10), self.later(10, "moved"), self.later(10, "put off")
            now = self.clock.seconds()
            self.assertEqual(cancelled.getTime(), now + 10)
            cancelled.cancel()
            moved.reset(20)
            put_off.delay(20)
            self.assertEqual((cancelled.active(), moved.getTime(), put_off.getTime()), (False, now + 20, now + 30))
            with self.assertRaises(AlreadyCancelled):
                cancelled.cancel()
            for seconds in (15, 5, 10):
                self.clock.advance(seconds)
                self.reactor.advance(0)
                self.called.append(seconds)
            self.assertEqual(self.called, [15, "moved", 5, "put off", 10])
            with self.assertRaises(AlreadyCalled):
                moved.reset(1)
            self.called.clear()

    @given(delays=lists(floats(min_value=REAL_TIME_THRESHOLD + 0.1, max_value=1e6), max_size=20))
    def test_order(self, delays: list[float]) -> None:
        """After any jump of the time, calls run in the order of their times, and none is lost."""
        reactor = Clock()
        clock, called = ServerClock(reactor), []
        clock.freeze(0)
        for delay in delays:
            clock.callLater(delay, called.append, delay)
        clock.advance(2e6)
        reactor.advance(0)
        self.assertEqual(called, sorted(delays))
        self.assertEqual(reactor.getDelayedCalls(), [])
