"""A connection of SPDY/3.1 and its streams, as a server or as a client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from .framedprotocol import Inlet, ignore, ignore_pressure
from .spdyframes import (
    CANCEL,
    GOAWAY_OK,
    GOAWAY_PROTOCOL_ERROR,
    MAX_STREAM,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Data,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Headers,
    MoreHeaders,
    Ping,
    RstStream,
    SPDYError,
    SynReply,
    SynStream,
    data_head,
)

#: The most streams that the other side may have open at a time.
MAX_STREAMS: Final = 1000
#: How many of its streams may be refused before the connection ends.
MAX_REFUSED: Final = 1000
#: Seconds until a stream that was asked for must be accepted.
OPEN_TIMEOUT: Final = 30.0
#: The largest DATA frame that is written.
_PIECE: Final = 1 << 20


class StreamEnded(Exception):
    """A stream came to its end before its time."""


class StreamReset(StreamEnded):
    """
    The other side has reset a stream.

    @ivar status: Why, as a number of the protocol.
    """

    def __init__(self, status: int) -> None:
        super().__init__("Stream reset")
        self.status = status


class ConnectionGone(StreamEnded):
    """The connection has ended, and its streams with it."""


class StreamTimeout(StreamEnded):
    """A stream was not accepted in time."""


class StreamListener(Protocol):
    """Receives the events of a stream."""

    def data_received(self, data: bytes) -> None:
        """Handle received data."""

    def remote_finished(self) -> None:
        """Handle the end of the other side's data; this side may still send."""

    def lost(self, reason: StreamEnded) -> None:
        """Handle the early end of the stream; called at most once, as the last call."""


class SPDYStream:
    """
    One stream.

    @ivar headers: Headers of the stream.
    @ivar listener: Receives events; must be set before the stream is accepted.
    @ivar local_finished: This side has finished sending.
    @ivar remote_finished: The other side has finished sending.
    """

    listener: StreamListener

    def __init__(self, connection: SPDYConnection, number: int, headers: Headers) -> None:
        self._connection = connection
        self.number = number
        self.headers = headers
        self.local_finished = False
        self.remote_finished = False

    def header(self, name: str) -> str:
        """Return the first value of a header; C{""} without one."""
        return self.headers.get(name, "").partition("\0")[0]

    def write(self, data: bytes) -> None:
        """Send data; data after the end of this side or of the stream is dropped."""
        if not self.local_finished and data:
            self._connection._send_data(self.number, data)

    def finish(self) -> None:
        """Finish sending; received data is still handled."""
        if not self.local_finished:
            self.local_finished = True
            self._connection._write(Data(self.number, b"", True))
            self._connection._check_finished(self)

    def reset(self, status: int = CANCEL) -> None:
        """Reset the stream in both directions, without calling its listener."""
        self._connection._reset(self, status)


class SPDYConnection(Inlet[Frame]):
    """One connection."""

    def __init__(
        self,
        reactor: IReactorTime,
        *,
        server: bool = False,
        accept: Callable[[SPDYStream], bool] | None = None,
        max_streams: int = MAX_STREAMS,
        on_pressure: Callable[[bool], object] = ignore_pressure,
        on_gone: Callable[[], object] = ignore,
    ) -> None:
        """
        @param accept: Is shown a stream that the other side begins. It sets the listener and says L{True} to accept
            it; without it, all are refused.
        @param max_streams: How many streams of the other side may be open.
        @param on_pressure: See L{Inlet}.
        @param on_gone: See L{Inlet}.
        """
        super().__init__(reactor, on_pressure, on_gone)
        self._reader = FrameReader()
        self._writer = FrameWriter()
        self._accept = accept
        self._max_streams = max_streams
        self._ours = 2 if server else 1
        self._next_own = self._ours
        self._next_other = 3 - self._ours
        self._last_good = 0
        self._streams: dict[int, SPDYStream] = {}
        self._opening: dict[int, tuple[Deferred[SPDYStream], IDelayedCall]] = {}
        self._refused = 0
        self._leaves = False
        self._error: SPDYError | None = None
        self._ping_number = self._ours
        self._pinging: IDelayedCall | None = None

    # Streams.

    def open(self, headers: Headers, listener: StreamListener) -> Deferred[SPDYStream]:
        """
        Begin a stream.

        @return: Fires when the other side has accepted it; fails with L{StreamEnded} if it does not.
        """
        if self._gone is not None or self._leaves or self._next_own > MAX_STREAM:
            return fail(ConnectionGone("the connection takes no more streams"))
        stream = SPDYStream(self, self._next_own, headers)
        stream.listener = listener
        self._next_own += 2
        self._streams[stream.number] = stream
        accepted: Deferred[SPDYStream] = Deferred(lambda _: stream.reset())
        timer = self._reactor.callLater(OPEN_TIMEOUT, self._not_accepted, stream)
        self._opening[stream.number] = accepted, timer
        self._write(SynStream(stream.number, headers))
        return accepted

    def _not_accepted(self, stream: SPDYStream) -> None:
        accepted, _ = self._opening.pop(stream.number)
        stream.reset()
        accepted.errback(StreamTimeout("Timeout occurred"))

    def _opened(self, number: int) -> Deferred[SPDYStream] | None:
        """The end of waiting for a stream to be accepted."""
        opening = self._opening.pop(number, None)
        if opening is None:
            return None
        accepted, timer = opening
        if timer.active():
            timer.cancel()
        return accepted

    def ping_every(self, seconds: float) -> None:
        """Ask the other side regularly for a sign of life, so that nothing in between takes the connection for dead."""

        def ping() -> None:
            self._pinging = self._reactor.callLater(seconds, ping)
            if not self.full:
                self._write(Ping(self._ping_number))
                self._ping_number = self._ping_number + 2 if self._ping_number < MAX_STREAM - 2 else self._ours

        self._pinging = self._reactor.callLater(seconds, ping)

    def close(self, status: int = GOAWAY_OK) -> None:
        """Reset open streams, send GOAWAY, and close the connection, without calling listeners."""
        if self._leaving:
            return
        for stream in list(self._streams.values()):
            if stream.local_finished:
                # The sent data is complete.
                self._forget(stream, StreamReset(CANCEL))
            else:
                stream.reset()
        if not self._leaves:
            self._leaves = True
            self._write(GoAway(self._last_good, status))
        self._leave()

    # What is written.

    def _write(self, frame: Frame) -> None:
        if self.usable:
            self.transport.write(self._writer.write(frame))

    def _send_data(self, number: int, data: bytes) -> None:
        if not self.usable:
            return
        if len(data) <= _PIECE:
            self.transport.writeSequence((data_head(number, len(data)), data))
            return
        for at in range(0, len(data), _PIECE):
            piece = data[at : at + _PIECE]
            self.transport.writeSequence((data_head(number, len(piece)), piece))

    def _reset(self, stream: SPDYStream, status: int) -> None:
        if self._streams.get(stream.number) is stream:
            self._write(RstStream(stream.number, status))
            self._forget(stream, StreamReset(status))
            self._check_left()

    def _forget(self, stream: SPDYStream, why: StreamEnded) -> None:
        del self._streams[stream.number]
        stream.local_finished = stream.remote_finished = True
        waiting = self._opened(stream.number)
        if waiting is not None and not waiting.called:
            waiting.errback(why)

    def _check_finished(self, stream: SPDYStream) -> None:
        if stream.local_finished and stream.remote_finished:
            self._streams.pop(stream.number, None)
            self._check_left()

    def _check_left(self) -> None:
        """The other side wants to go: let it, when nothing is open any more."""
        if self._leaves and not self._streams:
            self._leave()

    # What arrives.

    def _feed(self, data: bytes) -> None:
        if self._error is None:
            self._reader.feed(data)

    def _next(self) -> Frame | None:
        if self._error is not None:
            return None
        try:
            return self._reader.next()
        except SPDYError as error:
            self._error = error
            self._end_streams(ConnectionGone(str(error)))
            self.close(GOAWAY_PROTOCOL_ERROR)
            return None

    def _handle(self, frame: Frame) -> None:
        match frame:
            case Data(number, data, fin):
                stream = self._streams.get(number)
                if stream is not None and not stream.remote_finished:
                    if data:
                        stream.listener.data_received(data)
                    if fin:
                        self._remote_finished(stream)
            case SynStream():
                self._begins(frame)
            case SynReply(number, _, fin):
                accepted = self._opened(number)
                if accepted is not None:
                    stream = self._streams[number]
                    accepted.callback(stream)
                    if fin:
                        self._remote_finished(stream)
            case RstStream(number, status):
                stream = self._streams.pop(number, None)
                if stream is not None:
                    self._end_stream(stream, StreamReset(status))
                    self._check_left()
            case MoreHeaders(number, _, fin):
                stream = self._streams.get(number)
                if stream is not None and fin:
                    self._remote_finished(stream)
            case Ping(number):
                # Peers that do not read the replies get none.
                if (number - self._ours) % 2 and not self.full:
                    self._write(frame)
            case GoAway():
                self._leaves = True
                self._check_left()
            case _:
                # Settings and windows are ignored.
                pass

    def _begins(self, frame: SynStream) -> None:
        number = frame.stream
        if self._leaves:
            return
        if number < self._next_other or (number - self._ours) % 2 == 0:
            self._refuse(number, PROTOCOL_ERROR)
            return
        self._next_other = number + 2
        stream = SPDYStream(self, number, frame.headers)
        stream.local_finished = frame.unidirectional
        if self._accept is None or len(self._streams) >= self._max_streams:
            self._refuse(number, REFUSED_STREAM)
            return
        self._streams[number] = stream
        if not self._accept(stream):
            if self._streams.pop(number, None) is not None:
                self._refuse(number, REFUSED_STREAM)
            return
        self._last_good = number
        if number in self._streams:
            self._write(SynReply(number, {}))
            if frame.fin:
                self._remote_finished(stream)

    def _refuse(self, number: int, status: int) -> None:
        self._refused += 1
        if self._refused > MAX_REFUSED:
            self._end_streams(ConnectionGone("too many streams were refused"))
            self.close(GOAWAY_PROTOCOL_ERROR)
        elif not self.full:
            self._write(RstStream(number, status))

    def _remote_finished(self, stream: SPDYStream) -> None:
        if not stream.remote_finished:
            stream.remote_finished = True
            stream.listener.remote_finished()
            self._check_finished(stream)

    def _end_stream(self, stream: SPDYStream, reason: StreamEnded) -> None:
        stream.local_finished = stream.remote_finished = True
        waiting = self._opened(stream.number)
        if waiting is not None:
            waiting.errback(reason)
        else:
            stream.listener.lost(reason)

    def _end_streams(self, reason: StreamEnded) -> None:
        streams, self._streams = list(self._streams.values()), {}
        for stream in streams:
            self._end_stream(stream, reason)

    def _leave(self) -> None:
        self._stop_pinging()
        super()._leave()

    def _stop_pinging(self) -> None:
        if self._pinging is not None and self._pinging.active():
            self._pinging.cancel()

    def _lost(self, reason: Failure) -> None:
        self._stop_pinging()
        self._end_streams(ConnectionGone("the connection was lost"))
