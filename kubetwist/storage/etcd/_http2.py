"""
The client's side of an HTTP/2 connection for gRPC calls, without I/O.

Twisted's HTTP/2 is for servers. The library h2 takes 112 us per call, more than the remaining work for a write. This
module has the parts that gRPC calls need: streams, flow control, pings, and ends of streams and connections with the
outcome of their requests. A protocol violation closes the connection. L{kubetwist.storage.etcd._grpc} has the sockets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Final

from hyperframe.frame import (
    Frame,
    GoAwayFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)

from ._errors import (
    NoResponse,
    ProtocolError,
    RPCError,
)
from ._frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    MAX_FRAME_SIZE,
    MAX_HEADER_SIZE,
    PUSH_PROMISE,
    SETTINGS,
    FrameReader,
    HeadWriter,
    MessageReader,
    frame_header,
    http_code,
    parse_frame,
    prefixed,
    read_head,
)

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#: The flow control windows, of one stream and of all; extended when half of one is used up.
STREAM_WINDOW: Final = 8 << 20
CONNECTION_WINDOW: Final = 32 << 20
#: The initial window of HTTP/2.
INITIAL_WINDOW: Final = 65535
MAX_WINDOW_SIZE: Final = (1 << 31) - 1
#: Maximum number of concurrent calls per member; more calls wait.
MAX_CONCURRENT_STREAMS: Final = 200
#: Maximum number of settings and pings that are answered before the peer reads the answers.
MAX_PENDING_ACKS: Final = 1000
#: Maximum stream id.
MAX_STREAM_ID: Final = (1 << 31) - 1

NO_ERROR: Final = 0
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
ENHANCE_YOUR_CALM: Final = 11


class Call(ABC):
    """
    A request and its state.

    @ivar path: The method, as C{/package.Service/Method}.
    @ivar require_leader: Whether a member without a leader ends it.
    @ivar streaming: Whether responses arrive until it is cancelled.
    @ivar stream: Its number on its connection; 0 before it was sent.
    """

    __slots__ = (
        *("_limit", "_message", "_unsent", "_window"),
        *("response_started", "credit", "streaming", "require_leader", "path", "reader", "stream"),
    )

    def __init__(
        self, path: bytes, message: bytes, limit: int, *, streaming: bool = False, require_leader: bool = False
    ) -> None:
        """
        @param limit: Maximum size in bytes of one response.
        """
        self.path = path
        self.streaming = streaming
        self.require_leader = require_leader
        self._message = message
        self._limit = limit
        self.reset_for_retry()

    def reset_for_retry(self) -> None:
        """Reset the state of the call, so that its request can be sent again."""
        self.stream = 0
        #: The rest of the request that was not sent yet, and the window of its stream.
        self._unsent = memoryview(prefixed(self._message))
        self._window = 0
        self.reader = MessageReader(self._limit)
        #: The bytes received since the last window update.
        self.credit = 0
        #: Whether the response has begun.
        self.response_started = False

    @abstractmethod
    def received(self, message: bytes) -> None:
        """Handle a response."""

    @abstractmethod
    def ended(self) -> None:
        """Handle the successful end."""

    @abstractmethod
    def failed(self, error: Exception) -> None:
        """Handle a failure; the class of the error shows whether the request may have been processed."""


class Session:
    """
    An HTTP/2 connection.

    @ivar ready: Whether the peer has sent its settings; calls can be begun from then on.
    @ivar usable: Whether calls can still be begun, now or later.
    @ivar calls: The calls under way, by stream.
    @ivar too_many_pings: Whether the peer complained of too many pings.
    """

    def __init__(
        self, authority: str, scheme: str, refused: Callable[[Call], object], ping: Callable[[], object]
    ) -> None:
        """
        @param refused: Called with calls that the peer has certainly not processed.
        @param ping: Called when the peer sends a ping: L{acknowledge} must be called some time later.
        """
        self.ready = False
        self.usable = True
        self.calls: dict[int, Call] = {}
        self.too_many_pings = False
        self._refused = refused
        self._pinged = ping
        self._frames = FrameReader()
        self._head_writer = HeadWriter(authority, scheme)
        #: The output that was not fetched yet.
        self._output: list[bytes | memoryview] = []
        #: The bytes of the output that answer unsolicited frames of the peer.
        self._pending_ack_bytes = 0
        #: The pings to answer.
        self._pings: list[bytes] = []
        self._next_stream_id = 1
        self._last_stream_id = MAX_STREAM_ID
        # The send windows: the window of the connection, and the initial window of each new stream.
        self._window = INITIAL_WINDOW
        self._initial_window = INITIAL_WINDOW
        self._max_frame_size = MAX_FRAME_SIZE
        self._max_concurrent_streams = MAX_CONCURRENT_STREAMS
        #: The calls whose requests wait for a larger window.
        self._blocked: deque[Call] = deque()
        #: The bytes received since the last window update.
        self._credit = 0

    @property
    def pending(self) -> bool:
        """Return whether there is output."""
        return bool(self._output)

    @property
    def has_capacity(self) -> bool:
        """Return whether another call can be begun now."""
        return self.ready and self.usable and len(self.calls) < self._max_concurrent_streams

    def connection_preface(self) -> bytes:
        """Return the first bytes of the connection."""
        settings = {
            SettingsFrame.HEADER_TABLE_SIZE: 0,
            SettingsFrame.ENABLE_PUSH: 0,
            SettingsFrame.INITIAL_WINDOW_SIZE: STREAM_WINDOW,
            SettingsFrame.MAX_FRAME_SIZE: MAX_FRAME_SIZE,
            SettingsFrame.MAX_HEADER_LIST_SIZE: MAX_HEADER_SIZE,
        }
        window = WindowUpdateFrame(0, CONNECTION_WINDOW - INITIAL_WINDOW)
        return PREFACE + SettingsFrame(0, settings).serialize() + window.serialize()

    def data_to_send(self) -> bytes:
        """Return the bytes to write now, and clear the buffer."""
        if not self._output:
            return b""
        out, self._output = self._output, []
        self._pending_ack_bytes = 0
        return b"".join(out)

    # --- calls

    def begin(self, call: Call) -> None:
        """Send a request; requires L{has_capacity}."""
        stream = call.stream = self._next_stream_id
        self._next_stream_id = stream + 2
        if self._next_stream_id > MAX_STREAM_ID:
            self.usable = False
        self.calls[stream] = call
        block = self._head_writer.block(call.path, require_leader=call.require_leader)
        head = frame_header(len(block), HEADERS, END_HEADERS, stream)
        body = call._unsent
        size = len(body)
        if size > self._window or size > self._initial_window or size > self._max_frame_size or self._blocked:
            call._window = self._initial_window
            self._output += (head, block)
            self._blocked.append(call)
            self._send_blocked()
            return
        self._window -= size
        call._unsent = memoryview(b"")
        self._output += (head, block, frame_header(size, DATA, 0 if call.streaming else END_STREAM, stream), body)

    def cancel(self, call: Call) -> None:
        """Cancel a call without a callback."""
        if self.calls.pop(call.stream, None) is not None:
            call._unsent = memoryview(b"")
            self._output.append(RstStreamFrame(call.stream, CANCEL).serialize())

    def lost(self, error: Exception) -> None:
        """Fail all calls after the connection is closed."""
        self.usable = False
        calls, self.calls = self.calls, {}
        for call in calls.values():
            call.failed(error)

    def _send_blocked(self) -> None:
        """Send as much of the blocked requests as the windows allow."""
        blocked = self._blocked
        while blocked and self._window > 0:
            call = blocked[0]
            unsent = call._unsent
            size = min(len(unsent), call._window, self._window, self._max_frame_size)
            if size <= 0:
                # The stream has ended, or waits for its window: continue with the other streams.
                blocked.popleft()
                continue
            last = size == len(unsent)
            self._window -= size
            call._window -= size
            call._unsent = unsent[size:]
            flags = END_STREAM if last and not call.streaming else 0
            self._output += (frame_header(size, DATA, flags, call.stream), unsent[:size])
            if last:
                blocked.popleft()

    def _unblock(self, call: Call) -> None:
        if call._unsent and call._window > 0 and call not in self._blocked:
            self._blocked.append(call)

    # --- pings

    def ping(self) -> None:
        """Send a ping."""
        self._output.append(PingFrame(0, b"kubetwis").serialize())

    def acknowledge(self) -> None:
        """Answer all pings."""
        self._output += self._pings
        self._pings.clear()

    # --- received frames

    def feed(self, data: bytes) -> None:
        """
        Process received bytes.

        @raise ProtocolError: They violate the protocol; the connection must be closed.
        """
        for kind, flags, stream, content, size in self._frames.feed(data):
            if kind == DATA:
                self._data(stream, flags, content, size)
            elif kind == HEADERS:
                self._headers(stream, flags, content)
            else:
                self._control(parse_frame(kind, flags, stream, content), kind, flags, stream)

    def _find_call(self, stream: int) -> Call | None:
        """Return the call of a stream; L{None} if it is over, which the peer may not know yet."""
        call = self.calls.get(stream)
        if call is None and (not stream & 1 or stream >= self._next_stream_id):
            raise ProtocolError(f"etcd sent a frame of stream {stream}, which was not opened")
        return call

    def _data(self, stream: int, flags: int, content: bytes, size: int) -> None:
        self._credit += size
        if self._credit >= CONNECTION_WINDOW // 2:
            self._output.append(WindowUpdateFrame(0, self._credit).serialize())
            self._credit = 0
        call = self._find_call(stream)
        if call is None:
            return
        if not call.response_started:
            raise ProtocolError("etcd sent a response without headers")
        call.credit += size
        for message in call.reader.feed(content):
            try:
                call.received(message)
            except Exception as error:
                # An error of one stream does not affect the connection.
                self.cancel(call)
                call.failed(
                    error
                    if isinstance(error, ProtocolError)
                    else NoResponse(f"the client failed to handle the response: {error!r}")
                )
            if stream not in self.calls:
                return
        if flags & END_STREAM:
            raise ProtocolError("etcd sent a response without trailers")
        if call.credit >= STREAM_WINDOW // 2:
            self._output.append(WindowUpdateFrame(stream, call.credit).serialize())
            call.credit = 0

    def _headers(self, stream: int, flags: int, block: bytes) -> None:
        head = read_head(block)
        call = self._find_call(stream)
        if call is None:
            return
        ends = flags & END_STREAM
        if call.response_started:
            if not ends or head.status:
                raise ProtocolError("etcd sent headers within a response")
        else:
            if not head.status or (head.status < 200 and ends):
                raise ProtocolError("etcd sent a response without a status")
            if head.status < 200:
                return
            if head.status != 200 or not head.grpc:
                self._fail_non_grpc_response(call, head.status, bool(ends))
                return
            call.response_started = True
            if not ends:
                return
        if not call.reader.idle or head.code is None:
            raise ProtocolError("etcd sent an incomplete response")
        self._end_stream(call)
        if head.code:
            call.failed(RPCError(head.code, head.message or f"etcd responded with code {head.code}"))
        else:
            call.ended()

    def _fail_non_grpc_response(self, call: Call, status: int, ended: bool) -> None:
        """Fail a call whose response is not gRPC, for example of a proxy."""
        if ended:
            self._end_stream(call)
        else:
            self.cancel(call)
        call.failed(RPCError(http_code(status), f"etcd responded with status {status}"))

    def _end_stream(self, call: Call) -> None:
        """Handle the reset of a stream by the peer."""
        del self.calls[call.stream]
        if call._unsent or call.streaming:
            call._unsent = memoryview(b"")
            self._output.append(RstStreamFrame(call.stream, NO_ERROR).serialize())

    def _control(self, frame: Frame, kind: int, flags: int, stream: int) -> None:
        if not self.ready and (kind != SETTINGS or flags & ACK):
            raise ProtocolError("the first frame of etcd is not SETTINGS")
        if isinstance(frame, SettingsFrame):
            if not flags & ACK:
                self._count_pending_ack()
                # The new settings apply from here on.
                self._output.append(SettingsFrame(0, flags=["ACK"]).serialize())
                self._apply_settings(frame.settings)
        elif isinstance(frame, WindowUpdateFrame):
            self._window_updated(stream, frame.window_increment)
        elif isinstance(frame, PingFrame):
            if not flags & ACK:
                self._count_pending_ack()
                self._pings.append(PingFrame(0, frame.opaque_data, flags=["ACK"]).serialize())
                if len(self._pings) > 1:
                    self.acknowledge()
                else:
                    self._pinged()
        elif isinstance(frame, RstStreamFrame):
            self._reset(stream, frame.error_code)
        elif isinstance(frame, GoAwayFrame):
            self._go_away(frame)
        elif kind == PUSH_PROMISE:
            raise ProtocolError("etcd sent PUSH_PROMISE, which is disabled")
        # Priorities and frames of extensions are ignored.

    def _count_pending_ack(self) -> None:
        self._pending_ack_bytes += 1
        if self._pending_ack_bytes > MAX_PENDING_ACKS:
            raise ProtocolError("etcd sends pings or settings without reading the acknowledgements")

    def _apply_settings(self, settings: dict[int, int]) -> None:
        self.ready = True
        for name, value in settings.items():
            if name == SettingsFrame.HEADER_TABLE_SIZE:
                self._head_writer.limit_table(value)
            elif name == SettingsFrame.MAX_CONCURRENT_STREAMS:
                self._max_concurrent_streams = min(value, MAX_CONCURRENT_STREAMS)
            elif name == SettingsFrame.MAX_FRAME_SIZE:
                if not MAX_FRAME_SIZE <= value < 1 << 24:
                    raise ProtocolError(f"etcd wants frames of {value} bytes")
                self._max_frame_size = value
            elif name == SettingsFrame.INITIAL_WINDOW_SIZE:
                if value > MAX_WINDOW_SIZE:
                    raise ProtocolError(f"etcd has a window of {value} bytes")
                more, self._initial_window = value - self._initial_window, value
                for call in self.calls.values():
                    call._window += more
                    if call._window > MAX_WINDOW_SIZE:
                        raise ProtocolError("etcd has a window that is too large")
                    self._unblock(call)
        self._send_blocked()

    def _window_updated(self, stream: int, more: int) -> None:
        if not stream:
            self._window += more
            if self._window > MAX_WINDOW_SIZE:
                raise ProtocolError("etcd has a window that is too large")
        else:
            call = self._find_call(stream)
            if call is None:
                return
            call._window += more
            if call._window > MAX_WINDOW_SIZE:
                raise ProtocolError("etcd has a window that is too large")
            self._unblock(call)
        self._send_blocked()

    def _reset(self, stream: int, code: int) -> None:
        call = self._find_call(stream)
        if call is None:
            return
        del self.calls[stream]
        call._unsent = memoryview(b"")
        if code == REFUSED_STREAM:
            self._refused(call)
        else:
            call.failed(NoResponse(f"etcd reset the stream with HTTP/2 error code {code}"))

    def _go_away(self, frame: GoAwayFrame) -> None:
        """Handle C{GOAWAY}: begin no more calls; those after the last stream were not processed."""
        last = frame.last_stream_id
        if last > self._last_stream_id:
            raise ProtocolError("the last stream id of GOAWAY has increased")
        self._last_stream_id = last
        self.usable = False
        if frame.error_code == ENHANCE_YOUR_CALM:
            self.too_many_pings = True
        reason = frame.additional_data[:100].decode("utf-8", "replace") or f"code {frame.error_code} of HTTP/2"
        for stream, call in list(self.calls.items()):
            if stream > last:
                del self.calls[stream]
                call._unsent = memoryview(b"")
                self._refused(call)
            elif call.streaming:
                # A stream without an end is restarted on another connection.
                self.cancel(call)
                call.failed(NoResponse(f"the member closes the connection: {reason}"))
