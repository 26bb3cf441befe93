"""How the allocator of numbers learns what objects hold: it is told by their caches, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ....api.record import Record
from ....api.resource import JSONObject
from ....interfaces import IWatchSink
from ....storage.cache.watchcache import WatchCache
from ....storage.cache.window import DELETED
from ....storage.errors import StorageUnavailable
from .allocator import NO_ALLOCATIONS, ObservedAllocations, ServiceAllocator

#: Seconds between two looks whether a cache that lost its place is filled again.
RETRY: Final = 0.5


@implementer(IWatchSink)
class AllocatorSync:
    """Tells an allocator of the holdings of one resource's objects."""

    _log = Logger()

    def __init__(
        self,
        cache: WatchCache,
        allocator: ServiceAllocator,
        holdings: Callable[[JSONObject], ObservedAllocations],
        clock: IReactorTime,
    ) -> None:
        self._cache = cache
        self._allocator = allocator
        self._holdings = holdings
        self._clock = clock
        #: What each object holds that holds anything, by its key.
        self._known: dict[str, ObservedAllocations] = {}
        self._retry: IDelayedCall | None = None

    def start(self) -> None:
        """
        Learn what is there, and follow.

        @raise StorageUnavailable: The cache is not filled, or not everything in it can be read.
        """
        before = dict(self._known)
        self._cache.watch("", sink=self, initial=True)
        # What has gone while nobody told of it.
        for key in before:
            if self._cache.get(key) is None:
                self._put(key, NO_ALLOCATIONS)

    def stop(self) -> None:
        """Look no longer."""
        if self._retry is not None and self._retry.active():
            self._retry.cancel()

    def _put(self, key: str, now: ObservedAllocations) -> None:
        before = self._known.pop(key, NO_ALLOCATIONS)
        if now != NO_ALLOCATIONS:
            self._known[key] = now
        if now != before:
            self._allocator.change(before, now)

    def send(self, kind: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        found = NO_ALLOCATIONS
        if kind != DELETED:
            try:
                found = self._holdings(orjson.loads(record.item))
            except Exception:
                # Written by somebody else, and nothing that a service can be.
                self._log.failure("what {key} holds is not known", key=record.key)
        self._put(record.key, found)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Nothing changed."""

    def end(self, error: Exception | None) -> None:
        """The cache starts over: so do we, and go by what was known until then."""
        if error is not None:
            self._retry = self._clock.callLater(RETRY, self._again)

    def _again(self) -> None:
        try:
            self.start()
        except StorageUnavailable:
            self._retry = self._clock.callLater(RETRY, self._again)
