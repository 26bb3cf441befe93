"""Reads of one resource's records from the storage backend: one, all, or a list as of a revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from twisted.internet.defer import Deferred

from ...api.record import (
    Listing,
    Record,
)
from ...api.storage import (
    Page,
    StoredValue,
)
from ...interfaces import IStorageBackend
from .._expiry import Timer
from ..errors import (
    CorruptObjectError,
    DecryptionUnavailable,
    ErrorTranslator,
    unchanged,
)
from ..protobuf import (
    MAX_TURN_COST,
    decode_cost,
    portions,
    yield_to_reactor,
)
from ._interning import intern_strings
from ._table import RecordTable
from .corruptobjects import record_of
from .metrics import CacheMetrics
from .window import Match

#: Returns the record of a key below the resource's prefix, a stored value and its revision.
Codec = Callable[[str, bytes, int], Record]


class RecordReader:
    """
    Reads and decodes the values below one prefix of a backend.

    Values that are slow to decode are decoded in batches, between which the reactor runs.
    """

    def __init__(
        self,
        backend: IStorageBackend,
        prefix: str,
        codec: Codec,
        clock: Timer,
        page: int,
        metrics: CacheMetrics,
        translate: ErrorTranslator = unchanged,
    ) -> None:
        """
        @param prefix: The prefix of the keys in the backend, with its last slash.
        @param page: Maximum number of values per read.
        @param metrics: Counts the reads.
        @param translate: Translates the error of a list with an unreadable value.
        """
        self._backend = backend
        self._prefix = prefix
        self._codec = codec
        self._clock = clock
        self._page = page
        self._metrics = metrics
        self._translate = translate

    def decode(self, key: str, value: bytes, revision: int) -> Record:
        """Return the record of a value, by its key below the prefix."""
        return intern_strings(self._codec(key, value, revision))

    async def read(self, key: str) -> Record:
        """
        Read one record, by its key below the prefix.

        @raise StorageError: It does not exist, or is unreadable.
        """
        return self._record(await self._backend.read(self._prefix + key))

    async def exceeds_page(self) -> bool:
        """Return whether the backend has more values than a page."""
        page = await self._read_page(self._prefix, limit=self._page)
        return page.more

    async def load(self) -> tuple[RecordTable, int, dict[str, CorruptObjectError]]:
        """
        Read all records as of one revision. A page is read from the backend while the page before it is decoded.

        @return: The records, the revision, and the errors of unreadable values by key.
        @raise StorageError: The backend cannot be read; L{RevisionCompacted} when it took too long.
        """
        metrics = self._metrics
        metrics.stored_lists += 1
        page = await self._read_page(self._prefix, limit=self._page)
        revision = page.revision
        table = RecordTable()
        unreadable: dict[str, CorruptObjectError] = {}
        turn_cost = 0.0
        while True:
            read_ahead = Deferred.fromCoroutine(self._read_after(page)) if page.more else None
            metrics.stored_fetched += len(page.items)
            metrics.stored_evaluated += len(page.items)
            metrics.stored_returned += len(page.items)
            try:
                records: list[Record] = []
                for item in page.items:
                    if turn_cost >= MAX_TURN_COST:
                        table.extend(records)
                        records = []
                        await yield_to_reactor(self._clock)
                        turn_cost = 0.0
                    turn_cost += decode_cost(item.value)
                    try:
                        records.append(self._record(item))
                    except CorruptObjectError as error:
                        metrics.unreadable += 1
                        unreadable[item.key[len(self._prefix) :]] = error
                table.extend(records)
            except BaseException:
                if read_ahead is not None:
                    read_ahead.addErrback(lambda _: None)
                raise
            if read_ahead is None:
                return table, revision, unreadable
            page = await read_ahead

    async def _read_after(self, page: Page) -> Page:
        """Read the page that follows another one, at the same revision."""
        return await self._read_page(
            self._prefix, start=page.items[-1].key + "\0", limit=self._page, revision=page.revision
        )

    async def list(
        self,
        prefix: str = "",
        *,
        match: Match | None = None,
        limit: int = 0,
        start_after: str = "",
        revision: int = 0,
    ) -> Listing:
        """
        List records as L{WatchCache.list<kubetwist.storage.cache.watchcache.WatchCache.list>} does, from the backend
        alone.

        @param revision: The revision to list at; 0 for the backend's newest.
        @raise StorageError: The backend cannot be read, or does not have that revision.
        @raise Exception: A value is unreadable; the translated error, by default the L{StorageError}.
        """
        records: list[Record] = []
        metrics = self._metrics
        metrics.stored_lists += 1
        start = f"{self._prefix}{start_after}\0" if start_after else ""
        while True:
            try:
                page = await self._read_page(
                    self._prefix + prefix, start=start, limit=limit or self._page, revision=revision
                )
                stored = await self._records(page.items)
            except (DecryptionUnavailable, CorruptObjectError) as error:
                translated = self._translate(error)
                if translated is error:
                    raise
                raise translated from error
            revision = page.revision
            metrics.stored_fetched += len(stored)
            for index, record in enumerate(stored):
                if match is not None:
                    metrics.stored_evaluated += 1
                if match is None or match(record):
                    metrics.stored_returned += 1
                    records.append(record)
                    if len(records) == limit:
                        more = page.more or index + 1 < len(page.items)
                        return Listing(records, revision, record.key if more else "", cached=False)
            if not page.more:
                return Listing(records, revision, cached=False)
            start = page.items[-1].key + "\0"

    async def _read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        started = perf_counter()
        failed = True
        try:
            page: Page = await self._backend.read_page(prefix, start=start, limit=limit, revision=revision)
            failed = False
        finally:
            self._metrics.observe_backend_request("list", perf_counter() - started, failed)
        return page

    def _record(self, item: StoredValue) -> Record:
        return record_of(item, self.decode, len(self._prefix))

    async def _records(self, items: Sequence[StoredValue]) -> Sequence[Record]:
        records: list[Record] = []
        for portion in portions(items):
            records += map(self._record, portion)
            if len(records) < len(items):
                await yield_to_reactor(self._clock)
        return records
