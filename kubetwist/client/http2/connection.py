"""
One HTTP/2 connection to another server, with many exchanges at a time.

@see: RFC 9113, and Go's C{http2.Transport} for the texts of errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ...api.go.quote import quoted
from ...http.connection.flow import is_tls_closing
from ...http.http2.budgets import ControlBudget
from ...http.http2.frames import (
    ACK,
    CANCEL,
    DATA,
    END_STREAM,
    ENHANCE_YOUR_CALM,
    FLOW_CONTROL_ERROR,
    GOAWAY,
    HEADERS,
    INITIAL_WINDOW,
    MAX_STREAM_ID,
    MAX_WINDOW,
    NO_ERROR,
    PING,
    PREFACE,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    SETTINGS_ACK,
    SETTINGS_ENABLE_PUSH,
    SETTINGS_INITIAL_WINDOW_SIZE,
    SETTINGS_MAX_CONCURRENT_STREAMS,
    SETTINGS_MAX_HEADER_LIST_SIZE,
    STREAM_CLOSED,
    WINDOW_UPDATE,
    FrameReader,
    Http2ConnectionError,
    Http2StreamError,
    find_setting,
    goaway,
    parse_uint32,
    ping,
    ping_ack,
    read_settings,
    rst_stream,
    settings_frame,
    window_update,
)
from ...http.http2.headerblocks import HeaderDecoder, HeaderListTooLarge
from ...http.http2.output import Output
from ..connection import ConnectionPool, StaleConnection, StreamingResponse, UnprocessedRequest, Upload
from ..dialing import connection_addresses, connection_lost_error
from ..errors import Unreachable
from ..responsehead import MAX_FIELDS, MAX_HEAD
from .heads import InvalidRequest, request_block
from .stream import STREAM_WINDOW, ClientStream

#: Bytes that the server may send on all streams before they have arrived; they need not be read.
CONNECTION_WINDOW: Final = 1024 * 1024
#: Maximum number of open streams, unless the server accepts fewer; further requests open another connection.
MAX_STREAMS: Final = 250
#: Streams that this side resets on one connection before it opens no further ones: servers close connections with many
#: resets, which would break the exchanges of other users.
MAX_RESETS: Final = 400
#: Seconds without data from the server until it is probed, and until the probe has failed.
#: @see: kubernetes/apimachinery, C{pkg/util/net/http.go}.
READ_IDLE_TIMEOUT: Final = 30.0
PING_TIMEOUT: Final = 15.0
#: Seconds to send the reason before a connection is aborted.
LINGER_TIMEOUT: Final = 5.0
#: Bytes of the text of GOAWAY in errors.
MAX_DEBUG_DATA: Final = 256

_WITH_BODY: Final = (b"POST", b"PUT", b"PATCH")
_PROBE: Final = b"kubetwst"
_CODES: Final = (
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
)


@implementer(IPushProducer)
class Http2BackendConnection(Protocol):
    """
    One connection.

    @ivar address: The host and port of the connection.
    @ivar ready: Fires when the server's settings have arrived.
    @ivar idle_since: The end of its last exchange.
    @ivar streams: The open streams, by id.
    @ivar output: The sending side.
    """

    transport: Any
    idle_since = 0.0

    def __init__(self, client: ConnectionPool, reactor: IReactorTime, address: tuple[str, int]) -> None:
        self.address = address
        self.ready: Deferred[None] = Deferred(lambda _: self.abort())
        self.streams: dict[int, ClientStream] = {}
        self._client = client
        self._reactor = reactor
        self._now = reactor.seconds
        self._frames = FrameReader(2 * MAX_HEAD, preface=b"")
        self._decoder = HeaderDecoder(2 * MAX_HEAD, 2 * MAX_FIELDS)
        self._control = ControlBudget(self._now)
        #: Streams with a head, and those with data, in what was read last.
        self._answered: list[ClientStream] = []
        self._fed: dict[ClientStream, None] = {}
        self._addresses = ""
        self._next_id = 1
        self._max_streams = 0
        self._resets_left = MAX_RESETS
        #: Received bytes of DATA that the server has not been allowed to send again.
        self._credit = 0
        #: Bytes that may still arrive on streams that this side has reset.
        self._discarded = 0
        self._reads = 0
        self._received_at = 0.0
        self._probing = False
        self._timer: IDelayedCall | None = None
        self._goaway: tuple[int, int, bytes] | None = None
        #: No further streams are opened.
        self._retired = False
        self._closing = False
        self._lost = False
        self._error: Unreachable | None = None

    # The connection.

    def connectionMade(self) -> None:
        """Send the settings; the handshake of TLS is complete."""
        transport = self.transport
        self._addresses = connection_addresses(transport)
        self.write = transport.write
        self.output = Output(self.write, self.write, self._now, self._control)
        self._client.made(self)
        transport.registerProducer(self, True)
        settings = [
            (SETTINGS_ENABLE_PUSH, 0),
            (SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (SETTINGS_MAX_HEADER_LIST_SIZE, MAX_HEAD),
        ]
        self.write(PREFACE + settings_frame(settings) + window_update(0, CONNECTION_WINDOW - INITIAL_WINDOW))
        self._received_at = self._now()
        self._timer = self._reactor.callLater(READ_IDLE_TIMEOUT, self._check_health)

    @property
    def is_open(self) -> bool:
        """Return whether further streams may be opened."""
        return len(self.streams) < self._max_streams and not (self._retired or self._closing or self._lost)

    def abort(self) -> None:
        """Close the connection at once."""
        self._closing = True
        if not self._lost and self.transport is not None:
            self.transport.abortConnection()

    def _close(self, code: int, text: str = "") -> None:
        """Close the connection when the written data are sent; no stream is open."""
        if self._closing:
            return
        self._closing = True
        self.write(goaway(0, code, text.encode()))
        self._set_timer(LINGER_TIMEOUT, self.abort)
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    def _fail(self, code: int, text: str) -> None:
        """End the connection to a server that breaks a rule."""
        if self._closing:
            return
        self._error = Unreachable(f"connection error: {_code_name(code)}: {text}")
        self._close(code, text)
        self._end_all(self._error)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Handle the loss of the connection."""
        self._lost = True
        self._set_timer(None)
        self._client.lost(self)
        self._end_all(self._loss(reason))

    def _loss(self, reason: Failure) -> Unreachable:
        """Return the error for a lost connection, with Go's text."""
        if self._error is not None:
            return self._error
        error = connection_lost_error(reason.value, self._addresses)
        if error is None and self._goaway is not None:
            last_id, code, text = self._goaway
            return Unreachable(
                "http2: server sent GOAWAY and closed the connection;"
                f" LastStreamID={last_id}, ErrCode={_code_name(code)}, debug={quoted(text.decode('utf-8', 'replace'))}"
            )
        return error or Unreachable("unexpected EOF")

    def _end_all(self, error: Unreachable) -> None:
        """Fail all streams."""
        if not self.ready.called:
            self.ready.errback(error)
        for stream in list(self.streams.values()):
            self._remove(stream)
            stream.fail(self._stale_error(stream, error))

    def _stale_error(self, stream: ClientStream, error: Unreachable) -> Unreachable:
        """Return the error of a stream; a L{StaleConnection} if nothing has arrived since the stream was opened."""
        if self._error is None and stream.opened_after == self._reads and stream.stream_id > 1:
            return StaleConnection(str(error), retriable=error.retriable)
        return error

    # The health of the connection.

    def _check_health(self) -> None:
        """Probe a silent server; give up if it does not answer the probe."""
        self._timer = None
        silent_for = self._now() - self._received_at
        if silent_for < READ_IDLE_TIMEOUT:
            self._probing = False
            self._timer = self._reactor.callLater(READ_IDLE_TIMEOUT - silent_for, self._check_health)
        elif self._probing:
            self._error = Unreachable("http2: client connection lost")
            self.abort()
        else:
            self._probing = True
            self.write(ping(_PROBE))
            self._timer = self._reactor.callLater(PING_TIMEOUT, self._check_health)

    def _set_timer(self, seconds: float | None, call: Any = None) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
        if seconds is not None:
            self._timer = self._reactor.callLater(seconds, call)

    # Requests.

    def round_trip(
        self,
        method: bytes,
        target: bytes,
        fields: Sequence[tuple[bytes, bytes]],
        body: bytes | Upload | None,
        timeout: float | None,
        upgrade: bool,
    ) -> Deferred[StreamingResponse]:
        """
        Send a request on a new stream.

        @param method: The HTTP method.
        @param target: Path and query, escaped.
        @param fields: The header fields, without the ones that frame the body.
        @param body: The body; L{None} for none.
        @param timeout: Seconds until the head of the response; L{None} for no limit.
        @param upgrade: Not supported.
        @return: Fires with the response when its head arrives; cancelling it resets the stream.
        """
        assert not upgrade, "only HTTP/1.1 has upgrades"
        stream_id = self._next_id
        stream = ClientStream(self, stream_id, self.output.initial_window, method, self._reads)
        waiter = stream.waiter
        assert waiter is not None, "the stream is new"
        if not self.is_open:
            stream.fail(UnprocessedRequest("http2: client conn not usable"))
            return waiter
        length = body.length if isinstance(body, Upload) else len(body or b"")
        try:
            block = request_block(method, target, fields, length if length or method in _WITH_BODY else None)
        except InvalidRequest:
            stream.fail(Unreachable("net/http: invalid header field value"))
            if not self.streams:
                self._client.released(self)
            return waiter
        self._next_id += 2
        if self._next_id > MAX_STREAM_ID:
            self._retired = True
        self.streams[stream_id] = stream
        if timeout is not None:
            stream.timer = self._reactor.callLater(timeout, self._timed_out, stream)
        if isinstance(body, Upload):
            self.output.send_head(stream, block, False)
            stream.upload(body)
        elif body:
            self.output.send_response(stream, block, body)
        else:
            self.output.send_head(stream, block, True)
            stream.end_sent()
        return waiter

    def _timed_out(self, stream: ClientStream) -> None:
        self.reset(stream, CANCEL)
        stream.fail(Unreachable("http2: timeout awaiting response headers"))

    # Streams.

    def reset(self, stream: ClientStream, code: int) -> None:
        """Reset a stream, unless it has ended."""
        if stream.closed:
            return
        self._discarded += max(STREAM_WINDOW - stream.credit, 0)
        self._resets_left -= 1
        if not self._resets_left:
            self._retired = True
        self.write(rst_stream(stream.stream_id, code))
        self._close_stream(stream)

    def ended(self, stream: ClientStream) -> None:
        """Remove a stream whose response is complete."""
        self._close_stream(stream)

    def head_arrived(self, stream: ClientStream) -> None:
        """Pass the response on when the received data were read: the body may have arrived, too."""
        self._answered.append(stream)

    def _close_stream(self, stream: ClientStream) -> None:
        self._remove(stream)
        if self.streams or self._closing or self._lost:
            return
        if self._retired:
            self._close(NO_ERROR)
        else:
            self._client.released(self)

    def _remove(self, stream: ClientStream) -> None:
        del self.streams[stream.stream_id]
        self.output.drop(stream)
        stream.close()

    # Receiving frames.

    def dataReceived(self, data: bytes) -> None:
        """Handle received data."""
        if self._closing:
            return
        self._reads += 1
        self._received_at = self._now()
        frames = self._frames
        try:
            frames.feed(data)
            while not self._closing:
                try:
                    frame = frames.next_frame()
                    if frame is None:
                        break
                    kind, flags, stream_id, payload, size = frame
                    if kind == DATA and self.ready.called:
                        self._data_received(flags, stream_id, payload, size)
                    elif kind == HEADERS and self.ready.called:
                        self._headers_received(flags, stream_id, payload)
                    else:
                        self._control_received(kind, flags, stream_id, payload)
                except Http2StreamError as error:
                    self._reset_by_error(error)
        except Http2ConnectionError as error:
            self._fail(error.code, str(error))
        except HeaderListTooLarge:
            self._fail(ENHANCE_YOUR_CALM, "response header list larger than advertised limit")
        fed, self._fed = self._fed, {}
        for stream in fed:
            stream.pass_on()
        answered, self._answered = self._answered, []
        for stream in answered:
            stream.answer()

    def _headers_received(self, flags: int, stream_id: int, block: bytes) -> None:
        fields = self._decoder.decode(block)
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
            self._control.spend()
            return
        stream.head_received(fields, bool(flags & END_STREAM))

    def _data_received(self, flags: int, stream_id: int, data: bytes, size: int) -> None:
        self._credit += size
        if self._credit > CONNECTION_WINDOW:
            raise Http2ConnectionError(FLOW_CONTROL_ERROR, "the server ignores the window of the connection")
        if self._credit >= CONNECTION_WINDOW // 2:
            # The windows of streams limit the memory.
            self.write(window_update(0, self._credit))
            self._credit = 0
        if data:
            self._control.earn(1)
        elif not flags & END_STREAM:
            self._spend_control()
        stream = self.streams.get(stream_id)
        if stream is not None:
            self._fed[stream] = None
            stream.data_received(data, size, bool(flags & END_STREAM))
            return
        self._check_not_idle(stream_id)
        # The server may have sent it before it knew that the stream was reset.
        self._discarded -= size
        if self._discarded < 0:
            raise Http2ConnectionError(STREAM_CLOSED, "DATA on a closed stream")
        if not size:
            self._spend_control()

    def _check_not_idle(self, stream_id: int) -> None:
        if stream_id >= self._next_id or not stream_id & 1:
            raise Http2ConnectionError(PROTOCOL_ERROR, "a frame on an idle stream")

    def _control_received(self, kind: int, flags: int, stream_id: int, payload: bytes) -> None:
        """Handle a frame of a type other than DATA and HEADERS."""
        if not self.ready.called and (kind != SETTINGS or flags & ACK):
            raise Http2ConnectionError(PROTOCOL_ERROR, "the first frame is not SETTINGS")
        self._spend_control()
        if kind == WINDOW_UPDATE:
            self._window_updated(stream_id, parse_uint32(payload) & MAX_WINDOW)
        elif kind == RST_STREAM:
            self._reset_received(stream_id, parse_uint32(payload))
        elif kind == SETTINGS:
            if not flags & ACK:
                self._apply_settings(payload)
        elif kind == PING:
            if not flags & ACK:
                self.write(ping_ack(payload))
        elif kind == GOAWAY:
            self._goaway_received(payload)
        # Priorities and unknown frames have no effect.

    def _spend_control(self) -> None:
        # The acknowledgements for a server that does not read would need memory.
        self._control.spend(refill=not self.output.blocked)

    def _apply_settings(self, payload: bytes) -> None:
        window = read_settings(payload, self.output.initial_window)
        if find_setting(payload, SETTINGS_ENABLE_PUSH):
            raise Http2ConnectionError(PROTOCOL_ERROR, "a server enables pushes")
        max_streams = find_setting(payload, SETTINGS_MAX_CONCURRENT_STREAMS)
        if max_streams is not None:
            self._max_streams = min(max_streams, MAX_STREAMS)
        elif not self.ready.called:
            self._max_streams = MAX_STREAMS
        streams = list(self.streams.values())
        self.write(SETTINGS_ACK)
        if window != self.output.initial_window:
            self._control.spend(1 + len(streams) // 10)
            self.output.change_initial_window(streams, window)
            self.output.release(streams)
        if not self.ready.called:
            self.ready.callback(None)

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

    def _reset_received(self, stream_id: int, code: int) -> None:
        stream = self.streams.get(stream_id)
        if stream is None:
            self._check_not_idle(stream_id)
            return
        text = f"stream error: stream ID {stream_id}; {_code_name(code)}; received from peer"
        if code == REFUSED_STREAM:
            # It has as many streams as it wants.
            self._retired = True
            error: Unreachable = UnprocessedRequest(text)
        else:
            error = Unreachable(text)
        self._close_stream(stream)
        stream.fail(error)

    def _reset_by_error(self, error: Http2StreamError) -> None:
        """Reset a stream on which the server breaks a rule."""
        stream = self.streams.get(error.stream_id)
        if stream is None:
            self._check_not_idle(error.stream_id)
            self._spend_control()
            return
        self.reset(stream, error.code)
        stream.fail(Unreachable(f"stream error: stream ID {error.stream_id}; {_code_name(error.code)}; {error}"))

    def _goaway_received(self, payload: bytes) -> None:
        """Open no further streams, and fail those that the server will not process."""
        last_id, code = parse_uint32(payload) & MAX_STREAM_ID, parse_uint32(payload[4:])
        if self._goaway is not None and last_id > self._goaway[0]:
            raise Http2ConnectionError(PROTOCOL_ERROR, "the last stream of GOAWAY grows")
        self._goaway = last_id, code, payload[8 : 8 + MAX_DEBUG_DATA]
        self._retired = True
        unprocessed = [stream for stream_id, stream in self.streams.items() if stream_id > last_id]
        for stream in unprocessed:
            self._remove(stream)
        if not self.streams:
            self._close(NO_ERROR)
        for stream in unprocessed:
            stream.fail(UnprocessedRequest("http2: Transport received Server's graceful shutdown GOAWAY"))

    # The sending side.

    def pauseProducing(self) -> None:
        """Pause: the transport accepts no data for now."""
        self.output.blocked = True

    def resumeProducing(self) -> None:
        """Resume: the transport accepts more data."""
        if is_tls_closing(self.transport):
            # TLS closes the connection below it, which waits for its producer and is not read.
            self.transport.unregisterProducer()
            return
        self.output.unblock()

    def stopProducing(self) -> None:
        """Stop: the connection is lost, and L{connectionLost} follows."""


def _code_name(code: int) -> str:
    """Return the name of an error code, as Go prints it."""
    return _CODES[code] if code < len(_CODES) else f"unknown error code 0x{code:x}"
