"""The HTTP side of a watch: a stream of events, written as they come, bounded by what its reader takes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import orjson

from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from zope.interface import implementer

from ..api.errors import APIStatusError
from ..interfaces import IWatchSink
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


class Flusher:
    """
    Writes what the watches of a server have to say, once per turn of the reactor.

    One delayed call serves all watches: an event that concerns a thousand of them must not plan a thousand calls.
    """

    def __init__(self, reactor: IReactorTime) -> None:
        self._reactor = reactor
        self._streams: list[WatchStream] = []

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
            self._put(b'{"type":"ERROR","object":%b}\n' % orjson.dumps(error.status()))
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
        if len(waiting) <= WRITTEN_TOGETHER:
            request.write(waiting[0] if len(waiting) == 1 else b"".join(waiting))
            return
        # The initial events of a large collection: no second copy of them all, and no more than the reader takes.
        begin = 0
        while begin < len(waiting) and (self._over or not self._paused):
            request.write(b"".join(waiting[begin : begin + WRITTEN_TOGETHER]))
            begin += WRITTEN_TOGETHER
        self._waiting = waiting[begin:]

    def _give_up(self) -> None:
        """The reader is too slow for what happens: cut it off, and free what waited for it."""
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
