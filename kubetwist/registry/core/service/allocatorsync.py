"""Keeps the allocator in sync with the stored objects, by watches of their caches."""

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

#: Interval, in seconds, of attempts to watch a cache that is being refilled.
RETRY: Final = 0.5


@implementer(IWatchSink)
class AllocatorSync:
    """Updates an allocator with the numbers that the objects of one resource hold."""

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
        #: The numbers of each object that holds some, by its key.
        self._known: dict[str, ObservedAllocations] = {}
        self._retry: IDelayedCall | None = None

    def start(self) -> None:
        """
        Read the stored objects, and watch them.

        @raise StorageUnavailable: The cache is not filled, or has corrupt objects.
        """
        before = dict(self._known)
        self._cache.watch("", sink=self, initial=True)
        # Objects deleted while there was no watch.
        for key in before:
            if self._cache.get(key) is None:
                self._put(key, NO_ALLOCATIONS)

    def stop(self) -> None:
        """Stop retrying."""
        if self._retry is not None and self._retry.active():
            self._retry.cancel()

    def _put(self, key: str, now: ObservedAllocations) -> None:
        before = self._known.pop(key, NO_ALLOCATIONS)
        if now != NO_ALLOCATIONS:
            self._known[key] = now
        if now != before:
            self._allocator.change(before, now)

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        found = NO_ALLOCATIONS
        if event_type != DELETED:
            try:
                found = self._holdings(orjson.loads(record.item))
            except Exception:
                # Written by another server, in an invalid form.
                self._log.failure("cannot decode allocations of a stored object: key={key}", key=record.key)
        self._put(record.key, found)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore a bookmark."""

    def end(self, error: Exception | None) -> None:
        """Watch the cache again when it is refilled; keep the known numbers until then."""
        if error is not None:
            self._retry = self._clock.callLater(RETRY, self._again)

    def _again(self) -> None:
        try:
            self.start()
        except StorageUnavailable:
            self._retry = self._clock.callLater(RETRY, self._again)
