"""Tests for L{kubetwist.admission._timeout}."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission._timeout import (
    TimedOut,
    with_timeout,
)


class LimitTests(SynchronousTestCase):
    """Tests for L{with_timeout}."""

    def setUp(self) -> None:
        """Create an operation that the test completes."""
        self.clock = Clock()
        self.cancelled = 0
        self.work: Deferred[str] = Deferred(self.cancel)

    def cancel(self, work: Deferred[str]) -> None:
        """Count cancellations."""
        self.cancelled += 1

    def test_in_time(self) -> None:
        """The result of an operation that finishes in time is returned, and the timer is cancelled."""
        done = with_timeout(self.work, 3.0, self.clock)
        self.clock.advance(2.9)
        self.work.callback("done")
        self.assertEqual(self.successResultOf(done), "done")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failure(self) -> None:
        """A failure is returned."""
        done = with_timeout(self.work, 3.0, self.clock)
        self.work.errback(ValueError())
        self.failureResultOf(done, ValueError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_timeout(self) -> None:
        """An operation that exceeds its timeout is cancelled."""
        done = with_timeout(self.work, 3.0, self.clock)
        self.clock.advance(3.0)
        self.failureResultOf(done, TimedOut)
        self.assertEqual(self.cancelled, 1)

    def test_ignored_cancellation(self) -> None:
        """An operation that ignores the cancellation is not waited for, and its result is ignored."""
        later: Deferred[None] = Deferred()

        async def stubborn() -> None:
            try:
                await self.work
            except CancelledError:
                await later
                raise ValueError from None

        done = with_timeout(stubborn(), 3.0, self.clock)
        self.clock.advance(3.0)
        self.failureResultOf(done, TimedOut)
        later.callback(None)

    def test_cancelled(self) -> None:
        """If the caller is cancelled, the operation and the timer are cancelled."""
        done = with_timeout(self.work, 3.0, self.clock)
        done.cancel()
        self.failureResultOf(done, CancelledError)
        self.assertEqual((self.cancelled, self.clock.getDelayedCalls()), (1, []))
