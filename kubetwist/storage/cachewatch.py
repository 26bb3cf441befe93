"""
Watches of a watch cache: those that are sent everything at once, and those that are sent what their reader takes.

A L{PacedWatch} holds no events for a slow reader, only its place: a revision, and a key while the objects that were
there at first are being sent. What it has to send is in the cache, in the window of past events, or in the backend.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..interfaces import IPacedSink, IPacedWatch, IWatchSink
from .errors import RevisionCompacted, StorageError
from .window import ADDED, CacheEvent, Match

if TYPE_CHECKING:
    from .watchcache import WatchCache

#: Objects or events that are looked at in one turn of the reactor; a selector may refuse all of them.
EXAMINED: Final = 4096
#: Events that are taken out of the window at a time.
TAKEN: Final = 256
#: The C{since} of watches that are sent nothing by the cache: every event is before it.
_NEVER: Final = 1 << 70


class CacheWatch:
    """
    A watch that is sent every event as it happens.

    @ivar active: Cleared by L{stop}.
    @ivar since: Events up to this revision are not sent.
    """

    __slots__ = ("_cache", "active", "match", "scope", "send", "since", "sink")

    def __init__(self, cache: WatchCache, scope: str, match: Match | None, sink: IWatchSink) -> None:
        self._cache = cache
        self.scope = scope
        self.match = match
        self.sink = sink
        self.send = sink.send
        self.since = 0
        self.active = True

    @property
    def revision(self) -> int:
        """Everything up to here was sent; where it begins in the future, that is where."""
        return max(self._cache.revision, self.since)

    def stop(self) -> None:
        """Send nothing more. Can be called at any time, from C{sink.send} too."""
        if self.active:
            self.active = False
            self._cache._remove(self)

    def covers(self, key: str) -> bool:
        """Whether the watch's scope has the key in it."""
        scope = self.scope
        return not scope or key == scope or (scope[-1] == "/" and key.startswith(scope))

    def show(self, event: CacheEvent) -> None:
        """Send an event as it looks through the watch's selector, if it shows there at all."""
        shown = event if self.match is None else event.seen_through(self.match)
        if shown is not None:
            self.send(shown.kind, shown.record, shown)


@implementer(IPacedWatch)
class PacedWatch(CacheWatch):
    """
    A watch that sends while its sink takes more.

    It begins suspended. Each L{resume} sends until the sink is full or everything was sent; then the watch is live: the
    cache sends it events as they happen, until L{suspend}.

    The objects that were there at first are sent in key order, each as it is when its turn comes. Of what happens
    meanwhile, events of objects that were sent already are sent, too, and others are not: their objects come later.
    """

    __slots__ = ("_cursor", "_later", "_past", "_past_end", "_place", "_reading")

    sink: IPacedSink
    _log = Logger()

    def __init__(
        self, cache: WatchCache, scope: str, match: Match | None, sink: IPacedSink, revision: int, initial: bool
    ) -> None:
        """
        @param revision: What comes after it is sent.
        @param initial: The objects that are there are sent before that.
        """
        super().__init__(cache, scope, match, sink)
        self.since = _NEVER
        self._place = revision
        #: The key of the last object that was sent; L{None} when all that were there at first are sent.
        self._cursor: str | None = "" if initial else None
        #: Events that were read from the backend, and the revision up to which they are all there are.
        self._past: deque[CacheEvent] = deque()
        self._past_end = 0
        self._reading = False
        self._later = False

    @property
    def live(self) -> bool:
        """Whether the cache sends it events as they happen."""
        return self.since != _NEVER

    @property
    def revision(self) -> int:
        """See L{IPacedWatch.revision}."""
        return max(self._cache.revision, self.since) if self.since != _NEVER else self._place

    def suspend(self) -> None:
        """See L{IPacedWatch.suspend}."""
        if self.active and self.live:
            self._cache._suspend(self)

    def suspended_at(self, revision: int) -> None:
        """Begin with what comes after C{revision} when it is resumed; called by the cache."""
        if self.live:
            self._place = max(revision, self.since)
            self.since = _NEVER

    def resume(self) -> None:
        """See L{IPacedWatch.resume}."""
        if not self._reading and not self._later:
            self._produce()

    def _produce(self) -> None:
        examined = 0
        cache, sink = self._cache, self.sink
        while self.active and not self.live and not sink.full:
            if examined >= EXAMINED:
                self._later = True
                cache.call_later(self._again)
                return
            if self._past:
                examined += self._send_past(self._past, self._past_end)
            elif self._place < cache.revision:
                try:
                    events = cache.changes_after(self._place, TAKEN)
                except RevisionCompacted:
                    self._reading = True
                    Deferred.fromCoroutine(self._read_past()).addCallbacks(self._again, self._failed)
                    return
                examined += 1 + self._send_past(deque(events), events[-1].revision if events else cache.revision)
            elif self._cursor is not None:
                examined += 1 + self._send_objects(self._cursor)
            else:
                self.since = self._place
                sink.caught_up()

    def _again(self, result: object = None) -> None:
        self._later = self._reading = False
        self._produce()

    def _send_past(self, events: deque[CacheEvent], end: int) -> int:
        """
        Send events until the sink is full, but all of a revision.

        @param events: Those that are sent are taken out.
        @param end: All that happened up to this revision is among them.
        @return: How many were looked at.
        """
        examined, sink, cursor = 0, self.sink, self._cursor
        while events:
            if not self.active:
                return examined
            event = events[0]
            if event.revision > self._place:
                if sink.full:
                    return examined
                self._place = event.revision
            events.popleft()
            examined += 1
            key = event.record.key
            if (cursor is None or key <= cursor) and self.covers(key):
                self.show(event)
        self._place = max(self._place, end)
        return examined

    def _send_objects(self, cursor: str) -> int:
        """
        Send objects behind C{cursor} until the sink is full.

        @return: How many were looked at.
        """
        examined, match, send, sink = 0, self.match, self.send, self.sink
        records = self._cache.records_after(self.scope, cursor)
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
        """Read some events that the window has no more from the backend."""
        events, end = await self._cache.read_past(self._place)
        self._past.extend(events)
        self._past_end = end
        if not events:
            self._place = max(self._place, end)

    def _failed(self, failure: Failure) -> None:
        self._reading = False
        if not self.active:
            return
        error = failure.value
        if isinstance(error, RevisionCompacted):
            end = APIStatusError.expired(f"too old resource version: {self._place} ({error.oldest})")
        elif isinstance(error, StorageError):
            self._log.warn("the past of {prefix} cannot be read: {reason}", prefix=self._cache.prefix, reason=error)
            end = APIStatusError.expired("The watch was interrupted; list again.")
        else:
            self._log.failure("the past of {prefix} cannot be read", failure, prefix=self._cache.prefix)
            end = APIStatusError.internal("the watch could not go on")
        self.stop()
        self.sink.end(end)
