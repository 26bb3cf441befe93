"""
Watches over HTTP: streams of events with backpressure.

The stream of a slow reader buffers at most about L{MAX_WRITE_SIZE} bytes of encoded events, and has a position in the
cache (L{kubetwist.storage.cache.watches.PacedWatch}). Its memory does not depend on the number of unsent events.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
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
from ...interfaces import IBatchSink, IPacedSink, IPacedWatch
from ...metrics.registry import Histogram, MetricSnapshot
from .watchevents import SharedEvent, WatchMetrics, encoded_batch, encoded_event

if TYPE_CHECKING:
    from ...http.requestinfo import RequestInfo
    from ...storage.cache.window import CacheEvent, EventBatch
    from ..encoding import WatchEncoder

#: Seconds between bookmarks, for watches that request them.
BOOKMARK_INTERVAL = 60.0
#: Seconds between the last bookmark and the timeout of a watch, so that its client can resume from there.
BOOKMARK_BEFORE_END = 2.0
#: Maximum bytes per write; the transport buffers at most one write.
MAX_WRITE_SIZE = 64_000
#: Maximum bytes of events that are encoded in one iteration of the reactor, if encoding is more than joining bytes.
MAX_COSTLY_WRITE_SIZE = 8_000
#: Maximum buffered bytes of a stream whose source is not L{IPacedWatch}; the stream is closed above that.
MAX_PENDING_BYTES = 512 * 1024
#: Seconds until a stream is closed whose reader accepts no data.
STALL_TIMEOUT = 60.0
#: Minimum bytes of an object whose encoding is shared by all streams that send it at the same time.
MIN_SHARED_SIZE: Final = 32_000

#: Histogram buckets: seconds until all initial events are sent.
_WATCH_LIST_BUCKETS: Final = (
    *(0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0),
)


class WatchFlusher:
    """
    Writes the events of all watches of a server, once per iteration of the reactor.

    One delayed call serves all watches, so that an event for a thousand watches does not schedule a thousand calls.
    Sites call L{flush} earlier, before they send responses.
    """

    _log = Logger()

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._streams: list[WatchStream] = []
        self._flush_scheduled = False
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
            seconds = self._initial[labels] = Histogram(_WATCH_LIST_BUCKETS)
        seconds.observe(took)

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics of written events for the server."""
        for metrics in self._metrics_by_resource.values():
            metrics.flush_pending()
        labels = ("group", "version", "resource")
        sizes = {names: metrics.sizes for names, metrics in self._metrics_by_resource.items() if metrics.sizes.count}
        counts = [(names, float(one.count)) for names, one in sizes.items()]
        yield MetricSnapshot(
            "apiserver_watch_events_total", "counter", "Number of events sent in watch clients.", labels, counts
        )
        text = "Size of watch events in bytes."
        yield MetricSnapshot("apiserver_watch_events_sizes", "histogram", text, labels, list(sizes.items()))
        terminated: dict[tuple[str, ...], float] = {}
        for (group, _, resource), one in self._metrics_by_resource.items():
            if one.terminated:
                terminated[group, resource] = terminated.get((group, resource), 0.0) + one.terminated
        text = "Number of watchers closed due to unresponsiveness."
        by_resource = ("group", "resource")
        yield MetricSnapshot(
            "apiserver_terminated_watchers_total", "counter", text, by_resource, list(terminated.items())
        )
        text = "Duration in seconds until the initial events of a watch-list request were sent."
        seconds = list(self._initial.items())
        yield MetricSnapshot("apiserver_watch_list_duration_seconds", "histogram", text, (*labels, "scope"), seconds)

    def add(self, stream: WatchStream) -> None:
        """Schedule a flush of C{stream} in the next iteration of the reactor."""
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._reactor.callLater(0, self._flush)
        self._streams.append(stream)

    def _flush(self) -> None:
        self._flush_scheduled = False
        self.flush()

    def flush(self) -> None:
        """Flush the streams with pending events; close a stream that fails."""
        streams, self._streams = self._streams, []
        for stream in streams:
            try:
                stream.flush()
            except Exception:
                stream.fail_write()


@implementer(IBatchSink, IPacedSink, IPushProducer)
class WatchStream:
    """
    One watch and its connection.

    The events of one iteration of the reactor are written together. While the transport is full, the source is
    suspended, and the events that it has sent are buffered. The connection is closed if its reader accepts nothing for
    L{STALL_TIMEOUT} seconds.

    @ivar full: See L{IPacedSink.full}.
    """

    __slots__ = (
        "_behind",
        "_bookmarks",
        "_calls",
        "_content_type",
        "_encoder",
        "_ended",
        "_first",
        "_flush_scheduled",
        "_flusher",
        "_handle",
        "_initial_events_done",
        "_initial_events_end",
        "_max_pending",
        "_metrics",
        "_paused",
        "_pending",
        "_pending_bytes",
        "_reactor",
        "_request",
        "_resume_scheduled",
        "_sent_bytes",
        "_shared",
        "_shared_writer",
        "_source",
        "_stall_timer",
        "_timeout",
        "_writing",
        "full",
    )

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
        self._max_pending = MAX_WRITE_SIZE if getattr(encoder, "cheap", False) else MAX_COSTLY_WRITE_SIZE
        self._pending: list[bytes] = []
        #: Keeps shared events alive while they are pending.
        self._shared: list[SharedEvent] = []
        #: Unwritten bytes in C{_pending}, and written bytes of its first event.
        self._pending_bytes = 0
        self._sent_bytes = 0
        self._paused = False
        # A first event without a different encoding is shared like later ones.
        self._first = bool(getattr(encoder, "first_differs", False))
        self._flush_scheduled = False
        self._writing = False
        self._resume_scheduled = False
        #: Whether the source is suspended, or has unsent events from before it was resumed.
        self._behind = False
        self._initial_events_done = False
        self._calls: list[IDelayedCall] = []
        self._stall_timer: IDelayedCall | None = None
        self._handle: Any = None
        self._source: IPacedWatch | None = None
        self._ended = False

    @property
    def ended(self) -> bool:
        """Return whether the watch has ended."""
        return self._ended

    @staticmethod
    def default_timeout(minimum: float) -> float:
        """Return the duration of a watch without a timeout: between once and twice the minimum."""
        return minimum * (1 + random.random())

    def open(self) -> None:
        """Send the head of the response, which signals the start of the watch to the client."""
        request = self._request
        request.send_first(self._flusher.flush)
        start_response(request, 200, self._content_type, None)
        request.write(b"")
        self._shared_writer = request.shared_writer()
        request.notifyFinish().addBoth(self._disconnected)
        request.registerProducer(self, True)
        self._calls.append(self._reactor.callLater(self._timeout, self.end, None))

    def started(self, handle: Any) -> None:
        """
        Receive the started watch.

        @param handle: Stops the watch, and has its C{revision}. A source that provides L{IPacedWatch} is resumed.
        """
        self._handle = handle
        if self._ended:
            handle.stop()
        elif IPacedWatch.providedBy(handle):
            self._source = handle
            self._behind = True
            self._call_or_fail(handle.resume)
        else:
            self.caught_up()

    def caught_up(self) -> None:
        """See L{IPacedSink.caught_up}."""
        self._behind = self.full = False
        if self._initial_events_done:
            return
        self._initial_events_done = True
        if self._initial_events_end:
            self.bookmark(self._handle.revision, True)
            self._flusher.observe_watch_list(self._request.info, perf_counter() - self._request.started_at)
        if self._bookmarks:
            self._schedule_bookmarks()

    def _schedule_bookmarks(self) -> None:
        self._calls.append(self._reactor.callLater(BOOKMARK_INTERVAL, self._send_periodic_bookmark))
        if self._timeout > BOOKMARK_BEFORE_END:
            self._calls.append(self._reactor.callLater(self._timeout - BOOKMARK_BEFORE_END, self._send_bookmark))

    def _send_periodic_bookmark(self) -> None:
        self._calls = [call for call in self._calls if call.active()]
        self._calls.append(self._reactor.callLater(BOOKMARK_INTERVAL, self._send_periodic_bookmark))
        self._send_bookmark()

    def _send_bookmark(self) -> None:
        if not self._behind:
            self.bookmark(self._handle.revision, False)

    # --- IWatchSink

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """Send one event; watches with the same view share its encoding."""
        if self._ended:
            return
        encoder = self._encoder
        if event is None or self._first:
            first, self._first = self._first, False
            if len(record.item) > MIN_SHARED_SIZE:
                shared = self._flusher.shared(encoder, event_type, record, first)
                self._shared.append(shared)
                self._enqueue(shared.data)
            else:
                self._enqueue((encoder.encode_first_event if first else encoder.encode_event)(event_type, record))
            return
        self._enqueue(encoded_event(event, encoder))

    # --- IBatchSink

    def send_batch(self, batch: EventBatch) -> bool:
        """Write the events of a batch; not while earlier ones wait, or if they are too large for one write."""
        if self._behind or self._paused or self._pending or self._first or self._ended:
            return False
        encoder = self._encoder
        try:
            encoded = batch.encoded[encoder]
        except KeyError:
            encoded = batch.encoded[encoder] = encoded_batch(batch, encoder, MAX_WRITE_SIZE)
        if encoded is None:
            return False
        if not encoded.copies:
            self._metrics.count_copies(encoded)
        encoded.copies += 1
        try:
            self._shared_writer.send(encoded)
        except Exception:
            self.fail_write()
        return True

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Send a bookmark."""
        if not self._ended:
            self._enqueue(self._encoder.encode_bookmark(revision, initial_events_end))

    def end(self, error: Exception | None = None) -> None:
        """Send the error, if there is one, and close."""
        if self._ended:
            return
        if self._paused:
            # The client resumes the watch after the last event that it received completely.
            event_truncated = self._sent_bytes
            self._discard_pending()
            if event_truncated:
                self.fail()
                return
        if error is not None:
            if not isinstance(error, APIStatusError):
                error = APIStatusError.internal("the watch could not go on")
            self._enqueue(self._encoder.encode_error_event(error.status()))
        self._stop()
        self.flush()
        self._finish()

    def fail(self) -> None:
        """Close the stream after an unexpected error."""
        self._stop()
        self._discard_pending()
        self._abort()

    def fail_write(self) -> None:
        """Log the current exception and close the stream, which cannot be written."""
        self._log.failure("a watch cannot be written and is closed")
        self.fail()

    def _finish(self) -> None:
        request = self._request
        if not request.disconnected and not request.finished:
            request.unregisterProducer()
            request.finish()

    # --- writing

    def _enqueue(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)
        if self._behind:
            if self._pending_bytes >= self._max_pending:
                self.full = True
        elif self._paused or self._pending_bytes > MAX_WRITE_SIZE:
            if self._source is not None:
                self._suspend()
            elif self._paused and self._pending_bytes > MAX_PENDING_BYTES:
                self._terminate_slow_watcher()
                return
        if not self._flush_scheduled and not self._paused:
            self._flush_scheduled = True
            self._flusher.add(self)

    def _suspend(self) -> None:
        """Suspend the source; the cache keeps the later events."""
        assert self._source is not None
        self._behind = self.full = True
        self._source.suspend()

    def flush(self) -> None:
        """Write pending events, as far as the reader accepts them; all of them at the end of the watch."""
        self._flush_scheduled = False
        if self._writing or (self._paused and not self._ended):
            return
        if self._pending and not self._request.disconnected:
            self._writing = True
            try:
                self._write()
            finally:
                self._writing = False
        if self._behind and self.full and not (self._paused or self._ended or self._pending):
            self._schedule_resume()

    def _write(self) -> None:
        pending = self._pending
        if len(pending) == 1 and self._pending_bytes <= MAX_WRITE_SIZE and not self._sent_bytes:
            self._pending = []
            self._pending_bytes = 0
            self._shared.clear()
            self._metrics.observe(pending[0])
            self._send(pending[0])
            return
        begin, total = 0, len(pending)
        while begin < total and (self._ended or not self._paused):
            end, size = begin, 0
            while end < total and size + len(pending[end]) <= MAX_WRITE_SIZE and not self._sent_bytes:
                size += len(pending[end])
                end += 1
            if end > begin:
                self._metrics.observe_all(pending[begin:end])
                self._pending_bytes -= size
                self._send(b"".join(pending[begin:end]))
                begin = end
            elif self._send_chunk(pending[begin]):
                begin += 1
        # Writing may have appended further events.
        del pending[:begin]
        if not pending:
            self._shared.clear()

    def _send_chunk(self, event: bytes) -> bool:
        """
        Write a chunk of a large event.

        @return: Whether it was the last chunk.
        """
        start = self._sent_bytes
        end = min(self._chunk_end(event, start), len(event))
        self._sent_bytes = 0 if end == len(event) else end
        self._pending_bytes -= end - start
        if not self._sent_bytes:
            self._metrics.observe(event)
        self._send(event[start:end], not self._sent_bytes)
        return not self._sent_bytes

    def _chunk_end(self, event: bytes, start: int) -> int:
        """Return the end of the next chunk of a large event."""
        return start + MAX_WRITE_SIZE

    def _send(self, data: bytes, whole: bool = True) -> None:
        """
        Write data to the transport.

        @param whole: Whether the data end with a complete event.
        """
        self._request.write(data)

    def _schedule_resume(self) -> None:
        """Schedule the source to send more events, fairly with other work."""
        if self._resume_scheduled:
            return
        self._resume_scheduled = True
        scheduler = self._request.site.scheduler
        if scheduler is None:
            self._reactor.callLater(0, self._resume_source)
        else:
            scheduler.run_or_defer(self._resume_source)

    def _resume_source(self) -> None:
        """Resume the source until the buffer is full, and write the events."""
        self._resume_scheduled = False
        source = self._source
        if source is None or self._ended or self._paused or not self._behind:
            return
        self.full = False
        # The events are flushed below.
        self._flush_scheduled = True
        self._call_or_fail(source.resume)
        self._call_or_fail(self.flush)

    def _call_or_fail(self, step: Callable[[], object]) -> None:
        """Call C{step}; log an exception and close the stream."""
        try:
            step()
        except Exception:
            self._log.failure("a watch cannot be encoded and is closed")
            self.fail()

    def _terminate_slow_watcher(self) -> None:
        """Disconnect a reader that is too slow."""
        if not self._ended:
            self._metrics.terminated += 1
        self.fail()

    def _discard_pending(self) -> None:
        self._pending = []
        self._shared = []
        self._pending_bytes = self._sent_bytes = 0

    def _abort(self) -> None:
        self._request.abort()

    def _disconnected(self, reason: object) -> None:
        self._stop()
        self._discard_pending()

    def _stop(self) -> None:
        if self._ended:
            return
        self._ended = self.full = True
        self._source = None
        self._cancel_stall_timer()
        for call in self._calls:
            if call.active():
                call.cancel()
        self._calls = []
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.stop()

    def _cancel_stall_timer(self) -> None:
        timer, self._stall_timer = self._stall_timer, None
        if timer is not None and timer.active():
            timer.cancel()

    # --- IPushProducer

    def pauseProducing(self) -> None:
        """Suspend the source, since the transport is full."""
        self._paused = True
        if self._ended:
            return
        if self._stall_timer is None:
            self._stall_timer = self._reactor.callLater(STALL_TIMEOUT, self._terminate_slow_watcher)
        if self._source is not None:
            if self._behind:
                self.full = True
            else:
                self._suspend()

    def resumeProducing(self) -> None:
        """Continue, since the transport has been drained."""
        self._paused = False
        self._cancel_stall_timer()
        if not self._writing:
            self.flush()

    def stopProducing(self) -> None:
        """Handle the loss of the connection."""
        self._disconnected(None)


class NotAcceptableWatchStream(WatchStream):
    """A watch whose events cannot be encoded in the negotiated form: the first event ends it."""

    _end_scheduled = False

    def send(self, event_type: str, record: Record, event: CacheEvent | None) -> None:
        """End the watch after the head of the response is written."""
        self._schedule_end()

    def send_batch(self, batch: EventBatch) -> bool:
        """End the watch."""
        self._schedule_end()
        return True

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """End the watch."""
        self._schedule_end()

    def _schedule_end(self) -> None:
        self.full = True
        if not self._ended and not self._end_scheduled:
            self._end_scheduled = True
            self._calls.append(self._reactor.callLater(0, self.end))
