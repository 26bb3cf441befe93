"""The outcome of a transaction whose connection was lost before its result, from the changes since then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...api.storage import StorageEvent, Write
from ..errors import OutcomeUnknown, StorageUnavailable

#: Events by key.
EventsByKey = Mapping[str, Sequence[StorageEvent]]


def events_by_key(events: Sequence[StorageEvent]) -> EventsByKey:
    """Return events by key."""
    found: dict[str, list[StorageEvent]] = {}
    for event in events:
        found.setdefault(event.key, []).append(event)
    return found


def find_outcome(writes: Sequence[Write], events: EventsByKey, *, complete: bool) -> int:
    """
    Return the revision of a transaction without a result.

    A unique value in an event shows that the transaction was committed. If there is no event with any of its values, it
    was not, provided that no later event can be its.

    @param writes: The writes of the transaction.
    @param events: All events since it was sent.
    @param complete: Whether no more events of the transaction can follow.
    @raise StorageUnavailable: It was not committed, and will not be.
    @raise OutcomeUnknown: It may have been committed, or may be committed later.
    """
    possible = False
    for write in writes:
        for event in events.get(write.key, ()):
            if event.value == write.value:
                if write.unique and write.value is not None:
                    return event.revision
                possible = True
    if complete and not possible:
        raise StorageUnavailable("the storage process ended before it wrote")
    raise OutcomeUnknown("the connection to the storage process was lost before it answered")
