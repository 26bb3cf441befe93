"""Watch sink that buffers events until their objects are converted."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.record import Record
from ...interfaces import IPacedSink, IPacedWatch

#: Maximum number of events that wait for conversion, except for the rest of a transaction; converted in one batch.
BATCH: Final = 500


@implementer(IPacedSink, IPacedWatch)
class ConvertingWatchSink:
    """
    Passes events on in order, each when its record is converted.

    It is the sink of the cache's watch, and controls that watch for the next sink.
    """

    _log = Logger()

    def __init__(
        self,
        sink: Any,
        is_converted: Callable[[Record], bool],
        ensure_converted: Callable[[Iterable[Record]], Awaitable[None]],
    ) -> None:
        """
        @param sink: The next sink, which may be an L{IPacedSink}.
        @param is_converted: Returns whether a record is converted.
        @param ensure_converted: Converts records.
        """
        self._sink = sink
        self._paced = IPacedSink.providedBy(sink)
        self._is_converted = is_converted
        self._ensure_converted = ensure_converted
        self._waiting: deque[tuple[str, Record, Any]] = deque()
        self._handle: Any = None
        #: Whether events are only collected, since a conversion or the source is running.
        self._collecting = True
        #: Whether the source has caught up; the sink is notified after the buffered events.
        self._caught_up = False
        self._over = False
        self._ended: tuple[Any] | None = None

    async def convert_initial(self, handle: Any) -> ConvertingWatchSink:
        """
        Convert the initial objects, so that a failure is reported before the response begins.

        @param handle: The cache's watch, L{IPacedWatch}, which is not resumed yet.
        @return: The object that controls the watch from now on.
        @raise APIStatusError: The conversion failed.
        """
        self._handle = handle
        try:
            handle.resume()
            await self._ensure_converted([record for _, record, _ in self._waiting])
        except BaseException:
            self.stop()
            raise
        self._collecting = False
        if not self._paced:
            self._process_events()
        return self

    # --- IPacedWatch

    @property
    def revision(self) -> int:
        """Return the revision up to which events were passed on."""
        if self._waiting:
            return int(self._waiting[0][1].revision) - 1
        return int(self._handle.revision)

    def resume(self) -> None:
        """See L{IPacedWatch.resume}."""
        if not self._collecting:
            self._process_events()

    def suspend(self) -> None:
        """See L{IPacedWatch.suspend}."""
        self._handle.suspend()

    def stop(self) -> None:
        """Stop sending."""
        self._over = True
        self._waiting.clear()
        if self._handle is not None:
            self._handle.stop()

    # --- IPacedSink

    @property
    def full(self) -> bool:
        """See L{IPacedSink.full}."""
        return self._over or len(self._waiting) >= BATCH

    def caught_up(self) -> None:
        """See L{IPacedSink.caught_up}."""
        self._caught_up = True
        if not self._collecting:
            self._process_events()

    def send(self, event_type: str, record: Record, event: object) -> None:
        """See L{IWatchSink.send}."""
        if self._over:
            return
        self._waiting.append((event_type, record, event))
        if not self._collecting:
            self._process_events()
        if len(self._waiting) == BATCH:
            self._handle.suspend()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """See L{IWatchSink.bookmark}; bookmarks before the buffered events are dropped."""
        if not self._over and not self._waiting:
            self._sink.bookmark(revision, initial_events_end)

    def end(self, error: Exception | None) -> None:
        """See L{IWatchSink.end}."""
        if self._waiting:
            self._ended = (error,)
        elif not self._over:
            self._over = True
            self._sink.end(error)

    # --- passing on

    @property
    def _blocked(self) -> bool:
        return self._over or (self._paced and self._sink.full)

    def _process_events(self) -> None:
        """Pass on converted events, convert the rest, and resume the source."""
        waiting = self._waiting
        while not self._blocked:
            if waiting:
                if not self._is_converted(waiting[0][1]):
                    self._collecting = True
                    converted = Deferred.fromCoroutine(self._convert())
                    converted.addCallbacks(self._converted, self._conversion_failed)
                    return
                self._sink.send(*waiting.popleft())
            elif self._ended is not None:
                self._over = True
                self._sink.end(self._ended[0])
            elif self._caught_up:
                self._caught_up = False
                if self._paced:
                    self._sink.caught_up()
                return
            else:
                self._collecting = True
                try:
                    self._handle.resume()
                finally:
                    self._collecting = False
                if not (waiting or self._caught_up):
                    # The source sends later, or is up to date.
                    return

    async def _convert(self) -> None:
        await self._ensure_converted([record for _, record, _ in self._waiting])

    def _converted(self, _: object) -> None:
        self._collecting = False
        self._process_events()

    def _conversion_failed(self, failure: Failure) -> None:
        error = failure.value
        if not isinstance(error, APIStatusError):
            self._log.failure("watch ended: unexpected error while converting its events", failure)
            error = APIStatusError.internal("the watch could not go on")
        self._fail(error)

    def _fail(self, error: APIStatusError | None) -> None:
        if not self._over:
            self.stop()
            self._sink.end(error)
