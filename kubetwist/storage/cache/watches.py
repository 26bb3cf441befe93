"""
Watches of a watch cache: unpaced ones that receive everything immediately, and paced ones.

A L{PacedWatch} queues no events for a slow reader. It keeps a position: a revision, and a key while the initial objects
are sent. The events are in the cache, in the window of past events, or in the backend.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import ClassVar, Final, Protocol

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.record import Record
from ...interfaces import (
    IBatchSink,
    IPacedSink,
    IPacedWatch,
    IWatchSink,
)
from ..errors import (
    ErrorTranslator,
    RevisionCompacted,
    StorageError,
    WatchFailed,
    WatchInterrupted,
)
from .indexes import Equality
from .window import (
    ADDED,
    CacheEvent,
    EventBatch,
    Match,
)

#: Objects or events that are visited in one turn of the reactor; a selector may exclude all of them.
MAX_VISITED_PER_TURN: Final = 4096
#: Events that are read from the window at a time.
EVENT_BATCH_SIZE: Final = 256
#: The C{since} of watches that the cache does not send to: every event is before it.
_NEVER: Final = 1 << 70


class EventSource(Protocol):
    """The parts of the cache that watches use: L{kubetwist.storage.cache.watchcache.WatchCache}."""

    @property
    def prefix(self) -> str:
        """Return the storage prefix of the resource, for the log."""

    @property
    def revision(self) -> int:
        """Return the newest revision of the cache."""

    @property
    def delivered_revision(self) -> int:
        """Return the newest revision whose events all watches have received."""

    @property
    def translate(self) -> ErrorTranslator:
        """Return the translator of errors for sinks."""

    def remove_watch(self, watch: CacheWatch) -> None:
        """Send no more events to a watch."""

    def suspend_watch(self, watch: PacedWatch) -> None:
        """Stop sending to C{watch}, and set the revision after which it begins when it is resumed."""

    def call_later(self, call: Callable[[], object]) -> None:
        """Call a function in the next turn of the reactor."""

    def changes_after(self, revision: int, max_events: int) -> Sequence[CacheEvent]:
        """
        Return some events after C{revision}, and all of their revisions.

        @raise RevisionCompacted: The window has dropped them.
        """

    def records_after(self, scope: str, key: str, equalities: Sequence[Equality] = ()) -> Sequence[Record]:
        """
        Return some records after a key, in key order; none after the last.

        @param scope: The scope of the records.
        @param key: The key.
        @param equalities: Values that are required: an index may leave out other records.
        """

    async def read_past(self, revision: int) -> tuple[Sequence[CacheEvent], int]:
        """See L{kubetwist.storage.cache._history.PastReader.read}; reads up to the beginning of the window."""


class CacheWatch:
    """
    A watch that receives every event as it happens.

    @cvar paced: Whether it is a L{PacedWatch}, whose sink may receive events later than other sinks.
    @ivar active: Cleared by L{stop}.
    @ivar since: Events up to this revision are not sent.
    @ivar send_batch: Sends the events of a batch at once; L{None} if the sink does not provide L{IBatchSink}.
    """

    __slots__ = ("_cache", "active", "match", "scope", "send", "send_batch", "since", "sink")
    paced: ClassVar[bool] = False

    def __init__(self, cache: EventSource, scope: str, match: Match | None, sink: IWatchSink) -> None:
        self._cache = cache
        self.scope = scope
        self.match = match
        self.sink = sink
        self.send = sink.send
        self.send_batch: Callable[[EventBatch], bool] | None = sink.send_batch if IBatchSink.providedBy(sink) else None
        self.since = 0
        self.active = True

    @property
    def revision(self) -> int:
        """Return the revision up to which everything was sent; for a watch from a future revision, that revision."""
        return max(self._cache.revision, self.since)

    def stop(self) -> None:
        """Stop sending. Can be called at any time, also from C{sink.send}."""
        if self.active:
            self.active = False
            self._cache.remove_watch(self)

    def covers(self, key: str) -> bool:
        """Return whether the watch's scope contains the key."""
        scope = self.scope
        return not scope or key == scope or (scope[-1] == "/" and key.startswith(scope))

    def send_filtered(self, event: CacheEvent) -> None:
        """Send an event, converted by the watch's selector, if it is visible there."""
        filtered = event if self.match is None else event.filter_for(self.match)
        if filtered is not None:
            self.send(filtered.kind, filtered.record, filtered)

    def send_each(self, batch: EventBatch) -> None:
        """Send the events of a batch after C{since} one by one, until the watch is stopped or suspended."""
        since, current = self.since, 0
        for event in batch.events:
            revision = event.revision
            if revision <= since:
                continue
            if not self.active:
                return
            if revision != current:
                if current and self.since != current:
                    # Suspended, when all events of that revision are sent.
                    return
                self.since = current = revision
            self.send(event.kind, event.record, event)


@implementer(IPacedWatch)
class PacedWatch(CacheWatch):
    """
    A watch that sends while its sink accepts more.

    It begins suspended. Each L{resume} sends until the sink is full or everything was sent; then the watch is live: the
    cache sends it events as they happen, until L{suspend}.

    The initial objects are sent in key order, each in its state at that time. During that time, events of objects that
    were sent already are sent, too; events of other objects are not, since these objects are sent later.
    """

    __slots__ = (
        "_cursor",
        "_equalities",
        "_past_end",
        "_past_events",
        "_position",
        "_reading",
        "_scheduled",
        "_sending",
    )

    paced = True
    sink: IPacedSink
    _log = Logger()

    def __init__(
        self,
        cache: EventSource,
        scope: str,
        match: Match | None,
        sink: IPacedSink,
        revision: int,
        initial: bool,
        equalities: Sequence[Equality] = (),
    ) -> None:
        """
        @param revision: Later events are sent.
        @param initial: Whether the current objects are sent first.
        @param equalities: The values that C{match} requires, for an index of the current objects.
        """
        super().__init__(cache, scope, match, sink)
        self.since = _NEVER
        self._position = revision
        self._equalities = equalities
        #: The key of the last sent object; L{None} when all initial objects are sent.
        self._cursor: str | None = "" if initial else None
        #: Events that were read from the backend, and the revision up to which they are complete.
        self._past_events: deque[CacheEvent] = deque()
        self._past_end = 0
        self._reading = False
        self._scheduled = False
        #: Whether L{send_each} runs.
        self._sending = False

    @property
    def live(self) -> bool:
        """Return whether the cache sends it events as they happen."""
        return self.since != _NEVER

    @property
    def revision(self) -> int:
        """See L{IPacedWatch.revision}."""
        return max(self._cache.delivered_revision, self.since) if self.since != _NEVER else self._position

    def suspend(self) -> None:
        """See L{IPacedWatch.suspend}."""
        if self.active and self.live:
            self._cache.suspend_watch(self)

    def suspended_at(self, revision: int) -> None:
        """Set the revision after which it begins when it is resumed; called by the cache."""
        if self.live:
            self._position = max(revision, self.since)
            self.since = _NEVER

    def resume(self) -> None:
        """See L{IPacedWatch.resume}."""
        if self._reading or self._scheduled:
            return
        if self._sending:
            # The rest of the revision that is being sent comes first.
            self._scheduled = True
            self._cache.call_later(self._continue)
        else:
            self._produce()

    def send_each(self, batch: EventBatch) -> None:
        """See L{CacheWatch.send_each}."""
        self._sending = True
        try:
            super().send_each(batch)
        finally:
            self._sending = False

    def _produce(self) -> None:
        examined = 0
        cache, sink = self._cache, self.sink
        while self.active and not self.live and not sink.full:
            if examined >= MAX_VISITED_PER_TURN:
                self._scheduled = True
                cache.call_later(self._continue)
                return
            if self._past_events:
                examined += self._send_past(self._past_events, self._past_end)
            elif self._position < cache.revision:
                try:
                    events = cache.changes_after(self._position, EVENT_BATCH_SIZE)
                except RevisionCompacted:
                    self._reading = True
                    Deferred.fromCoroutine(self._read_past()).addCallbacks(self._continue, self._failed)
                    return
                examined += 1 + self._send_past(deque(events), events[-1].revision if events else cache.revision)
            elif self._cursor is not None:
                examined += 1 + self._send_objects(self._cursor)
            else:
                self.since = self._position
                sink.caught_up()

    def _continue(self, result: object = None) -> None:
        self._scheduled = self._reading = False
        self._produce()

    def _send_past(self, events: deque[CacheEvent], end: int) -> int:
        """
        Send events until the sink is full, but all of a revision.

        @param events: Sent events are removed.
        @param end: The revision up to which C{events} is complete.
        @return: The number of visited events.
        """
        examined, sink, cursor = 0, self.sink, self._cursor
        while events:
            if not self.active:
                return examined
            event = events[0]
            if event.revision > self._position:
                if sink.full:
                    return examined
                self._position = event.revision
            events.popleft()
            examined += 1
            key = event.record.key
            if (cursor is None or key <= cursor) and self.covers(key):
                self.send_filtered(event)
        self._position = max(self._position, end)
        return examined

    def _send_objects(self, cursor: str) -> int:
        """
        Send objects after C{cursor} until the sink is full.

        @return: The number of visited objects.
        """
        examined, match, send, sink = 0, self.match, self.send, self.sink
        records = self._cache.records_after(self.scope, cursor, self._equalities)
        if not records:
            self._cursor = None
        for record in records:
            if sink.full or not self.active:
                break
            examined += 1
            self._cursor = record.key
            if match is None or match(record):
                send(ADDED, record, None)
        return examined

    async def _read_past(self) -> None:
        """Read events that the window has dropped from the backend."""
        events, end = await self._cache.read_past(self._position)
        self._past_events.extend(events)
        self._past_end = end
        if not events:
            self._position = max(self._position, end)

    def _failed(self, failure: Failure) -> None:
        self._reading = False
        if not self.active:
            return
        error = failure.value
        if isinstance(error, RevisionCompacted):
            end: StorageError = RevisionCompacted(self._position, error.oldest)
        elif isinstance(error, StorageError):
            self._log.warn("the past of {prefix} cannot be read: {reason}", prefix=self._cache.prefix, reason=error)
            end = WatchInterrupted()
        else:
            self._log.failure("the past of {prefix} cannot be read", failure, prefix=self._cache.prefix)
            end = WatchFailed()
        self.stop()
        self.sink.end(self._cache.translate(end))
