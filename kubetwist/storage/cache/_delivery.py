"""
The delivery of events to watches.

The events that happen at the same time are delivered together. They are selected once for all watches with the same
selector, whose sinks share the encoded events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .watches import CacheWatch
from .window import CacheEvent, EventBatch, Match


def deliver(
    watches: Mapping[str, Sequence[CacheWatch]],
    events: Sequence[CacheEvent],
    failed: Callable[[CacheWatch], object],
) -> None:
    """
    Deliver events to the watches of their scopes.

    @param watches: The watches by scope, in immutable sequences: sinks may begin and stop watches.
    @param events: The events, in revision order.
    @param failed: Called with a watch whose sink or selector has raised, while the exception is handled.
    """
    by_scope: dict[str, list[CacheEvent]] = {}
    for event in events:
        record = event.record
        for scope in ("", f"{record.namespace}/", record.key) if record.namespace else ("", record.key):
            if scope in watches:
                by_scope.setdefault(scope, []).append(event)
    for scope, scoped in by_scope.items():
        _deliver_to(watches.get(scope, ()), scoped, failed)


def _deliver_to(
    watches: Sequence[CacheWatch], events: list[CacheEvent], failed: Callable[[CacheWatch], object]
) -> None:
    """Deliver events to the watches of one scope."""
    batches: dict[int, EventBatch] = {}
    batch: EventBatch | None = None
    selected: Match | None = None
    first = last = 0
    for watch in watches:
        if not watch.active:
            continue
        try:
            match = watch.match
            if match is not selected or batch is None:
                batch, selected = batches.get(id(match)), match
                if batch is None:
                    batch = batches[id(match)] = EventBatch(events, match)
                first, last = batch.first, batch.last
            since = watch.since
            if since >= last:
                continue
            if since < first:
                send = watch.send_batch
                if send is not None:
                    # The sink may suspend the watch.
                    watch.since = last
                    if send(batch):
                        continue
                    watch.since = since
            watch.send_each(batch)
        except Exception:
            failed(watch)
