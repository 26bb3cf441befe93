"""The store for tests and for temporary servers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import ClassVar

from zope.interface import implementer

from ..api.storage import (
    History,
    Page,
    PastChange,
    StorageEvent,
    StoredValue,
)
from ..interfaces import IExpiringStorage, IStorageBackend, IStorageHistory, IStorageObserver, IStorageWatch
from ._expiry import Timer
from .embedded import (
    FIRST_REVISION,
    EmbeddedStorage,
    State,
    Transaction,
)
from .errors import KeyNotFound

_revision_of = attrgetter("revision")


@implementer(IStorageBackend, IStorageHistory, IExpiringStorage)
class MemoryStorage(EmbeddedStorage):
    """
    L{IStorageBackend} in dictionaries; writes are applied when L{commit} returns.

    A store that keeps its values in memory and also writes them to a disk can be a subclass. It calls L{restore} in
    C{open}, and overrides L{submit} to call L{apply} when transactions are durable.
    """

    #: The name of the storage in spans.
    system: ClassVar[str] = "memory"

    def __init__(self, clock: Timer) -> None:
        super().__init__(clock, "the store in memory")
        #: Every change after C{compacted}, oldest first.
        self._changes: list[StorageEvent] = []
        #: The readable states of every key, oldest first; a deletion has no value.
        self._states: dict[str, list[StorageEvent]] = {}

    async def open(self) -> None:
        """See L{IStorageBackend.open}."""
        if self._state is State.NEW:
            self.initialize({}, FIRST_REVISION, 0)

    async def close(self) -> None:
        """See L{IStorageBackend.close}."""
        self._state = State.CLOSED
        self._expiry.stop()

    def restore(
        self, events: Iterable[StorageEvent], revision: int, compacted: int, expirations: Mapping[str, float]
    ) -> None:
        """
        Take over what was stored before, and accept writes.

        @param events: The changes in the order of their revisions. Changes that the compaction removed may be missing.
        @param revision: The newest revision.
        @param compacted: The revision before which states cannot be read.
        @param expirations: The time, in seconds since the epoch, at which a key with a time to live expires.
        """
        latest_revisions: dict[str, int] = {}
        for event in events:
            self._keep(event)
            if event.value is None:
                latest_revisions.pop(event.key, None)
            else:
                latest_revisions[event.key] = event.revision
        self._delete_superseded(compacted)
        self.initialize(latest_revisions, revision, compacted)
        self._expiry.load((key, when, latest_revisions[key]) for key, when in expirations.items())

    def submit(self, transaction: Transaction) -> None:
        """Apply a transaction at once."""
        self.apply([transaction])

    def apply(self, batch: list[Transaction]) -> None:
        """
        Make the changes of durable transactions visible, and answer their writers.

        @param batch: The oldest transactions that were submitted and not applied.
        """
        for transaction in batch:
            for event in transaction.events:
                # Attachments are only for observers.
                self._keep(StorageEvent(event.key, event.value, event.revision, event.previous))
        self.finish(batch)

    def _keep(self, event: StorageEvent) -> None:
        self._changes.append(event)
        self._states.setdefault(event.key, []).append(event)

    async def read(self, key: str) -> StoredValue:
        """See L{IStorageBackend.read}."""
        item = self._value(key, self._resolve_revision(0))
        if item is None:
            raise KeyNotFound(key, self.revision)
        return item

    async def read_page(self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0) -> Page:
        """
        See L{IStorageBackend.read_page}.

        @param prefix: The prefix of the keys.
        @param start: The first key to read; C{""} begins with the prefix.
        @param limit: Maximum number of values; 0 for all.
        @param revision: The revision to read at; 0 for the newest.
        """
        revision = self._resolve_revision(revision)
        keys: list[str] = sorted(key for key in self._states if key.startswith(prefix) and key >= start)
        items: list[StoredValue] = []
        for key in keys:
            item = self._value(key, revision)
            if item is not None:
                if limit and len(items) == limit:
                    return Page(items, revision, True)
                items.append(item)
        return Page(items, revision, False)

    def _value(self, key: str, revision: int) -> StoredValue | None:
        states = self._states.get(key, [])
        index = bisect_right(states, revision, key=_revision_of) - 1
        if index < 0 or (value := states[index].value) is None:
            return None
        return StoredValue(key, value, states[index].revision)

    async def watch(self, prefix: str, revision: int, observer: IStorageObserver) -> IStorageWatch:
        """See L{IStorageBackend.watch}."""
        self._check(revision)
        watch = self._observers.add(prefix, observer)
        if revision < self.revision:
            first = bisect_right(self._changes, revision, key=_revision_of)
            last = bisect_right(self._changes, self.revision, key=_revision_of)
            watch.hold()
            watch.catch_up(
                [event for event in self._changes[first:last] if event.key.startswith(prefix)], self.revision
            )
        return watch

    async def read_changes(self, prefix: str, after: int, until: int, max_changes: int, max_bytes: int) -> History:
        """
        See L{IStorageHistory.read_changes}.

        @param prefix: The prefix of the keys.
        @param after: The revision after which changes are read.
        @param until: The last revision to read, greater than C{after}.
        @param max_changes: Approximate maximum number of changes.
        @param max_bytes: Approximate maximum size of their values, in bytes.
        """
        self._check(after)
        changes: list[PastChange] = []
        first = bisect_right(self._changes, after, key=_revision_of)
        last = bisect_right(self._changes, until, key=_revision_of)
        for event in self._changes[first:last]:
            if not event.key.startswith(prefix):
                continue
            if changes and event.revision > changes[-1].revision and (len(changes) >= max_changes or max_bytes <= 0):
                return History(changes, changes[-1].revision)
            before = self._value(event.key, event.revision - 1)
            former = None if before is None else before.value
            changes.append(PastChange(event.key, event.value, event.revision, former))
            max_bytes -= len(event.value or b"") + len(former or b"")
        return History(changes, until)

    async def compact(self, revision: int) -> None:
        """See L{IStorageBackend.compact}."""
        self._check(max(revision, self.compacted))
        if revision <= self.compacted:
            return
        self.compacted = revision
        self._delete_superseded(revision)

    def _delete_superseded(self, revision: int) -> None:
        end = bisect_right(self._changes, revision, key=_revision_of)
        for event in self._changes[:end]:
            states = self._states.get(event.key)
            if states is None:
                continue
            superseded = bisect_right(states, revision, key=_revision_of) - 1
            del states[: max(superseded, 0)]
            if states[0].value is None and states[0].revision <= revision:
                del states[0]
            if not states:
                del self._states[event.key]
        del self._changes[:end]
