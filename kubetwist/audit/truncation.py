"""
Size limits of events and batches.

@see: kubernetes/apiserver, C{plugin/pkg/audit/truncate}.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from .event import Event
from .policy import REQUEST


@frozen
class TruncateConfig:
    """
    Maximum sizes in bytes.

    @ivar max_event_size: Maximum size of an event. Larger events are written without objects, or else dropped.
    @ivar max_batch_size: Maximum total size of the events of a batch.
    """

    max_event_size: int
    max_batch_size: int


def truncate(event: Event, limits: TruncateConfig | None) -> Event | None:
    """Return the event, without objects if it is too large; L{None} if it is still too large."""
    # The size includes the newline, as in the reference.
    if limits is None or len(event.json()) < limits.max_event_size:
        return event
    if event.metadata.level >= REQUEST:
        event = event.without_objects()
        if len(event.json()) < limits.max_event_size:
            return event
    return None


def split_batches(items: Iterable[bytes], limits: TruncateConfig | None) -> Iterator[list[bytes]]:
    """Split encoded events into batches below the size limit."""
    batch: list[bytes] = []
    size = 0
    for item in items:
        if batch and limits is not None and size + len(item) > limits.max_batch_size:
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item)
    if batch:
        yield batch


TOO_LARGE = "event is too large even after truncating"
