"""The recent past of a resource: the start of watches, and the base of exact lists at a revision."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from ...api.record import Record
from ..errors import RevisionCompacted

ADDED: Final = "ADDED"
MODIFIED: Final = "MODIFIED"
DELETED: Final = "DELETED"

#: Number of the newest events that keep their encoded forms; a watch that is further behind encodes them again.
ENCODED_EVENTS: Final = 256
#: The memory of an event in bytes, besides the JSON of its record.
EVENT_BYTES: Final = 600

#: Returns whether a record is selected.
Match = Callable[[Record], bool]

_revision_of = attrgetter("revision")


class CacheEvent:
    """
    One change of one object, as watches see it.

    @ivar kind: C{"ADDED"}, C{"MODIFIED"} or C{"DELETED"}.
    @ivar record: The state to show: the new one, or the last one of an object that is deleted.
    @ivar previous: The state before; L{None} when the object is new.
    @ivar encoded: The encoded event, by encoder; a cache that sinks share.
    """

    __slots__ = ("_as_added", "_as_deleted", "encoded", "kind", "previous", "record", "revision")

    def __init__(self, kind: str, revision: int, record: Record, previous: Record | None) -> None:
        self.kind = kind
        self.revision = revision
        self.record = record
        self.previous = previous
        self.encoded: dict[Any, Any] | None = None
        self._as_added: CacheEvent | None = None
        self._as_deleted: CacheEvent | None = None

    def filter_for(self, match: Match) -> CacheEvent | None:
        """Return the event as seen through a selector; L{None} if it is invisible."""
        previous = self.previous
        before = previous is not None and match(previous)
        if self.kind == DELETED:
            return self if before else None
        if match(self.record):
            return self if before or previous is None else self.as_added()
        return self.as_deleted() if before else None

    def as_added(self) -> CacheEvent:
        """Return the event for watches whose selector newly matches: the object is ADDED."""
        if self._as_added is None:
            self._as_added = CacheEvent(ADDED, self.revision, self.record, None)
        return self._as_added

    def as_deleted(self) -> CacheEvent:
        """Return the event for watches whose selector stops matching: DELETED, the old state at the new revision."""
        if self._as_deleted is None:
            assert self.previous is not None
            self._as_deleted = CacheEvent(
                DELETED, self.revision, self.previous.deleted_at(self.revision), self.previous
            )
        return self._as_deleted

    def drop_encodings(self) -> None:
        """Drop the encoded forms of the event, and of the state that it replaced."""
        self.encoded = None
        if self.previous is not None:
            self.previous.encodings = None
        for filtered in (self._as_added, self._as_deleted):
            if filtered is not None:
                filtered.drop_encodings()


class EventBatch:
    """
    The events of one delivery as a selector sees them, shared by all watches with that selector.

    @ivar events: The events, in revision order.
    @ivar first: The revision of the first one; 0 if there are none.
    @ivar last: The revision of the last one; 0 if there are none.
    @ivar encoded: The encoded events, by encoder; a cache that sinks share.
    """

    __slots__ = ("encoded", "events", "first", "last")

    def __init__(self, events: list[CacheEvent], match: Match | None) -> None:
        """
        @param events: The events before selection.
        @param match: The selector; L{None} selects all.
        """
        if match is not None:
            events = [seen for event in events if (seen := event.filter_for(match)) is not None]
        self.events = events
        self.first = events[0].revision if events else 0
        self.last = events[-1].revision if events else 0
        self.encoded: dict[Any, Any] = {}


class Window:
    """
    Events in revision order, limited in number and bytes.

    @ivar oldest: Every event after this revision is here.
    """

    __slots__ = ("_bytes", "_events", "_max_bytes", "_max_events", "oldest")

    def __init__(self, oldest: int, max_events: int, max_bytes: int) -> None:
        self.oldest = oldest
        self._events: list[CacheEvent] = []
        self._bytes = 0
        self._max_events = max_events
        self._max_bytes = max_bytes

    def __len__(self) -> int:
        return len(self._events)

    def add(self, event: CacheEvent) -> None:
        """Append an event; the oldest ones are dropped when the window is full."""
        events = self._events
        events.append(event)
        if len(events) > ENCODED_EVENTS:
            events[-1 - ENCODED_EVENTS].drop_encodings()
        self._bytes += len(event.record.item) + EVENT_BYTES
        if len(events) > self._max_events or self._bytes > self._max_bytes:
            self._make_room()

    def _make_room(self) -> None:
        # A sixteenth at a time: taking from the front of a list moves the rest.
        events, size = self._events, self._bytes
        max_events = self._max_events if len(events) <= self._max_events else self._max_events * 15 // 16
        room = self._max_bytes if size <= self._max_bytes else self._max_bytes * 15 // 16
        dropped = 0
        while dropped < len(events) - 1 and (len(events) - dropped > max_events or size > room):
            size -= len(events[dropped].record.item) + EVENT_BYTES
            dropped += 1
        self._drop(dropped)

    def forget(self, revision: int) -> None:
        """Drop the events up to C{revision}."""
        if revision > self.oldest:
            self._drop(bisect_right(self._events, revision, key=_revision_of))
            self.oldest = revision

    def _drop(self, count: int) -> None:
        events = self._events
        if count:
            # Other events of that revision may stay; they are not read.
            self.oldest = events[count - 1].revision
            self._bytes -= sum(len(event.record.item) + EVENT_BYTES for event in events[:count])
            del events[:count]

    def after(self, revision: int) -> list[CacheEvent]:
        """
        Return all events after C{revision}.

        @raise RevisionCompacted: Some of them were dropped.
        """
        if revision < self.oldest:
            raise RevisionCompacted(revision, self.oldest)
        events = self._events
        if not events or events[-1].revision <= revision:
            return []
        return events[bisect_right(events, revision, key=_revision_of) :]

    def some_after(self, revision: int, max_events: int) -> list[CacheEvent]:
        """
        Return the first events after C{revision}, complete for the last of their revisions.

        @param max_events: Maximum number, except for the rest of the last revision.
        @raise RevisionCompacted: Some of them were dropped.
        """
        if revision < self.oldest:
            raise RevisionCompacted(revision, self.oldest)
        events = self._events
        first = bisect_right(events, revision, key=_revision_of)
        last = min(first + max_events, len(events))
        while first < last < len(events) and events[last].revision == events[last - 1].revision:
            last += 1
        return events[first:last]
