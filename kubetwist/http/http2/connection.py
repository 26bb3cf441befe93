"""
HTTP/2 connections: frames of the client, the lifecycle of streams, deadlines, and the end of the connection.

@see: RFC 9113, sections 5 and 6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final

from OpenSSL.crypto import X509

from twisted.internet.interfaces import IAddress, IPushProducer
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ...interfaces import IClientConnection
from ..connection.bodyshares import UnservedBytes
from ..connection.coalescingtls import peer_certificates
from ..connection.connectionlimit import client_network
from ..connection.flow import bound_unsent, enable_tcp_keepalive, is_tls_closing
from ..headsyntax import Malformed
from ..request import HTTP2
from .body import STREAM_WINDOW, RequestBody
from .budgets import ControlBudget
from .frames import (
    ACK,
    CANCEL,
    DATA,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    MAX_WINDOW,
    NO_ERROR,
    PING,
    PROTOCOL_ERROR,
    RST_STREAM,
    SELF_DEPENDENT,
    SETTINGS,
    SETTINGS_ACK,
    SETTINGS_INITIAL_WINDOW_SIZE,
    SETTINGS_MAX_CONCURRENT_STREAMS,
    SETTINGS_MAX_HEADER_LIST_SIZE,
    STREAM_CLOSED,
    WINDOW_UPDATE,
    FrameReader,
    Http2ConnectionError,
    Http2StreamError,
    goaway,
    parse_uint32,
    ping_ack,
    read_settings,
    settings_frame,
    window_update,
)
from .headerblocks import HeaderListTooLarge
from .openstreams import OpenStreams
from .output import Output
from .requesthead import MAX_LIST, HeadReader, MalformedMessage
from .stream import Http2Site, Http2Stream

#: Bytes that the client may send on all streams before the server has read them.
CONNECTION_WINDOW: Final = 1024 * 1024
#: Seconds between requests; the reference's IdleTimeout.
IDLE_TIMEOUT: Final = 90.0
#: Seconds from the first byte of the preface, a frame or a header block to its last.
FRAME_TIMEOUT: Final = 32.0
#: Seconds in which the client must accept data that wait for it.
STALL_TIMEOUT: Final = 60.0
#: Seconds that the client of a closing connection has to read the last frames.
LINGER_TIMEOUT: Final = 5.0
#: Seconds of requests that are served at once; further ones wait for the requests of other connections.
TURN_SECONDS: Final = 0.0025
#: Responses that wait, in bytes, with which no further request is served.
MAX_BACKLOG: Final = 1024 * 1024


@implementer(IClientConnection, IPushProducer)
class Http2Connection(OpenStreams):
    """
    One connection.

    @ivar deadline: Time at which L{deadline_expired} checks the time limits; L{None} for never.
    """

    transport: Any

    def __init__(self, site: Http2Site) -> None:
        super().__init__(site)
        self.deadline: float | None = None
        self._frames = FrameReader(2 * MAX_LIST)
        self._heads = HeadReader()
        self._has_settings = False
        #: Streams whose requests wait for their turn.
        self._held: deque[Http2Stream] = deque()
        self._scheduled = False
        #: Whether received frames wait for the next turn.
        self._unread = False
        self._credit = 0
        self._idle_since = 0.0
        self._blocked_since = 0.0
        self._frame_deadline: float | None = None
        self._going_away = False
        self._closing = False
        self._control = ControlBudget(self.now)

    # The connection.

    def connectionMade(self) -> None:
        """Register the connection, and send the settings."""
        transport = self.transport
        enable_tcp_keepalive(transport)
        bound_unsent(transport)
        write = self.write = transport.write
        self._flush: Callable[[], object] = getattr(transport, "flush", lambda: None)
        self.output = Output(
            write,
            getattr(transport, "write_first", write),
            self.now,
            self._control,
            getattr(transport, "write_unordered", None),
        )
        client = ("", client_network(getattr(self.getPeer(), "host", "")))
        self._unserved = UnservedBytes(self.connections.bodies, client)
        if not self.connections.connected(self):
            self._closing = True
            transport.abortConnection()
            return
        transport.registerProducer(self, True)
        settings = [
            (SETTINGS_MAX_CONCURRENT_STREAMS, self.site.max_streams),
            (SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (SETTINGS_MAX_HEADER_LIST_SIZE, MAX_LIST),
        ]
        write(settings_frame(settings) + window_update(0, CONNECTION_WINDOW - INITIAL_WINDOW))
        # Watch events of this iteration would precede them otherwise.
        self._flush()
        self._idle_since = self.now()
        self._frame_deadline = self._idle_since + FRAME_TIMEOUT
        self.deadline = self._frame_deadline

    def getPeer(self) -> IAddress:
        """Return the address of the client."""
        peer: IAddress = self.transport.getPeer()
        return peer

    def getHost(self) -> IAddress:
        """Return the address that the client has connected to."""
        host: IAddress = self.transport.getHost()
        return host

    def peer_certificates(self) -> Sequence[X509]:
        """Return the certificate that the client has presented, and its chain; nothing without TLS."""
        return peer_certificates(self.transport)

    @property
    def idle(self) -> bool:
        """Return whether no stream is open."""
        return not self.streams

    @property
    def unflushed(self) -> bool:
        """Return whether data are written that the client has not read yet."""
        return self.output.blocked or self.output.size > 0

    # Receiving frames.

    def dataReceived(self, data: bytes) -> None:
        """Handle received data."""
        if self._closing:
            return
        try:
            self._frames.feed(data)
        except Http2ConnectionError as error:
            self._fail(error.code, str(error))
            return
        if not self._unread:
            self._read_frames()

    def _read_frames(self) -> None:
        """Handle the received frames until the time of the turn is used up; the rest waits for the next turn."""
        frames, now = self._frames, self.now
        until = now() + TURN_SECONDS
        complete = False
        try:
            while not self._closing:
                try:
                    frame = frames.next_frame()
                    if frame is None:
                        break
                    complete = True
                    kind, flags, stream_id, payload, size = frame
                    if kind == HEADERS and self._has_settings:
                        self._headers_received(flags, stream_id, payload)
                    elif kind == DATA and self._has_settings:
                        self._data_received(flags, stream_id, payload, size)
                    else:
                        self._control_received(kind, flags, stream_id, payload)
                except Http2StreamError as error:
                    self._reset_by_error(error)
                if frames.exhausted:
                    break
                if now() > until:
                    self._pause_reading()
                    return
        except Http2ConnectionError as error:
            self._fail(error.code, str(error))
            return
        except HeaderListTooLarge:
            self._fail(ENHANCE_YOUR_CALM, "a header list is too large")
            return
        if not frames.exhausted and frames.pending:
            if complete or self._frame_deadline is None:
                self._frame_deadline = now() + FRAME_TIMEOUT
                self.check_by(self._frame_deadline)
        else:
            self._frame_deadline = None
        if self._held:
            self._schedule_turn()

    def _pause_reading(self) -> None:
        """Read the other frames when it is this connection's turn again."""
        if not self._closing:
            self._unread = True
            self._frame_deadline = None
            self.transport.pauseProducing()
            self._schedule_turn()

    def _headers_received(self, flags: int, stream_id: int, block: bytes) -> None:
        stream = self.streams.get(stream_id)
        if stream is not None:
            if not stream.receiving:
                self._heads.skip(block)
                raise Http2StreamError(stream_id, STREAM_CLOSED, "HEADERS after the end of the request")
            self._trailers_received(stream, flags, block)
            return
        if not stream_id & 1:
            raise Http2ConnectionError(PROTOCOL_ERROR, "the client opened a stream of the server")
        if stream_id <= self._closed.last_id:
            self._heads.skip(block)
            self._closed.check(stream_id, "HEADERS")
            self._spend_control()
            return
        if self._going_away:
            # The client repeats the request on another connection.
            self._control.spend()
            self._heads.skip(block)
            return
        self._closed.opened(stream_id)
        receiving = not flags & END_STREAM
        stream = Http2Stream(self, stream_id, self.output.initial_window, receiving)
        try:
            head = self._heads.read(block)
        except Malformed as error:
            self._open(stream, 0)
            self._resets.spend()
            stream.refuse(error)
            return
        except MalformedMessage as error:
            raise Http2StreamError(stream_id, PROTOCOL_ERROR, str(error)) from None
        if flags & SELF_DEPENDENT:
            raise Http2StreamError(stream_id, PROTOCOL_ERROR, "a stream depends on itself")
        if not receiving and head.length:
            raise Http2StreamError(stream_id, PROTOCOL_ERROR, "a request without body has a Content-Length")
        self._open(stream, head.size)
        request = self.site.requestFactory(stream, head.method, head.target, HTTP2, dict(head.fields))
        stream.request = request
        stream.reads = head.method == b"GET"
        if receiving:
            stream.body = RequestBody(stream, request, head.length, head.expects_continue)
        if self._held or self.output.blocked or self.output.size > MAX_BACKLOG:
            self._held.append(stream)
        elif receiving:
            stream.start()
        else:
            request.serve(b"")

    def _trailers_received(self, stream: Http2Stream, flags: int, block: bytes) -> None:
        try:
            self._heads.read_trailers(block)
        except MalformedMessage as error:
            raise Http2StreamError(stream.stream_id, PROTOCOL_ERROR, str(error)) from None
        if not flags & END_STREAM or flags & SELF_DEPENDENT:
            raise Http2StreamError(stream.stream_id, PROTOCOL_ERROR, "HEADERS within a request")
        self._body_received(stream, b"", 0, True)

    def _data_received(self, flags: int, stream_id: int, data: bytes, size: int) -> None:
        end = flags & END_STREAM
        self._credit += size
        if self._credit > CONNECTION_WINDOW:
            raise Http2ConnectionError(FLOW_CONTROL_ERROR, "the client ignores the window of the connection")
        if self._credit >= CONNECTION_WINDOW // 2:
            # The windows of streams limit the memory.
            self.write(window_update(0, self._credit))
            self._credit = 0
        if not (data or end):
            self._spend_control()
        stream = self.streams.get(stream_id)
        if stream is None:
            if self._check_not_idle(stream_id):
                self._closed.check(stream_id, "DATA")
            return
        if not stream.receiving:
            raise Http2StreamError(stream_id, STREAM_CLOSED, "DATA after the end of the request")
        self._body_received(stream, data, size, end > 0)

    def _body_received(self, stream: Http2Stream, data: bytes, size: int, end: bool) -> None:
        if end:
            stream.receiving = False
        if stream.body is not None:
            stream.body.received(data, size, end)
        if end and stream.request is None and stream.backlog is None and not stream.closed:
            self._close_stream(stream)

    def _control_received(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """Handle a frame of a type other than DATA and HEADERS."""
        if not self._has_settings:
            if kind != SETTINGS or flags & ACK:
                raise Http2ConnectionError(PROTOCOL_ERROR, "the first frame is not SETTINGS")
            self._has_settings = True
        self._spend_control()
        if kind == WINDOW_UPDATE:
            self._window_updated(stream_id, parse_uint32(payload) & MAX_WINDOW)
        elif kind == RST_STREAM:
            self._reset_received(stream_id)
        elif kind == SETTINGS:
            if not flags & ACK:
                self._apply_settings(payload)
        elif kind == PING:
            if not flags & ACK:
                self.write(ping_ack(payload))
        elif kind == GOAWAY:
            # The client opens no further streams.
            self._going_away = True
            if not self.streams:
                self.close()
        # Priorities and unknown frames have no effect.

    def _spend_control(self) -> None:
        # The answers of a client that does not read would need memory.
        self._control.spend(refill=not self.output.blocked)

    def _apply_settings(self, payload: bytes) -> None:
        window = read_settings(payload, self.output.initial_window)
        if window == self.output.initial_window or not self.streams:
            self.output.initial_window = window
            self.write(SETTINGS_ACK)
            return
        self._control.spend(1 + len(self.streams) // 10)
        streams = list(self.streams.values())
        self.output.change_initial_window(streams, window)
        # The change applies to data after the acknowledgement, which urgent data must not overtake.
        self._flush()
        self.write(SETTINGS_ACK)
        self._flush()
        self.output.release(streams)

    def _window_updated(self, stream_id: int, increment: int) -> None:
        if not stream_id:
            if not increment:
                raise Http2ConnectionError(PROTOCOL_ERROR, "the window of the connection grows by 0")
            self.output.add_window(increment)
            return
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
        elif not increment:
            raise Http2StreamError(stream_id, PROTOCOL_ERROR, "the window of a stream grows by 0")
        else:
            self.output.add_stream_window(stream, increment)

    def _check_not_idle(self, stream_id: int) -> bool:
        """
        Check that a stream was opened.

        @return: Whether it was; not if the client has opened it after GOAWAY.
        """
        if not self._closed.is_idle(stream_id):
            return True
        if self._going_away and stream_id & 1:
            return False
        raise Http2ConnectionError(PROTOCOL_ERROR, "a frame on an idle stream")

    def _reset_received(self, stream_id: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
            return
        self._closed.was_reset(stream_id, by_client=True)
        self._resets.spend()
        self._close_stream(stream)
        self.end_request(stream)

    # The order of requests.

    @property
    def _can_serve(self) -> bool:
        """Return whether requests wait, and the client reads its responses."""
        return bool(self._held) and not self.output.blocked and self.output.size <= MAX_BACKLOG

    def _schedule_turn(self) -> None:
        """Schedule the waiting frames and requests after the requests of other connections."""
        if not (self._scheduled or self._closing) and (self._unread or self._can_serve):
            self._scheduled = True
            self.connections.schedule_pipelined(self)

    def serve_next(self) -> None:
        """Serve waiting requests and read waiting frames, when it is this connection's turn."""
        self._scheduled = False
        until = self.now() + TURN_SECONDS
        while self._can_serve:
            stream = self._held.popleft()
            if not stream.closed:
                stream.start()
                if self.now() > until:
                    break
        if self._unread and not self._closing:
            self._unread = False
            self._read_frames()
            if not (self._unread or self._closing):
                self.transport.resumeProducing()
        self._schedule_turn()

    # The sending side.

    def pauseProducing(self) -> None:
        """Pause: the transport accepts no data for now."""
        self.output.blocked = True
        self._blocked_since = self.now()
        self.check_by(self._blocked_since + STALL_TIMEOUT)

    def resumeProducing(self) -> None:
        """Resume: the transport accepts more data."""
        if is_tls_closing(self.transport):
            # TLS closes the connection below it, which waits for its producer and is not read.
            self.transport.unregisterProducer()
            return
        self.output.unblock()
        if self._held:
            self._schedule_turn()

    def stopProducing(self) -> None:
        """Stop: the connection is lost, and L{connectionLost} follows."""

    # Deadlines.

    def check_by(self, time: float) -> None:
        """Check the time limits at C{time} at the latest."""
        if self.deadline is None or self.deadline > time:
            self.deadline = time

    def check_backlogs(self) -> None:
        """Check later whether the client has accepted what waits for it."""
        self.check_by(self.now() + STALL_TIMEOUT)

    def deadline_expired(self) -> None:
        """End what has exceeded its time limit, and set the next deadline."""
        self.deadline = None
        if self._closing:
            self.abort()
            return
        now = self.now()
        if self._frame_deadline is not None:
            if self._frame_deadline <= now:
                self._fail(NO_ERROR, "a frame did not arrive in time")
                return
            self.check_by(self._frame_deadline)
        if self.output.blocked:
            if self._blocked_since + STALL_TIMEOUT <= now:
                # The client reads nothing, so that no stream can end.
                self.abort()
                return
            self.check_by(self._blocked_since + STALL_TIMEOUT)
        if not self.streams:
            if self._idle_since + IDLE_TIMEOUT <= now:
                self.disable_keep_alive()
            else:
                self.check_by(self._idle_since + IDLE_TIMEOUT)
        for stream in list(self.streams.values()):
            body, backlog = stream.body, stream.backlog
            if body is not None and body.deadline is not None:
                if body.deadline <= now:
                    stream.refuse(Malformed(408))
                    continue
                self.check_by(body.deadline)
            if backlog is not None:
                if backlog.since + STALL_TIMEOUT <= now:
                    self.reset(stream, CANCEL)
                else:
                    self.check_by(backlog.since + STALL_TIMEOUT)

    # The end of the connection.

    def streams_ended(self) -> None:
        """Close the connection after GOAWAY, or when it is idle for some time: the last stream has ended."""
        self._idle_since = self.now()
        if self._going_away:
            self.close()
        elif self.deadline is None:
            self.deadline = self._idle_since + IDLE_TIMEOUT

    def disable_keep_alive(self) -> None:
        """Accept no further streams; the connection is closed when the open ones have ended."""
        if not self._going_away:
            self._going_away = True
            self.write(goaway(self._closed.last_id, NO_ERROR))
            if not self.streams:
                self.close()

    def _fail(self, code: int, text: str) -> None:
        """End the connection of a client that breaks a rule."""
        if self._closing:
            return
        self._going_away = True
        self.write(goaway(self._closed.last_id, code, text.encode()))
        self.close()
        self._end_all()

    def _end_all(self) -> None:
        """End all streams without a response."""
        for stream in list(self.streams.values()):
            self._close_stream(stream)
            self.end_request(stream)
        for stream in list(self._unfinished):
            self.end_request(stream)
        self._held.clear()

    def close(self) -> None:
        """Close the connection when the written data are sent; abort it if the client does not close its side."""
        if self._closing:
            return
        if not self._going_away:
            self._going_away = True
            self.write(goaway(self._closed.last_id, NO_ERROR))
        self._closing = True
        self.deadline = self.now() + LINGER_TIMEOUT
        if self._unread:
            # The end of the client's side is read, too.
            self._unread = False
            self.transport.resumeProducing()
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def abort(self) -> None:
        """Close the connection now."""
        self._closing = True
        # Twisted's TLS cannot abort twice.
        if self.connections.has(self):
            self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Handle the loss of the connection."""
        self._closing = self._going_away = True
        self.connections.disconnected(self)
        self._end_all()
        self.deadline = None
