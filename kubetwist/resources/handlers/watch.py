"""
Write watches over HTTP: a stream of events, bounded by its reader.

The stream of a slow reader keeps one piece of encoded events and a position in the cache
(L{kubetwist.storage.cache.watches.PacedWatch}). Its memory does not depend on the number of unsent events.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.logger import Logger
from zope.interface import implementer

from ...api.errors import APIStatusError
from ...api.record import Record
from ...http.request import KubeRequest
from ...http.responses import start_response
from ...interfaces import IPacedSink, IPacedWatch
from ...metrics.registry import Histogram, MetricSnapshot, exponential

if TYPE_CHECKING:
    from ...http.requestinfo import RequestInfo
    from ...storage.cache.window import CacheEvent
    from ..encoding import WatchEncoder

#: Seconds between bookmarks, for watches that request them.
BOOKMARK_EVERY = 60.0
#: Seconds between the last bookmark and the timeout of a watch, so that its client can resume from there.
BOOKMARK_BEFORE_END = 2.0
#: Maximum bytes per write; the transport buffers at most one such piece.
PIECE = 64_000
#: Maximum bytes of events that are encoded in one turn of the reactor, if encoding is more than joining bytes.
COSTLY_PIECE = 8_000
#: Maximum bytes that wait in a stream whose source is not L{IPacedWatch}; the stream is ended above that.
MAX_PENDING_BYTES = 512 * 1024
#: Seconds after which a stream is closed whose reader accepts no data.
PATIENCE = 60.0
#: Minimum bytes of an object whose encoding is shared by all streams that send it at the same time.
LARGE: Final = 32_000


#: Histogram buckets: bytes of events, and seconds until all initial events are sent.
_SIZES: Final = exponential(1024.0, 2.0, 8)
_INITIAL: Final = (
    *(0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0),
)


class WatchMetrics:
    """
    The metrics of written events of one resource in one version.

    Many watches write the same event at the same time: its size is observed once for all of them.
    """

    __slots__ = ("_again", "_data", "sizes", "terminated")

    def __init__(self) -> None:
        self.sizes = Histogram(_SIZES)
        #: Number of watches that were terminated because their clients were too slow.
        self.terminated = 0
        self._data = b""
        self._again = 0

    def one(self, data: bytes) -> None:
        """Count one written event."""
        if data is self._data:
            self._again += 1
        else:
            self.settle()
            self._data = data
            self._again = 1

    def several(self, events: Sequence[bytes]) -> None:
        """Count several written events."""
        sizes = self.sizes
        lengths = list(map(len, events))
        sizes.sum += sum(lengths)
        if max(lengths) <= 1024:
            sizes.counts[0] += len(lengths)
        else:
            counts, bounds = sizes.counts, sizes.bounds
            for length in lengths:
                counts[bisect_left(bounds, length)] += 1

    def settle(self) -> None:
        """Count the pending repetitions of the last event."""
        if self._again:
            length = len(self._data)
            self.sizes.counts[bisect_left(_SIZES, length)] += self._again
            self.sizes.sum += length * self._again
        self._data = b""
        self._again = 0


class SharedEvent:
    """
    The encoded event of a large object, shared by the streams that send it at the same time.

    @ivar record: Kept, since its identity is the key.
    """

    __slots__ = ("__weakref__", "data", "record")

    def __init__(self, data: bytes, record: Record) -> None:
        self.data = data
        self.record = record


class WatchFlusher:
    """
    Writes the events of all watches of a server, once per turn of the reactor.

    One delayed call serves all watches, so that an event for a thousand of them does not schedule a thousand calls.
    Sites call L{flush} earlier, before they send answers.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._streams: list[WatchStream] = []
        self._planned = False
        self._metrics_by_resource: dict[tuple[str, str, str], WatchMetrics] = {}
        self._initial: dict[tuple[str, str, str, str], Histogram] = {}
        self._shared: WeakValueDictionary[tuple[Any, ...], SharedEvent] = WeakValueDictionary()

    def shared(self, encoder: WatchEncoder, event_type: str, record: Record, first: bool) -> SharedEvent:
        """
        Return the event of a large object, encoded once while a stream uses it.

        @param encoder: Encodes the event.
        @param event_type: C{"ADDED"}, C{"MODIFIED"} or C{"DELETED"}.
        @param record: The object.
        @param first: Whether the encoder's form of the first event of a watch is used.
        """
        key = encoder, event_type, first, id(record)
        shared = self._shared.get(key)
        if shared is None:
            encode = encoder.encode_first_event if first else encoder.encode_event
            shared = self._shared[key] = SharedEvent(encode(event_type, record), record)
        return shared

    def metrics(self, info: RequestInfo) -> WatchMetrics:
        """Return the metrics for the events of a watch, by L{kubetwist.http.requestinfo.RequestInfo}."""
        return self._metrics_by_resource.setdefault((info.group, info.version, info.resource), WatchMetrics())

    def observe_watch_list(self, info: RequestInfo, took: float) -> None:
        """Observe that a watch has sent all initial events."""
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        labels = info.group, info.version, info.resource, scope
        seconds = self._initial.get(labels)
        if seconds is None:
            seconds = self._initial[labels] = Histogram(_INITIAL)
        seconds.observe(took)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics of written events for the server."""
        for metrics in self._metrics_by_resource.values():
            metrics.settle()
        labels = ("group", "version", "resource")
        sizes = {names: metrics.sizes for names, metrics in self._metrics_by_resource.items() if metrics.sizes.count}
        counts = [(names, float(one.count)) for names, one in sizes.items()]
        yield MetricSnapshot(
            "apiserver_watch_events_total", "counter", "Number of events sent in watch clients.", labels, counts
        )
        text = "Size of watch events in bytes."
        yield MetricSnapshot("apiserver_watch_events_sizes", "histogram", text, labels, list(sizes.items()))
        cut: dict[tuple[str, ...], float] = {}
        for (group, _, resource), one in self._metrics_by_resource.items():
            if one.terminated:
                cut[group, resource] = cut.get((group, resource), 0.0) + one.terminated
        text = "Number of watchers closed due to unresponsiveness."
        by_resource = ("group", "resource")
        yield MetricSnapshot("apiserver_terminated_watchers_total", "counter", text, by_resource, list(cut.items()))
        text = "Duration in seconds until the initial events of a watch-list request were sent."
        seconds = list(self._initial.items())
        yield MetricSnapshot("apiserver_watch_list_duration_seconds", "histogram", text, (*labels, "scope"), seconds)

    def add(self, stream: WatchStream) -> None:
        """Schedule a flush of C{stream} at the end of this turn."""
        if not self._planned:
            self._planned = True
            self._reactor.callLater(0, self._flush)
        self._streams.append(stream)

    def _flush(self) -> None:
        self._planned = False
        self.flush()

    def flush(self) -> None:
        """Flush the waiting streams; close a stream that fails."""
        streams, self._streams = self._streams, []
        for stream in streams:
            try:
                stream.flush()
            except Exception:
                self._log.failure("a watch cannot be written and is closed")
                stream.fail()


@implementer(IPacedSink, IPushProducer)
class WatchStream:
    """
    One watch and its connection.

    Events of one turn of the reactor are written together. While the transport is full the source is suspended, and
    events that it has sent wait here. The connection is closed if its reader accepts nothing for L{PATIENCE}.

    @ivar full: See L{IPacedSink.full}.
    """

    _log = Logger()

    def __init__(
        self,
        request: KubeRequest,
        encoder: WatchEncoder,
        content_type: bytes,
        reactor: IReactorTime,
        flusher: WatchFlusher,
        *,
        bookmarks: bool,
        initial_events_end: bool,
        timeout: float,
    ) -> None:
        self._request = request
        self._encoder = encoder
        self._content_type = content_type
        self._reactor = reactor
        self._flusher = flusher
        self._bookmarks = bookmarks
        self._initial_events_end = initial_events_end
        self._timeout = timeout
        self._metrics = flusher.metrics(request.info)
        self.full = False
        self._piece = PIECE if getattr(encoder, "cheap", False) else COSTLY_PIECE
        self._waiting: list[bytes] = []
        #: Keeps shared events alive while they wait.
        self._shared: list[SharedEvent] = []
        #: Unwritten bytes in C{_waiting}, and those of its first event.
        self._unread = 0
        self._written = 0
        self._paused = False
        # A first event that equals the others is shared as well.
        self._first = bool(getattr(encoder, "first_differs", False))
        self._planned = False
        self._writing = False
        self._producing = False
        #: Whether the source is suspended, or has unsent events from before it was resumed.
        self._behind = False
        self._begun = False
        self._calls: list[IDelayedCall] = []
        self._stalled: IDelayedCall | None = None
        self._handle: Any = None
        self._source: IPacedWatch | None = None
        self._over = False

    @property
    def over(self) -> bool:
        """Return whether the watch has ended."""
        return self._over

    @staticmethod
    def default_timeout(minimum: float) -> float:
        """Return the duration of a watch without a timeout: between once and twice the minimum."""
        return minimum * (1 + random.random())

    def open(self) -> None:
        """Send the head of the answer, which signals the start of the watch to the client."""
        request = self._request
        request.send_first(self._flusher.flush)
        start_response(request, 200, self._content_type, None)
        request.write(b"")
        request.notifyFinish().addBoth(self._disconnected)
        request.registerProducer(self, True)
        self._calls.append(self._reactor.callLater(self._timeout, self.end, None))

    def started(self, handle: Any) -> None:
        """
        Begin the watch.

        @param handle: Stops the watch, and has its C{revision}. A source that provides L{IPacedWatch} is resumed.
        """
        self._handle = handle
        if self._over:
            handle.stop()
        elif IPacedWatch.providedBy(handle):
            self._source = handle
            self._behind = True
            self._guarded(handle.resume)
        else:
            self.caught_up()

    def caught_up(self) -> None:
        """See L{IPacedSink.caught_up}."""
        self._behind = self.full = False
        if self._begun:
            return
        self._begun = True
        if self._initial_events_end:
            self.bookmark(self._handle.revision, True)
            self._flusher.observe_watch_list(self._request.info, perf_counter() - self._request.started_at)
        if self._bookmarks:
            self._plan_bookmarks()

    def _plan_bookmarks(self) -> None:
        self._calls.append(self._reactor.callLater(BOOKMARK_EVERY, self._bookmark_again))
        if self._timeout > BOOKMARK_BEFORE_END:
            self._calls.append(self._reactor.callLater(self._timeout - BOOKMARK_BEFORE_END, self._bookmark_now))

    def _bookmark_again(self) -> None:
        self._calls = [call for call in self._calls if call.active()]
        self._calls.append(self._reactor.callLater(BOOKMARK_EVERY, self._bookmark_again))
        self._bookmark_now()

    def _bookmark_now(self) -> None:
        if not self._behind:
            self.bookmark(self._handle.revision, False)

    # --- IWatchSink

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """Send one event; watches with the same view share its encoding."""
        if self._over:
            return
        encoder = self._encoder
        if event is None or self._first:
            first, self._first = self._first, False
            if len(record.item) > LARGE:
                shared = self._flusher.shared(encoder, event_type, record, first)
                self._shared.append(shared)
                self._put(shared.data)
            else:
                self._put((encoder.encode_first_event if first else encoder.encode_event)(event_type, record))
            return
        encoded = event.encoded
        if encoded is None:
            encoded = event.encoded = {}
        data = encoded.get(encoder)
        if data is None:
            data = encoded[encoder] = encoder.encode_event(event_type, record)
        self._put(data)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Send a bookmark."""
        if not self._over:
            self._put(self._encoder.encode_bookmark(revision, initial_events_end))

    def end(self, error: Exception | None = None) -> None:
        """Send the error, if there is one, and close."""
        if self._over:
            return
        if self._paused:
            # The client has not received it, and will request it again.
            amid_an_event = self._written
            self._drop()
            if amid_an_event:
                self.fail()
                return
        if error is not None:
            if not isinstance(error, APIStatusError):
                error = APIStatusError.internal("the watch could not go on")
            self._put(self._encoder.encode_error_event(error.status()))
        self._stop()
        self.flush()
        self._finish()

    def fail(self) -> None:
        """Close the stream after an unexpected error."""
        self._stop()
        self._drop()
        self._cut_off()

    def _finish(self) -> None:
        request = self._request
        if not request.disconnected and not request.finished:
            request.unregisterProducer()
            request.finish()

    # --- writing

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        self._unread += len(data)
        if self._behind:
            if self._unread >= self._piece:
                self.full = True
        elif self._paused or self._unread > PIECE:
            if self._source is not None:
                self._suspend()
            elif self._paused and self._unread > MAX_PENDING_BYTES:
                self._terminate_slow_watcher()
                return
        if not self._planned and not self._paused:
            self._planned = True
            self._flusher.add(self)

    def _suspend(self) -> None:
        """Suspend the source; the cache keeps the later events."""
        assert self._source is not None
        self._behind = self.full = True
        self._source.suspend()

    def flush(self) -> None:
        """Write waiting events, as far as the reader accepts them; all of them at the end of the watch."""
        self._planned = False
        if self._writing or (self._paused and not self._over):
            return
        if self._waiting and not self._request.disconnected:
            self._writing = True
            try:
                self._write()
            finally:
                self._writing = False
        if self._behind and self.full and not (self._paused or self._over or self._waiting):
            self._produce_soon()

    def _write(self) -> None:
        waiting = self._waiting
        if len(waiting) == 1 and self._unread <= PIECE and not self._written:
            self._waiting = []
            self._unread = 0
            self._shared.clear()
            self._metrics.one(waiting[0])
            self._send(waiting[0])
            return
        begin, total = 0, len(waiting)
        while begin < total and (self._over or not self._paused):
            end, size = begin, 0
            while end < total and size + len(waiting[end]) <= PIECE and not self._written:
                size += len(waiting[end])
                end += 1
            if end > begin:
                self._metrics.several(waiting[begin:end])
                self._unread -= size
                self._send(b"".join(waiting[begin:end]))
                begin = end
            elif self._send_part(waiting[begin]):
                begin += 1
        # Events that arrived in the meantime come after it.
        del waiting[:begin]
        if not waiting:
            self._shared.clear()

    def _send_part(self, event: bytes) -> bool:
        """
        Write a piece of a large event.

        @return: Whether it was the last one.
        """
        start = self._written
        end = min(self._part_end(event, start), len(event))
        self._written = 0 if end == len(event) else end
        self._unread -= end - start
        if not self._written:
            self._metrics.one(event)
        self._send(event[start:end], not self._written)
        return not self._written

    def _part_end(self, event: bytes, start: int) -> int:
        """Return the end of the next piece of a large event."""
        return start + PIECE

    def _send(self, data: bytes, whole: bool = True) -> None:
        """
        Write data to the transport.

        @param whole: Whether the data end with a complete event.
        """
        self._request.write(data)

    def _produce_soon(self) -> None:
        """Schedule the source to send more, fairly with other work."""
        if self._producing:
            return
        self._producing = True
        scheduler = self._request.site.scheduler
        if scheduler is None:
            self._reactor.callLater(0, self._produce)
        else:
            scheduler.run_or_defer(self._produce)

    def _produce(self) -> None:
        """Resume the source for a piece, and write it."""
        self._producing = False
        source = self._source
        if source is None or self._over or self._paused or not self._behind:
            return
        self.full = False
        # It is written below.
        self._planned = True
        self._guarded(source.resume)
        self._guarded(self.flush)

    def _guarded(self, step: Callable[[], object]) -> None:
        """Call a function, and close the stream if it fails."""
        try:
            step()
        except Exception:
            self._log.failure("a watch cannot be encoded and is closed")
            self.fail()

    def _terminate_slow_watcher(self) -> None:
        """Disconnect a reader that is too slow."""
        if not self._over:
            self._metrics.terminated += 1
        self.fail()

    def _drop(self) -> None:
        self._waiting = []
        self._shared = []
        self._unread = self._written = 0

    def _cut_off(self) -> None:
        self._request.abort()

    def _disconnected(self, reason: object) -> None:
        self._stop()
        self._drop()

    def _stop(self) -> None:
        if self._over:
            return
        self._over = self.full = True
        self._source = None
        self._end_stall()
        for call in self._calls:
            if call.active():
                call.cancel()
        self._calls = []
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.stop()

    def _end_stall(self) -> None:
        stalled, self._stalled = self._stalled, None
        if stalled is not None and stalled.active():
            stalled.cancel()

    # --- IPushProducer

    def pauseProducing(self) -> None:
        """Suspend the source, since the transport is full."""
        self._paused = True
        if self._over:
            return
        if self._stalled is None:
            self._stalled = self._reactor.callLater(PATIENCE, self._terminate_slow_watcher)
        if self._source is not None:
            if self._behind:
                self.full = True
            else:
                self._suspend()

    def resumeProducing(self) -> None:
        """Continue, since the transport has been drained."""
        self._paused = False
        self._end_stall()
        if not self._writing:
            self.flush()

    def stopProducing(self) -> None:
        """Handle the loss of the connection."""
        self._disconnected(None)


class NotAcceptableWatchStream(WatchStream):
    """A watch whose events cannot be encoded in the negotiated form: the first event ends it."""

    _waiting_to_end = False

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """End the watch after the head of the answer is written."""
        self._end_soon()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """End the watch."""
        self._end_soon()

    def _end_soon(self) -> None:
        self.full = True
        if not self._over and not self._waiting_to_end:
            self._waiting_to_end = True
            self._calls.append(self._reactor.callLater(0, self.end))
