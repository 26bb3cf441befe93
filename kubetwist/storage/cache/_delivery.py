"""
The delivery of events to watches.

The events that happen at the same time are delivered together. They are selected once for all watches with the same
selector, whose sinks share the encoded events. A delivery to many paced watches continues in later iterations of the
reactor.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from twisted.internet.defer import Deferred, succeed

from .._expiry import Timer
from .watches import CacheWatch
from .window import CacheEvent, EventBatch, Match

#: Seconds for which events are delivered in one iteration of the reactor; the connections send for another 5 ms.
DELIVERY_SECONDS = 0.003
#: Number of watches that are served before the time is checked.
UNINTERRUPTED: Final = 64
#: Number of watches from which on a delivery is divided.
MIN_DIVIDED: Final = 512


class _ScopedDelivery:
    """The events of one delivery that the watches of a scope receive, unless their selectors exclude them."""

    def __init__(
        self, watches: Sequence[CacheWatch], events: list[CacheEvent], failed: Callable[[CacheWatch], object]
    ) -> None:
        self.watches = watches
        self._events = events
        self._failed = failed
        self._batches: dict[int, EventBatch] = {}

    def deliver(self, watches: Sequence[CacheWatch]) -> None:
        """Deliver the events to some of the watches."""
        events, batches = self._events, self._batches
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
                self._failed(watch)


class _Delivery(NamedTuple):
    """A delivery that is not complete: its steps, and the revisions before and after it."""

    steps: Iterator[None]
    before: int
    last: int


class DeliveryQueue:
    """
    Delivers events to the watches of a cache, in revision order.

    Watches that are not paced receive events at once: controllers, authorization and admission depend on them. Paced
    watches of a large delivery receive them in several iterations. Until then they have not reached its revision, and
    writers wait with L{wait}.

    @ivar served: While events are delivered: the revision before them, which all watches have reached.
    """

    def __init__(self, clock: Timer, failed: Callable[[CacheWatch], object]) -> None:
        """
        @param clock: Schedules the rest of a delivery.
        @param failed: Called with a watch whose sink or selector has raised, while the exception is handled.
        """
        self._clock = clock
        self._failed = failed
        self.served: int | None = None
        self._queue: deque[_Delivery] = deque()
        self._waiters: list[tuple[int, Deferred[None]]] = []
        #: Whether L{_run} runs, or is scheduled.
        self._busy = False

    @property
    def pending(self) -> bool:
        """Return whether a delivery is not complete."""
        return bool(self._queue)

    def deliver(self, watches: Mapping[str, Sequence[CacheWatch]], events: Sequence[CacheEvent], before: int) -> None:
        """
        Deliver events to the watches of their scopes.

        @param watches: The watches by scope, in immutable sequences: sinks may begin and stop watches.
        @param events: The events, in revision order.
        @param before: The revision of the cache before them.
        """
        by_scope: dict[str, list[CacheEvent]] = {}
        for event in events:
            record = event.record
            for scope in ("", f"{record.namespace}/", record.key) if record.namespace else ("", record.key):
                if scope in watches:
                    by_scope.setdefault(scope, []).append(event)
        deliveries = [_ScopedDelivery(watches[scope], scoped, self._failed) for scope, scoped in by_scope.items()]
        served, busy = self.served, self._busy
        divided = served is not None or sum(len(one.watches) for one in deliveries) >= MIN_DIVIDED
        if divided:
            self._queue.append(_Delivery(_deliver_paced(deliveries), before, events[-1].revision))
        if served is None:
            self.served = before
        self._busy = True
        try:
            for one in deliveries:
                one.deliver([watch for watch in one.watches if not watch.paced] if divided else one.watches)
        finally:
            self.served, self._busy = served, busy
        if self._queue and not busy:
            self._run()

    def _run(self) -> None:
        """Deliver for some time, and schedule the rest."""
        self._busy = True
        seconds = self._clock.seconds
        end = seconds() + DELIVERY_SECONDS
        while self._queue:
            delivery = self._queue[0]
            self.served = delivery.before
            for _ in delivery.steps:
                if seconds() >= end:
                    self._clock.callLater(0, self._run)
                    return
            if self._queue and self._queue[0] is delivery:
                self._queue.popleft()
                self._reached(delivery.last)
        self.served = None
        self._busy = False

    def _reached(self, revision: int) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter[0] <= revision:
                waiter[1].callback(None)
            else:
                self._waiters.append(waiter)

    def wait(self, revision: int) -> Deferred[None]:
        """Wait until all watches have received the events up to C{revision}."""
        if not self._queue or self._queue[0].before >= revision:
            return succeed(None)
        waiter: Deferred[None] = Deferred(lambda _: self._waiters.remove((revision, waiter)))
        self._waiters.append((revision, waiter))
        return waiter

    def clear(self) -> None:
        """Deliver nothing more: the watches have ended."""
        if self._queue:
            last = self._queue[-1].last
            self._queue.clear()
            self._reached(last)


def _deliver_paced(deliveries: Sequence[_ScopedDelivery]) -> Iterator[None]:
    """Deliver to paced watches, in steps."""
    for one in deliveries:
        watches = [watch for watch in one.watches if watch.paced]
        for begin in range(0, len(watches), UNINTERRUPTED):
            one.deliver(watches[begin : begin + UNINTERRUPTED])
            yield
