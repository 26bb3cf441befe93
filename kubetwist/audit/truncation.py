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
class Limits:
    """
    In bytes.

    @ivar event: Of an event; larger ones are told without their objects, and not at all if that does not help.
    @ivar batch: Of events that are sent together.
    """

    event: int
    batch: int


def fitted(event: Event, limits: Limits | None) -> Event | None:
    """The event as far as the limits let it be told; L{None} for not at all."""
    # The reference counts the newline, too.
    if limits is None or len(event.json()) < limits.event:
        return event
    if event.about.level >= REQUEST:
        event = event.without_objects()
        if len(event.json()) < limits.event:
            return event
    return None


def parted(items: Iterable[bytes], limits: Limits | None) -> Iterator[list[bytes]]:
    """Encoded events, in batches that are not too large."""
    part: list[bytes] = []
    size = 0
    for item in items:
        if part and limits is not None and size + len(item) > limits.batch:
            yield part
            part, size = [], 0
        part.append(item)
        size += len(item)
    if part:
        yield part


TOO_LARGE = "event is too large even after truncating"
