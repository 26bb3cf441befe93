"""Read events that a watch cache has dropped, from a backend that keeps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.record import Record
from ...api.storage import (
    History,
    PastChange,
    StoredValue,
)
from ...interfaces import (
    IStorageBackend,
    IStorageHistory,
)
from .._expiry import Timer
from ..errors import (
    CorruptObjectError,
    RevisionCompacted,
)
from ..locks import FlatSemaphore
from ..protobuf import (
    MAX_TURN_COST,
    decode_cost,
    yield_to_reactor,
)
from .corruptobjects import record_of
from .window import (
    ADDED,
    DELETED,
    MODIFIED,
    CacheEvent,
)

#: Limits of one read: number of changes, and bytes of their values.
CHANGES: Final = 500
BYTES: Final = 64 << 10
#: Maximum number of watches that read at the same time; the rest wait.
READERS: Final = 2


class PastReader:
    """Reads the past events of one cache."""

    def __init__(
        self, backend: IStorageBackend, prefix: str, decode: Callable[[str, bytes, int], Record], clock: Timer
    ) -> None:
        """
        @param prefix: The prefix of the cache's keys.
        @param decode: Returns the record of a key below the prefix, a stored value and its revision.
        """
        self._backend = backend
        self._prefix = prefix
        self._decode = decode
        self._clock = clock
        self._readers = FlatSemaphore(READERS)

    @property
    def available(self) -> bool:
        """Return whether the backend keeps past changes."""
        return bool(IStorageHistory.providedBy(self._backend))

    async def read(self, revision: int, until: int) -> tuple[list[CacheEvent], int]:
        """
        Read events after C{revision}, up to another revision.

        @return: The events, and the revision up to which they are complete; it is greater than C{revision}.
        @raise StorageError: They are compacted, or cannot be read.
        """
        if not self.available:
            raise RevisionCompacted(revision, until)
        backend = IStorageHistory(self._backend)
        await self._readers.acquire()
        try:
            history: History = await backend.read_changes(
                self._prefix, revision, max(until, revision + 1), CHANGES, BYTES
            )
            events: list[CacheEvent] = []
            cost = 0.0
            for change in history.changes:
                event = self._event(change)
                if event is not None:
                    events.append(event)
                if change.value is not None:
                    cost += decode_cost(change.value)
                    if cost >= MAX_TURN_COST:
                        await yield_to_reactor(self._clock)
                        cost = 0.0
        finally:
            self._readers.release()
        return events, history.revision

    def _event(self, change: PastChange) -> CacheEvent | None:
        """Return the event of a change; L{None} for the deletion of an unknown object."""
        if change.problem:
            raise CorruptObjectError(change.key, change.problem, change.revision)
        revision = change.revision
        previous = None if change.former is None else self._record(change.key, change.former, revision - 1)
        if change.value is None:
            if previous is None:
                return None
            return CacheEvent(DELETED, revision, previous.deleted_at(revision), previous)
        record = self._record(change.key, change.value, revision)
        return CacheEvent(ADDED if previous is None else MODIFIED, revision, record, previous)

    def _record(self, key: str, value: bytes, revision: int) -> Record:
        return record_of(StoredValue(key, value, revision), self._decode, len(self._prefix))
