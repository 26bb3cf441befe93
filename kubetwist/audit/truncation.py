"""
Limits of size: of an event, and of what is sent at once.

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
    In bytes.

    @ivar max_event_size: Of an event; larger ones are told without their objects, and not at all if that does not help.
    @ivar max_batch_size: Of events that are sent together.
    """

    max_event_size: int
    max_batch_size: int


def truncate(event: Event, limits: TruncateConfig | None) -> Event | None:
    """The event as far as the limits let it be told; L{None} for not at all."""
    # The reference counts the newline, too.
    if limits is None or len(event.json()) < limits.max_event_size:
        return event
    if event.metadata.level >= REQUEST:
        event = event.without_objects()
        if len(event.json()) < limits.max_event_size:
            return event
    return None


def split_batches(items: Iterable[bytes], limits: TruncateConfig | None) -> Iterator[list[bytes]]:
    """Encoded events, in batches that are not too large."""
    part: list[bytes] = []
    size = 0
    for item in items:
        if part and limits is not None and size + len(item) > limits.max_batch_size:
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item)
    if part:
        yield part


TOO_LARGE = "event is too large even after truncating"
