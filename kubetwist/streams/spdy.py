"""SPDY/3.1 connections and their streams, for servers and clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from .framedprotocol import FramedProtocol, ignore_backpressure, ignore_connection_lost
from .spdyframes import (
    CANCEL,
    GOAWAY_OK,
    GOAWAY_PROTOCOL_ERROR,
    MAX_STREAM_ID,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Headers,
    HeadersFrame,
    Ping,
    RstStream,
    SPDYError,
    SynReply,
    SynStream,
    data_frame_header,
)

#: Maximum number of concurrent streams that the peer may open.
MAX_STREAMS: Final = 1000
#: Maximum number of refused streams; then the connection is closed.
MAX_REFUSED_STREAMS: Final = 1000
#: Seconds until a stream that was opened must be accepted.
OPEN_TIMEOUT: Final = 30.0
#: Maximum payload of a written DATA frame in bytes.
_MAX_DATA_FRAME: Final = 1 << 20


class StreamEnded(Exception):
    """A stream ended before both sides had finished."""


class StreamReset(StreamEnded):
    """
    The peer has reset a stream.

    @ivar status: The status code of the C{RST_STREAM} frame.
    """

    def __init__(self, status: int) -> None:
        super().__init__("Stream reset")
        self.status = status


class StreamConnectionLost(StreamEnded):
    """The connection of a stream was closed or accepts no more streams."""


class StreamTimeout(StreamEnded):
    """A stream was not accepted in time."""


class StreamListener(Protocol):
    """Receives the events of a stream."""

    def data_received(self, data: bytes) -> None:
        """Handle received data."""

    def remote_finished(self) -> None:
        """Handle the end of the peer's data; this side may still send."""

    def lost(self, reason: StreamEnded) -> None:
        """Handle the early end of the stream; called at most once, as the last call."""


class SPDYStream:
    """
    One stream.

    @ivar stream_id: The id of the stream on its connection.
    @ivar headers: Headers of the stream.
    @ivar listener: Receives events; must be set before the stream is accepted.
    @ivar local_finished: This side has finished sending.
    @ivar remote_finished: The peer has finished sending.
    """

    listener: StreamListener

    def __init__(self, connection: SPDYConnection, stream_id: int, headers: Headers) -> None:
        self._connection = connection
        self.stream_id = stream_id
        self.headers = headers
        self.local_finished = False
        self.remote_finished = False

    def header(self, name: str) -> str:
        """Return the first value of a header; C{""} without one."""
        return self.headers.get(name, "").partition("\0")[0]

    def write(self, data: bytes) -> None:
        """Send data; data after the end of this side or of the stream is dropped."""
        if not self.local_finished and data:
            self._connection._send_data(self.stream_id, data)

    def finish(self) -> None:
        """Finish sending; received data is still handled."""
        if not self.local_finished:
            self.local_finished = True
            self._connection._write(Data(self.stream_id, b"", True))
            self._connection._check_finished(self)

    def reset(self, status: int = CANCEL) -> None:
        """Reset the stream in both directions, without calling its listener."""
        self._connection._reset(self, status)


class SPDYConnection(FramedProtocol[Frame]):
    """One connection."""

    def __init__(
        self,
        reactor: IReactorTime,
        *,
        server: bool = False,
        accept: Callable[[SPDYStream], bool] | None = None,
        max_streams: int = MAX_STREAMS,
        on_backpressure: Callable[[bool], object] = ignore_backpressure,
        on_connection_lost: Callable[[], object] = ignore_connection_lost,
    ) -> None:
        """
        @param reactor: The reactor, for timeouts.
        @param server: Whether this is the server's side, which has even stream ids.
        @param accept: Called with each stream that the peer opens. It sets the listener and returns L{True} to accept
            the stream. Without it, all streams are refused.
        @param max_streams: Maximum number of concurrent streams of the peer.
        @param on_backpressure: See L{FramedProtocol}.
        @param on_connection_lost: See L{FramedProtocol}.
        """
        super().__init__(reactor, on_backpressure, on_connection_lost)
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._accept = accept
        self._max_streams = max_streams
        self._first_local_id = 2 if server else 1
        self._next_local_id = self._first_local_id
        self._next_remote_id = 3 - self._first_local_id
        self._last_good_stream_id = 0
        self._streams: dict[int, SPDYStream] = {}
        self._opening: dict[int, tuple[Deferred[SPDYStream], IDelayedCall]] = {}
        self._refused = 0
        self._going_away = False
        self._error: SPDYError | None = None
        self._ping_id = self._first_local_id
        self._ping_timer: IDelayedCall | None = None

    # Streams.

    def create_stream(self, headers: Headers, listener: StreamListener) -> Deferred[SPDYStream]:
        """
        Open a stream.

        @param headers: Headers of the stream.
        @param listener: Receives the events of the stream.
        @return: Fires when the peer has accepted the stream; fails with L{StreamEnded} otherwise.
        """
        if self._loss_reason is not None or self._going_away or self._next_local_id > MAX_STREAM_ID:
            return fail(StreamConnectionLost("the connection takes no more streams"))
        stream = SPDYStream(self, self._next_local_id, headers)
        stream.listener = listener
        self._next_local_id += 2
        self._streams[stream.stream_id] = stream
        accepted: Deferred[SPDYStream] = Deferred(lambda _: stream.reset())
        timer = self._reactor.callLater(OPEN_TIMEOUT, self._not_accepted, stream)
        self._opening[stream.stream_id] = accepted, timer
        self._write(SynStream(stream.stream_id, headers))
        return accepted

    def _not_accepted(self, stream: SPDYStream) -> None:
        accepted, _ = self._opening.pop(stream.stream_id)
        stream.reset()
        accepted.errback(StreamTimeout("Timeout occurred"))

    def _pop_opening(self, stream_id: int) -> Deferred[SPDYStream] | None:
        """Return the Deferred of a stream that was not accepted yet, and stop its timeout; L{None} without one."""
        opening = self._opening.pop(stream_id, None)
        if opening is None:
            return None
        accepted, timer = opening
        if timer.active():
            timer.cancel()
        return accepted

    def ping_every(self, seconds: float) -> None:
        """Send a ping every C{seconds}, so that proxies do not close an idle connection."""

        def ping() -> None:
            self._ping_timer = self._reactor.callLater(seconds, ping)
            if not self.write_paused:
                self._write(Ping(self._ping_id))
                self._ping_id = self._ping_id + 2 if self._ping_id < MAX_STREAM_ID - 2 else self._first_local_id

        self._ping_timer = self._reactor.callLater(seconds, ping)

    def close(self, status: int = GOAWAY_OK) -> None:
        """Reset open streams, send GOAWAY, and close the connection, without calling listeners."""
        if self._disconnecting:
            return
        for stream in list(self._streams.values()):
            if stream.local_finished:
                # The sent data is complete.
                self._remove_stream(stream, StreamReset(CANCEL))
            else:
                stream.reset()
        if not self._going_away:
            self._going_away = True
            self._write(GoAway(self._last_good_stream_id, status))
        self._close_after_flush()

    # Writing.

    def _write(self, frame: Frame) -> None:
        if self.writable:
            self.transport.write(self._writer.write(frame))

    def _send_data(self, stream_id: int, data: bytes) -> None:
        if not self.writable:
            return
        if len(data) <= _MAX_DATA_FRAME:
            self.transport.writeSequence((data_frame_header(stream_id, len(data)), data))
            return
        for at in range(0, len(data), _MAX_DATA_FRAME):
            piece = data[at : at + _MAX_DATA_FRAME]
            self.transport.writeSequence((data_frame_header(stream_id, len(piece)), piece))

    def _reset(self, stream: SPDYStream, status: int) -> None:
        if self._streams.get(stream.stream_id) is stream:
            self._write(RstStream(stream.stream_id, status))
            self._remove_stream(stream, StreamReset(status))
            self._close_if_idle()

    def _remove_stream(self, stream: SPDYStream, reason: StreamEnded) -> None:
        del self._streams[stream.stream_id]
        stream.local_finished = stream.remote_finished = True
        waiting = self._pop_opening(stream.stream_id)
        if waiting is not None and not waiting.called:
            waiting.errback(reason)

    def _check_finished(self, stream: SPDYStream) -> None:
        if stream.local_finished and stream.remote_finished:
            self._streams.pop(stream.stream_id, None)
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        """Close the connection after GOAWAY when no stream is open."""
        if self._going_away and not self._streams:
            self._close_after_flush()

    # Received frames.

    def _feed(self, data: bytes) -> None:
        if self._error is None:
            self._reader.feed(data)

    def _next_frame(self) -> Frame | None:
        if self._error is not None:
            return None
        try:
            return self._reader.next()
        except SPDYError as error:
            self._error = error
            self._end_streams(StreamConnectionLost(str(error)))
            self.close(GOAWAY_PROTOCOL_ERROR)
            return None

    def _handle(self, frame: Frame) -> None:
        match frame:
            case Data(stream_id, data, fin):
                stream = self._streams.get(stream_id)
                if stream is not None and not stream.remote_finished:
                    if data:
                        stream.listener.data_received(data)
                    if fin:
                        self._remote_finished(stream)
            case SynStream():
                self._syn_stream_received(frame)
            case SynReply(stream_id, _, fin):
                accepted = self._pop_opening(stream_id)
                if accepted is not None:
                    stream = self._streams[stream_id]
                    accepted.callback(stream)
                    if fin:
                        self._remote_finished(stream)
            case RstStream(stream_id, status):
                stream = self._streams.pop(stream_id, None)
                if stream is not None:
                    self._end_stream(stream, StreamReset(status))
                    self._close_if_idle()
            case HeadersFrame(stream_id, _, fin):
                stream = self._streams.get(stream_id)
                if stream is not None and fin:
                    self._remote_finished(stream)
            case Ping(stream_id):
                # Peers that do not read the replies get none.
                if (stream_id - self._first_local_id) % 2 and not self.write_paused:
                    self._write(frame)
            case GoAway():
                self._going_away = True
                self._close_if_idle()
            case _:
                # Settings and windows are ignored.
                pass

    def _syn_stream_received(self, frame: SynStream) -> None:
        stream_id = frame.stream
        if self._going_away:
            return
        if stream_id < self._next_remote_id or (stream_id - self._first_local_id) % 2 == 0:
            self._refuse_stream(stream_id, PROTOCOL_ERROR)
            return
        self._next_remote_id = stream_id + 2
        stream = SPDYStream(self, stream_id, frame.headers)
        stream.local_finished = frame.unidirectional
        if self._accept is None or len(self._streams) >= self._max_streams:
            self._refuse_stream(stream_id, REFUSED_STREAM)
            return
        self._streams[stream_id] = stream
        if not self._accept(stream):
            if self._streams.pop(stream_id, None) is not None:
                self._refuse_stream(stream_id, REFUSED_STREAM)
            return
        self._last_good_stream_id = stream_id
        if stream_id in self._streams:
            self._write(SynReply(stream_id, {}))
            if frame.fin:
                self._remote_finished(stream)

    def _refuse_stream(self, stream_id: int, status: int) -> None:
        self._refused += 1
        if self._refused > MAX_REFUSED_STREAMS:
            self._end_streams(StreamConnectionLost("too many streams were refused"))
            self.close(GOAWAY_PROTOCOL_ERROR)
        elif not self.write_paused:
            self._write(RstStream(stream_id, status))

    def _remote_finished(self, stream: SPDYStream) -> None:
        if not stream.remote_finished:
            stream.remote_finished = True
            stream.listener.remote_finished()
            self._check_finished(stream)

    def _end_stream(self, stream: SPDYStream, reason: StreamEnded) -> None:
        stream.local_finished = stream.remote_finished = True
        waiting = self._pop_opening(stream.stream_id)
        if waiting is not None:
            waiting.errback(reason)
        else:
            stream.listener.lost(reason)

    def _end_streams(self, reason: StreamEnded) -> None:
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            self._end_stream(stream, reason)

    def _close_after_flush(self) -> None:
        self._cancel_ping_timer()
        super()._close_after_flush()

    def _cancel_ping_timer(self) -> None:
        if self._ping_timer is not None and self._ping_timer.active():
            self._ping_timer.cancel()

    def _handle_connection_lost(self, reason: Failure) -> None:
        self._cancel_ping_timer()
        self._end_streams(StreamConnectionLost("the connection was lost"))
