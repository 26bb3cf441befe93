"""The HTTP side of a watch: a stream of events, written as they come, bounded by what its reader takes."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..interfaces import IWatchSink
from ..metrics.registry import Distribution, Reading, exponential
from ..storage.record import Record
from .respond import start_response

if TYPE_CHECKING:
    from ..server.site import KubeRequest

#: Seconds between bookmarks, for watches that ask for them.
BOOKMARK_EVERY = 60.0
#: A bookmark comes so many seconds before a watch times out, so that its client can go on from there.
BOOKMARK_BEFORE_END = 2.0
#: What a reader may leave unread before its watch is ended, in bytes.
UNREAD_LIMIT = 16 * 1024 * 1024
#: How many events are joined to one piece.
WRITTEN_TOGETHER = 256


#: Bounds of the bytes of events, and of the seconds until all that was there is told.
_SIZES: Final = exponential(1024.0, 2.0, 8)
_INITIAL: Final = (
    *(0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    *(10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0),
)


class WatchTally:
    """
    What is counted of the events of one resource in one version, as they are written.

    What one watch writes others write, too, at the same time: the sizes are looked at once for all of them.
    """

    __slots__ = ("_again", "_data", "sizes", "terminated")

    def __init__(self) -> None:
        self.sizes = Distribution(_SIZES)
        #: How many watches were cut off, as their clients were too slow.
        self.terminated = 0
        self._data = b""
        self._again = 0

    def one(self, data: bytes) -> None:
        """One event is written."""
        if data is self._data:
            self._again += 1
        else:
            self.settle()
            self._data = data
            self._again = 1

    def several(self, events: Sequence[bytes]) -> None:
        """Several are."""
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
        """Count what was seen again and again."""
        if self._again:
            length = len(self._data)
            self.sizes.counts[bisect_left(_SIZES, length)] += self._again
            self.sizes.sum += length * self._again
        self._data = b""
        self._again = 0


class Flusher:
    """
    Writes what the watches of a server have to say, once per turn of the reactor.

    One delayed call serves all watches: an event that concerns a thousand of them must not plan a thousand calls.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._streams: list[WatchStream] = []
        self._tallies: dict[tuple[str, str, str], WatchTally] = {}
        self._initial: dict[tuple[str, str, str, str], Distribution] = {}

    def tally(self, info: Any) -> WatchTally:
        """Where the events of a watch are counted, by L{kubetwist.filters.requestinfo.RequestInfo}."""
        return self._tallies.setdefault((info.group, info.version, info.resource), WatchTally())

    def told_all(self, info: Any, took: float) -> None:
        """A watch has told all that was there."""
        scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
        labels = info.group, info.version, info.resource, scope
        seconds = self._initial.get(labels)
        if seconds is None:
            seconds = self._initial[labels] = Distribution(_INITIAL)
        seconds.observe(took)

    def readings(self) -> Iterator[Reading]:
        """What was written, for those who look at the whole server."""
        for tally in self._tallies.values():
            tally.settle()
        labels = ("group", "version", "resource")
        sizes = {names: tally.sizes for names, tally in self._tallies.items() if tally.sizes.count}
        counts = [(names, float(one.count)) for names, one in sizes.items()]
        yield Reading("apiserver_watch_events_total", "counter", "Events that watches were told.", labels, counts)
        text = "Bytes of the events that watches were told."
        yield Reading("apiserver_watch_events_sizes", "histogram", text, labels, list(sizes.items()))
        cut: dict[tuple[str, ...], float] = {}
        for (group, _, resource), one in self._tallies.items():
            if one.terminated:
                cut[group, resource] = cut.get((group, resource), 0.0) + one.terminated
        text = "Watches that were cut off, as their clients were too slow."
        by_resource = ("group", "resource")
        yield Reading("apiserver_terminated_watchers_total", "counter", text, by_resource, list(cut.items()))
        text = "How long it took until watches were told all that was there."
        seconds = list(self._initial.items())
        yield Reading("apiserver_watch_list_duration_seconds", "histogram", text, (*labels, "scope"), seconds)

    def add(self, stream: WatchStream) -> None:
        """Have C{stream} flushed at the end of this turn."""
        if not self._streams:
            self._reactor.callLater(0, self._flush)
        self._streams.append(stream)

    def _flush(self) -> None:
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.flush()


@implementer(IWatchSink, IPushProducer)
class WatchStream:
    """
    One watch and its connection.

    Events of one turn of the reactor are written together. When the reader is slow they wait here, and when too
    many wait the watch is ended: the client starts over from what it has seen.
    """

    def __init__(
        self,
        request: KubeRequest,
        encoder: Any,
        content_type: bytes,
        reactor: IReactorTime,
        flusher: Flusher,
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
        self._tally = flusher.tally(request.info)
        self._waiting: list[bytes] = []
        self._unread = 0
        self._paused = False
        self._first = True
        self._planned = False
        self._calls: list[IDelayedCall] = []
        self._handle: Any = None
        self._over = False

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._over

    @staticmethod
    def default_timeout(minimum: float) -> float:
        """How long a watch lasts that does not say: between once and twice the minimum."""
        return minimum * (1 + random.random())

    def open(self) -> None:
        """Send the head of the answer, so that the client knows that the watch runs."""
        request = self._request
        start_response(request, 200, self._content_type, None)
        request.write(b"")
        request.notifyFinish().addBoth(self._disconnected)
        request.registerProducer(self, True)
        self._calls.append(self._reactor.callLater(self._timeout, self.end, None))

    def started(self, handle: Any) -> None:
        """
        The cache has begun to deliver.

        @param handle: What stops it, and knows the cache's C{revision}.
        """
        self._handle = handle
        if self._over:
            handle.stop()
            return
        if self._initial_events_end:
            self.bookmark(handle.revision, True)
            self._flusher.told_all(self._request.info, perf_counter() - self._request.begun)
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
        self.bookmark(self._handle.revision, False)

    # --- IWatchSink

    def send(self, kind: str, record: Record, event: Any) -> None:
        """One event; its encoding is shared with the other watches that show it the same way."""
        if self._over:
            return
        encoder = self._encoder
        if event is None or self._first:
            encode = encoder.first_event if self._first else encoder.event
            self._first = False
            self._put(encode(kind, record))
            return
        encoded = event.encoded
        if encoded is None:
            encoded = event.encoded = {}
        data = encoded.get(encoder)
        if data is None:
            data = encoded[encoder] = encoder.event(kind, record)
        self._put(data)

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """Tell how far the watch has come."""
        if not self._over:
            self._put(self._encoder.bookmark(revision, initial_events_end))

    def end(self, error: APIStatusError | None = None) -> None:
        """Say why, if there is a reason, and close."""
        if self._over:
            return
        if error is not None:
            self._put(self._encoder.failure(error.status()))
        self._stop()
        self.flush()
        self._finish()

    def _finish(self) -> None:
        request = self._request
        if not request._disconnected and not request.finished:
            request.unregisterProducer()
            request.finish()

    # --- writing

    def _put(self, data: bytes) -> None:
        self._waiting.append(data)
        if self._paused:
            self._unread += len(data)
            if self._unread > UNREAD_LIMIT:
                self._give_up()
        elif not self._planned:
            self._planned = True
            self._flusher.add(self)

    def flush(self) -> None:
        """Write what waits, as far as the reader takes it; all of it when the watch is over."""
        self._planned = False
        if self._paused and not self._over:
            return
        waiting, request = self._waiting, self._request
        if not waiting or request._disconnected:
            return
        self._waiting = []
        self._unread = 0
        if len(waiting) == 1:
            self._tally.one(waiting[0])
            request.write(waiting[0])
            return
        self._tally.several(waiting)
        if len(waiting) <= WRITTEN_TOGETHER:
            request.write(b"".join(waiting))
            return
        # The initial events of a large collection: no second copy of them all, and no more than the reader takes.
        begin = 0
        while begin < len(waiting) and (self._over or not self._paused):
            request.write(b"".join(waiting[begin : begin + WRITTEN_TOGETHER]))
            begin += WRITTEN_TOGETHER
        self._waiting = waiting[begin:]

    def _give_up(self) -> None:
        """The reader is too slow for what happens: cut it off, and free what waited for it."""
        if not self._over:
            self._tally.terminated += 1
        self._stop()
        self._waiting = []
        self._cut_off()

    def _cut_off(self) -> None:
        self._request.abort()

    def _disconnected(self, reason: object) -> None:
        self._stop()
        self._waiting = []

    def _stop(self) -> None:
        if self._over:
            return
        self._over = True
        for call in self._calls:
            if call.active():
                call.cancel()
        self._calls = []
        if self._handle is not None:
            self._handle.stop()

    # --- IPushProducer

    def pauseProducing(self) -> None:
        """The reader falls behind: collect, but write nothing."""
        self._paused = True

    def resumeProducing(self) -> None:
        """The reader has caught up."""
        self._paused = False
        if self._waiting:
            self.flush()

    def stopProducing(self) -> None:
        """The connection is gone."""
        self._disconnected(None)


class UnshownStream(WatchStream):
    """A watch whose events can not be shown in the form that was asked for: the first one ends it."""

    _waiting_to_end = False

    def send(self, kind: str, record: Record, event: Any) -> None:
        """End, but not before the head of the answer is written."""
        self._end_soon()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """End."""
        self._end_soon()

    def _end_soon(self) -> None:
        if not self._over and not self._waiting_to_end:
            self._waiting_to_end = True
            self._calls.append(self._reactor.callLater(0, self.end))
