"""Tests for L{kubetwist.client.retrying}."""

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
    """Calls that are tried again."""

    def setUp(self) -> None:
        """A clock, and errors to come."""
        self.clock = Clock()
        self.errors: list[Exception] = []
        self.tries: list[float] = []

    async def call(self) -> str:
        """Fail as long as there are errors."""
        self.tries.append(self.clock.seconds())
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def start(self) -> Deferred[str]:
        """Call, without jitter."""
        return Deferred.fromCoroutine(with_backoff(self.clock, self.call, Backoff(0.5, 1.5, 0.0, 5)))

    def test_waits(self) -> None:
        """Waits grow by half each, and the fifth try is the last."""
        self.errors = [APIStatusError.internal("x") for _ in range(9)]
        failing = self.start()
        self.clock.pump([0.05] * 200)
        self.failureResultOf(failing, APIStatusError)
        waits = [round(after - before, 2) for before, after in zip(self.tries, self.tries[1:], strict=False)]
        self.assertEqual(len(self.tries), 5)
        for wait, wanted in zip(waits, (0.5, 0.75, 1.125, 1.6875), strict=True):
            self.assertTrue(wanted <= wait <= wanted + 0.1, waits)

    def test_recovery(self) -> None:
        """A try that works is the result."""
        self.errors = [APIStatusError.internal("x")]
        working = self.start()
        self.assertNoResult(working)
        self.clock.advance(0.5)
        self.assertEqual(self.successResultOf(working), "done")

    def test_no_use(self) -> None:
        """An error that would come again is told at once."""
        self.errors = [APIStatusError.bad_request("x")]
        self.failureResultOf(self.start(), APIStatusError)
        self.assertEqual(len(self.tries), 1)

    def test_cancelled(self) -> None:
        """Whoever does not want to wait any more leaves nothing behind."""
        self.errors = [APIStatusError.internal("x")]
        waiting = self.start()
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_which(self) -> None:
        """Resets, 500, 504, 429 and whatever says Retry-After are tried again; refusals and timeouts are not."""
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
