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
        """Work that is done when the test says so."""
        self.clock = Clock()
        self.cancelled = 0
        self.work: Deferred[str] = Deferred(self.cancel)

    def cancel(self, work: Deferred[str]) -> None:
        """Count."""
        self.cancelled += 1

    def test_in_time(self) -> None:
        """The result of work that is done in time is the result, and no timer is left."""
        done = with_timeout(self.work, 3.0, self.clock)
        self.clock.advance(2.9)
        self.work.callback("done")
        self.assertEqual(self.successResultOf(done), "done")
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failure(self) -> None:
        """A failure is passed on."""
        done = with_timeout(self.work, 3.0, self.clock)
        self.work.errback(ValueError())
        self.failureResultOf(done, ValueError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_late(self) -> None:
        """Work that takes too long is cancelled."""
        done = with_timeout(self.work, 3.0, self.clock)
        self.clock.advance(3.0)
        self.failureResultOf(done, TimedOut)
        self.assertEqual(self.cancelled, 1)

    def test_heedless(self) -> None:
        """Work that goes on in spite of that is not waited for, and what becomes of it does not matter."""
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

    def test_given_up(self) -> None:
        """When nobody waits any more the work is cancelled, and no timer is left."""
        done = with_timeout(self.work, 3.0, self.clock)
        done.cancel()
        self.failureResultOf(done, CancelledError)
        self.assertEqual((self.cancelled, self.clock.getDelayedCalls()), (1, []))
