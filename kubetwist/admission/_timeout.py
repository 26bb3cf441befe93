"""How long a request waits for somebody who may not answer."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime


class Hung(Exception):
    """It took too long."""


class _Limited:
    """
    Work with an end.

    @ivar done: Fires with the work's result, or fails with L{Hung}.
    """

    def __init__(self, work: Awaitable[object], seconds: float, clock: IReactorTime) -> None:
        self.done: Deferred[Any] = Deferred(self._cancelled)
        self._waited_for = True
        self._timer = clock.callLater(seconds, self._over)
        self._running = Deferred.fromCoroutine(_run(work))
        self._running.addBoth(self._ended)

    def _ended(self, result: object) -> None:
        if self._leave():
            self.done.callback(result)

    def _over(self) -> None:
        if self._leave():
            self._running.cancel()
            self.done.errback(Hung())

    def _cancelled(self, done: Deferred[object]) -> None:
        # What the work makes of that does not matter any more: whoever waited has gone.
        self._leave()
        self._running.cancel()

    def _leave(self) -> bool:
        """Wait no more; whether somebody did."""
        waited, self._waited_for = self._waited_for, False
        if self._timer.active():
            self._timer.cancel()
        return waited


async def _run(work: Awaitable[object]) -> object:
    return await work


def within(work: Awaitable[object], seconds: float, clock: IReactorTime) -> Deferred[object]:
    """
    Wait for something, but not for ever.

    What takes too long is cancelled, and not waited for even if it does not heed that.

    @param clock: The reactor, or what stands for it.
    @return: Fails with L{Hung} when the time is over.
    """
    return _Limited(work, seconds, clock).done
