"""Waiting for an object that is about to be created."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twisted.internet.defer import Deferred
from zope.interface import implementer

from ...api.record import Record
from ...interfaces import IWatchSink
from ...storage.cache.watchcache import WatchCache

if TYPE_CHECKING:
    from twisted.internet.interfaces import IReactorTime


@implementer(IWatchSink)
class _ObjectWaiter:
    """
    Watch sink that waits for the first event or a timeout.

    @ivar done: Fires in an iteration of the reactor after the event, or after the timeout.
    """

    def __init__(self, reactor: IReactorTime, seconds: float) -> None:
        self.done: Deferred[None] = Deferred()
        self._reactor = reactor
        self._timeout = reactor.callLater(seconds, self.done.callback, None)

    def send(self, event_type: str, record: Record | None, event: object) -> None:
        """Fire L{done} in the next iteration, since the cache sends events during the write."""
        if self._timeout.active():
            self._timeout.reset(0)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore a bookmark."""

    def end(self, error: Exception | None) -> None:
        """Stop waiting, as the cache reloads and may have the object."""
        self.send("", None, None)

    def stop(self) -> None:
        """Cancel the timeout."""
        if self._timeout.active():
            self._timeout.cancel()


async def wait_for_object(cache: WatchCache, key: str, seconds: float, reactor: IReactorTime) -> Record | None:
    """
    Return the record of an object, after waiting for its creation if it does not exist.

    @param cache: The watch cache of the resource.
    @param key: The key of the object in the cache.
    @param seconds: The timeout.
    @param reactor: The reactor, or a clock in tests.
    @return: The record; L{None} after the timeout.
    """
    record = cache.get(key)
    if record is not None:
        return record
    waiter = _ObjectWaiter(reactor, seconds)
    watch = cache.watch(key, sink=waiter)
    try:
        await waiter.done
    finally:
        watch.stop()
        waiter.stop()
    return cache.get(key)
