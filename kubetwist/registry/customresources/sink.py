"""Between a cache and a watch: holds events back until their objects have been converted."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...interfaces import IWatchSink
from ...storage.record import Record

#: How many events may wait; a watch that falls behind further is ended, and its client starts over.
WAITING_LIMIT: Final = 100_000


@implementer(IWatchSink)
class PreparingSink:
    """
    Passes on what it is told, in order, each event when its record is prepared; those that wait are prepared together.

    @ivar revision: How far the watch has come, for bookmarks.
    """

    _log = Logger()

    def __init__(
        self,
        sink: Any,
        prepared: Callable[[Record], bool],
        prepare: Callable[[Iterable[Record]], Awaitable[None]],
    ) -> None:
        self._sink = sink
        self._prepared = prepared
        self._prepare = prepare
        self._waiting: deque[tuple[str, Record, Any]] = deque()
        self._handle: Any = None
        self._working = True  # Nothing is passed on before the watch has begun.
        self._over = False
        self._ended: tuple[Any] | None = None

    async def begun(self, handle: Any) -> PreparingSink:
        """
        The cache delivers; wait for what it has delivered so far.

        @param handle: What stops it.
        @return: What stops it from now on.
        @raise APIStatusError: The conversion failed.
        """
        self._handle = handle
        try:
            await self._pass_on()
        except BaseException:
            self.stop()
            raise
        self._working = False
        return self

    @property
    def revision(self) -> int:
        """How far the watch has come: not beyond what waits."""
        if self._waiting:
            return int(self._waiting[0][1].revision) - 1
        return int(self._handle.revision)

    def stop(self) -> None:
        """Nobody listens any more."""
        self._over = True
        self._waiting.clear()
        if self._handle is not None:
            self._handle.stop()

    def send(self, kind: str, record: Record, event: Any) -> None:
        """See L{IWatchSink.send}."""
        if self._over:
            return
        if not self._working and self._prepared(record):
            self._sink.send(kind, record, event)
            return
        self._waiting.append((kind, record, event))
        if len(self._waiting) > WAITING_LIMIT:
            self._fail(None)
        elif not self._working:
            self._working = True
            Deferred.fromCoroutine(self._pass_on()).addCallbacks(self._idle, self._broken)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """See L{IWatchSink.bookmark}; one that comes too early is left out, as they are no promise."""
        if not self._over and not self._waiting:
            self._sink.bookmark(revision, initial_events_end)

    def end(self, error: Any) -> None:
        """See L{IWatchSink.end}."""
        if self._waiting:
            self._ended = (error,)
        elif not self._over:
            self._over = True
            self._sink.end(error)

    async def _pass_on(self) -> None:
        waiting = self._waiting
        while waiting:
            await self._prepare([record for _, record, _ in waiting])
            while waiting and self._prepared(waiting[0][1]):
                kind, record, event = waiting.popleft()
                self._sink.send(kind, record, event)
        if self._ended is not None and not self._over:
            self._over = True
            self._sink.end(self._ended[0])

    def _idle(self, _: object) -> None:
        self._working = False

    def _broken(self, failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, APIStatusError):
            self._log.failure("a watch could not go on", failure)
            error = APIStatusError.internal("the watch could not go on")
        self._fail(error)

    def _fail(self, error: APIStatusError | None) -> None:
        if not self._over:
            self.stop()
            self._sink.end(error)
