"""Timeouts of admission plugins."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime


class TimedOut(TimeoutError):
    """The operation exceeded its timeout."""


class _TimedOperation:
    """
    An operation with a timeout.

    @ivar done: Fires with the work's result, or fails with L{TimedOut}.
    """

    def __init__(self, work: Awaitable[object], seconds: float, clock: IReactorTime) -> None:
        self.done: Deferred[Any] = Deferred(self._on_cancel)
        self._is_waited_for = True
        self._timer = clock.callLater(seconds, self._on_timeout)
        self._running = Deferred.fromCoroutine(_run(work))
        self._running.addBoth(self._on_result)

    def _on_result(self, result: object) -> None:
        if self._stop_waiting():
            self.done.callback(result)

    def _on_timeout(self) -> None:
        if self._stop_waiting():
            self._running.cancel()
            self.done.errback(TimedOut())

    def _on_cancel(self, done: Deferred[object]) -> None:
        # The caller has been cancelled, so the result of the operation is not needed.
        self._stop_waiting()
        self._running.cancel()

    def _stop_waiting(self) -> bool:
        """Stop waiting; return whether the result was still awaited."""
        was_waited_for, self._is_waited_for = self._is_waited_for, False
        if self._timer.active():
            self._timer.cancel()
        return was_waited_for


async def _run(work: Awaitable[object]) -> object:
    return await work


def with_timeout(work: Awaitable[object], seconds: float, clock: IReactorTime) -> Deferred[object]:
    """
    Await C{work}; cancel it after C{seconds} and fail with L{TimedOut}.

    If C{work} ignores the cancellation, the caller does not wait for it, unlike with C{Deferred.addTimeout}.

    @param work: The operation.
    @param seconds: The timeout in seconds.
    @param clock: The reactor, or a clock in tests.
    @return: Fires with the result; fails with L{TimedOut} after the timeout.
    """
    return _TimedOperation(work, seconds, clock).done
