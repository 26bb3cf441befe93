"""Tests of L{kubetwist.client.retrying}."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.client.errors import CallError
from kubetwist.client.retrying import (
    Backoff,
    should_retry,
    with_backoff,
)


class RetryTests(SynchronousTestCase):
    """L{with_backoff<kubetwist.client.retrying.with_backoff>}."""

    def setUp(self) -> None:
        """Create a clock and a list of errors to raise."""
        self.clock = Clock()
        self.errors: list[Exception] = []
        self.tries: list[float] = []

    async def call(self) -> str:
        """Raise the next error, or return a result."""
        self.tries.append(self.clock.seconds())
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def start(self) -> Deferred[str]:
        """Start the call, without jitter."""
        return Deferred.fromCoroutine(with_backoff(self.clock, self.call, Backoff(0.5, 1.5, 0.0, 5)))

    def test_backoff(self) -> None:
        """Delays grow by the factor, and the last attempt is the fifth."""
        self.errors = [APIStatusError.internal("x") for _ in range(9)]
        failing = self.start()
        self.clock.pump([0.05] * 200)
        self.failureResultOf(failing, APIStatusError)
        delays = [round(after - before, 2) for before, after in zip(self.tries, self.tries[1:], strict=False)]
        self.assertEqual(len(self.tries), 5)
        for wait, expected_delay in zip(delays, (0.5, 0.75, 1.125, 1.6875), strict=True):
            self.assertTrue(expected_delay <= wait <= expected_delay + 0.1, delays)

    def test_recovery(self) -> None:
        """The result of the first successful attempt is returned."""
        self.errors = [APIStatusError.internal("x")]
        working = self.start()
        self.assertNoResult(working)
        self.clock.advance(0.5)
        self.assertEqual(self.successResultOf(working), "done")

    def test_permanent_error(self) -> None:
        """A permanent error is raised without a retry."""
        self.errors = [APIStatusError.bad_request("x")]
        self.failureResultOf(self.start(), APIStatusError)
        self.assertEqual(len(self.tries), 1)

    def test_cancelled(self) -> None:
        """Cancelling a retried call leaves no delayed call."""
        self.errors = [APIStatusError.internal("x")]
        waiting = self.start()
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_should_retry(self) -> None:
        """
        Connection resets, codes 500, 504 and 429, and responses with Retry-After are retried; refusals and timeouts
        are not.
        """
        for error, again in (
            (CallError("POST", "u", "reset", retriable=True), True),
            (CallError("POST", "u", "refused"), False),
            (CallError("POST", "u", "late", timed_out=True), False),
            (APIStatusError(500, "InternalError", ""), True),
            (APIStatusError(504, "Timeout", ""), True),
            (APIStatusError(429, "TooManyRequests", ""), True),
            (APIStatusError(503, "ServiceUnavailable", ""), False),
            (APIStatusError(503, "ServiceUnavailable", "", None, 1), True),
            (APIStatusError(403, "Forbidden", ""), False),
            (ValueError(), False),
        ):
            self.assertEqual(should_retry(error), again, error)
