"""Waiting for an object that is probably about to be made."""

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
    """Tells, in a turn of its own, when there is something to look at."""

    def __init__(self, reactor: IReactorTime, seconds: float) -> None:
        self.done: Deferred[None] = Deferred()
        self._reactor = reactor
        self._call = reactor.callLater(seconds, self.done.callback, None)

    def send(self, event_type: str, record: Record | None, event: object) -> None:
        """See L{IWatchSink.send}: it comes amid the write that made the object."""
        if self._call.active():
            self._call.reset(0)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore a bookmark."""

    def end(self, error: Exception | None) -> None:
        """The cache starts over: what it knows then is as good as it gets."""
        self.send("", None, None)

    def stop(self) -> None:
        """Wait no longer."""
        if self._call.active():
            self._call.cancel()


async def wait_for_object(cache: WatchCache, key: str, seconds: float, reactor: IReactorTime) -> Record | None:
    """
    An object, once it is there.

    @param seconds: How long to wait at the most.
    """
    found = cache.get(key)
    if found is not None:
        return found
    appearance = _ObjectWaiter(reactor, seconds)
    watch = cache.watch(key, sink=appearance)
    try:
        await appearance.done
    finally:
        watch.stop()
        appearance.stop()
    return cache.get(key)
