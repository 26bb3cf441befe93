"""How long a request waits for somebody who may not answer."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime


class TimedOut(Exception):
    """It took too long."""


class _TimedOperation:
    """
    Work with an end.

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
        # What the work makes of that does not matter any more: whoever waited has gone.
        self._stop_waiting()
        self._running.cancel()

    def _stop_waiting(self) -> bool:
        """Wait no more; whether somebody did."""
        was_waited_for, self._is_waited_for = self._is_waited_for, False
        if self._timer.active():
            self._timer.cancel()
        return was_waited_for


async def _run(work: Awaitable[object]) -> object:
    return await work


def with_timeout(work: Awaitable[object], seconds: float, clock: IReactorTime) -> Deferred[object]:
    """
    Wait for something, but not for ever.

    What takes too long is cancelled, and not waited for even if it does not heed that.

    @param clock: The reactor, or what stands for it.
    @return: Fails with L{TimedOut} when the time is over.
    """
    return _TimedOperation(work, seconds, clock).done
