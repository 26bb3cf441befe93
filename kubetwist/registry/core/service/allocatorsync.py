"""Synchronization of the allocator with stored objects, by watches of their caches."""

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
RETRY_INTERVAL: Final = 0.5


@implementer(IWatchSink)
class AllocatorSync:
    """Watch sink that updates an allocator with the numbers of the objects of one resource."""

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
        #: The numbers of objects, by key.
        self._allocations: dict[str, ObservedAllocations] = {}
        self._retry_call: IDelayedCall | None = None

    def start(self) -> None:
        """
        Read the stored objects, and watch them.

        @raise StorageUnavailable: The cache is not filled, or has corrupt objects.
        """
        before = dict(self._allocations)
        self._cache.watch("", sink=self, initial=True)
        # Objects that were deleted while no watch was running.
        for key in before:
            if self._cache.get(key) is None:
                self._replace(key, NO_ALLOCATIONS)

    def stop(self) -> None:
        """Stop retrying."""
        if self._retry_call is not None and self._retry_call.active():
            self._retry_call.cancel()

    def _replace(self, key: str, now: ObservedAllocations) -> None:
        before = self._allocations.pop(key, NO_ALLOCATIONS)
        if now != NO_ALLOCATIONS:
            self._allocations[key] = now
        if now != before:
            self._allocator.change(before, now)

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        allocations = NO_ALLOCATIONS
        if event_type != DELETED:
            try:
                allocations = self._holdings(orjson.loads(record.item))
            except Exception:
                # Written by another server, in an invalid form.
                self._log.failure("cannot decode allocations of a stored object: key={key}", key=record.key)
        self._replace(record.key, allocations)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Ignore a bookmark."""

    def end(self, error: Exception | None) -> None:
        """Watch the cache again when it is refilled; keep the known numbers until then."""
        if error is not None:
            self._retry_call = self._clock.callLater(RETRY_INTERVAL, self._retry)

    def _retry(self) -> None:
        try:
            self.start()
        except StorageUnavailable:
            self._retry_call = self._clock.callLater(RETRY_INTERVAL, self._retry)
