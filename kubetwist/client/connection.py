"""One HTTP/1.1 connection to another server: one exchange after the other, with flow control in both directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from typing import Protocol as TypingProtocol

from attrs import frozen

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import (
    IConsumer,
    IDelayedCall,
    IHandshakeListener,
    IProducer,
    IProtocol,
    IReactorTime,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.http import _ChunkedTransferDecoder, _MalformedChunkedDataError
from zope.interface import implementer

from ..http.connection.flow import (
    BodyStream,
    RawTransport,
    Source,
    StreamTransport,
    TLSCloseAwareProducer,
    enable_tcp_keepalive,
)
from .dialing import (
    connection_addresses,
    connection_lost_error,
)
from .errors import Unreachable
from .responsehead import (
    MAX_HEAD,
    Fields,
    Head,
    InvalidHead,
    body_length,
    parse_head,
)

#: Seconds for a TLS handshake.
HANDSHAKE_TIMEOUT: Final = 10.0
#: Maximum number of interim (1xx) responses that are skipped, as in Go.
MAX_INTERIM: Final = 5
#: Maximum overhead of a chunked body in bytes: sizes and extensions of chunks, and trailers. It does not include 16
#: bytes for each chunk and twice the data.
#: @see: Go, C{net/http/internal/chunked.go}, which permits 16 KiB without the trailers.
MAX_CHUNK_OVERHEAD: Final = 128 * 1024
#: Seconds to flush data of an upgraded protocol before its connection is closed.
GRACEFUL_CLOSE_TIMEOUT: Final = 20.0

# The states of the parser.
_NOTHING, _HEAD, _BODY, _SWITCHED = range(4)

_WITH_BODY: Final = (b"POST", b"PUT", b"PATCH")
_BROKEN: Final = "net/http: HTTP/1.x transport connection broken: "


class StaleConnection(Unreachable):
    """A kept-alive connection was closed before any of the response arrived."""


class UnprocessedRequest(StaleConnection):
    """The server has not processed the request, which another connection may repeat."""


@frozen
class Upload:
    """
    A request body that is sent while it arrives.

    @ivar length: Its length in bytes; L{None} if it is unknown.
    @ivar deliver: Writes the body to a consumer.
    """

    length: int | None
    deliver: Callable[[IConsumer], Deferred[None]]


class Exchange(Source, TypingProtocol):
    """The source of a response: a connection of HTTP/1.1, or a stream of HTTP/2."""

    def abort(self) -> None:
        """End the exchange at once."""

    def switch_protocol(self, protocol: IProtocol, early: Sequence[bytes]) -> None:
        """Hand the connection to C{protocol}."""


class StreamingResponse(BodyStream):
    """
    A response whose head has arrived. The caller must take its body (L{deliver}, L{collect}), or the connection
    (L{hijack}), or discard both (L{abort}).

    @ivar minor: The minor version of HTTP: 0 or 1; 1 for HTTP/2, too.
    @ivar phrase: The reason phrase; C{b""} without one.
    @ivar fields: With names in lower case, in their order.
    @ivar switched: Whether the connection changed its protocol.
    @ivar length: The length of the body; C{-1} for one that announces its end, L{None} for one that ends with the
        connection.
    """

    def __init__(self, exchange: Exchange, head: Head, length: int | None) -> None:
        super().__init__(exchange)
        self._exchange = exchange
        self.minor, self.code, self.phrase = head.minor, head.code, head.phrase
        self.fields: Fields = head.fields
        self.length = length
        self.switched = head.code == 101

    def field(self, name: bytes) -> bytes | None:
        """Return the first value of a header field."""
        for one, value in self.fields:
            if one == name:
                return value
        return None

    def stopProducing(self) -> None:
        """Discard the body."""
        super().stopProducing()
        self.abort()

    def abort(self) -> None:
        """End the exchange, unless the whole response has arrived."""
        if not self.finished or self.switched:
            self._exchange.abort()

    async def collect(self, limit: int) -> bytes:
        """
        Return the whole body.

        @param limit: Maximum size of the body in bytes.
        @raise Unreachable: It is longer, or incomplete.
        """
        collected = _Collected(limit)
        try:
            await self.deliver(collected)
        except Unreachable:
            raise
        except Exception:
            # The consumer has stopped.
            raise Unreachable(f"the answer is longer than {limit} bytes") from None
        if collected.size > limit:
            raise Unreachable(f"the answer is longer than {limit} bytes")
        return b"".join(collected.pieces)

    def hijack(self, protocol: IProtocol) -> None:
        """Hand the connection, and the data received so far, to C{protocol}."""
        self.consumed = True
        self._exchange.switch_protocol(protocol, self._waiting)


@implementer(IConsumer)
class _Collected:
    """Consumer that buffers data up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._producer: IProducer | None = None
        self.size = 0
        self.pieces: list[bytes] = []

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        self._producer = producer

    def unregisterProducer(self) -> None:
        self._producer = None

    def write(self, data: bytes) -> None:
        self.size += len(data)
        if self.size <= self._limit:
            self.pieces.append(data)
        elif self._producer is not None:
            self._producer.stopProducing()


@implementer(IConsumer)
class _Uploading:
    """Consumer that sends data as a request body."""

    def __init__(self, transport: StreamTransport, length: int | None) -> None:
        self._transport = transport
        self._chunked = length is None
        self.remaining = length or 0

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        self._transport.registerProducer(TLSCloseAwareProducer(producer, self._transport), streaming)  # type: ignore[arg-type] # an IPushProducer

    def unregisterProducer(self) -> None:
        self._transport.unregisterProducer()

    def write(self, data: bytes) -> None:
        if not data:
            return
        if self._chunked:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))
        else:
            # Data beyond the length would be read as another request.
            self._transport.write(data[: max(self.remaining, 0)])
            self.remaining -= len(data)

    def finish(self) -> bool:
        """Return whether the written data has the announced length."""
        if self._chunked:
            self._transport.write(b"0\r\n\r\n")
        return self.remaining == 0


class PooledConnection(TypingProtocol):
    """
    A connection of HTTP/1.1 or HTTP/2.

    @ivar address: The host and port of the connection.
    @ivar idle_since: The end of its last exchange.
    """

    address: tuple[str, int]
    idle_since: float

    def round_trip(
        self,
        method: bytes,
        target: bytes,
        fields: Sequence[tuple[bytes, bytes]],
        body: bytes | Upload | None,
        timeout: float | None,
        upgrade: bool,
    ) -> Deferred[StreamingResponse]:
        """Send a request: L{BackendConnection.round_trip}."""

    def abort(self) -> None:
        """Close the connection at once."""


class ConnectionPool(TypingProtocol):
    """The owner of connections, which is notified of their changes: L{kubetwist.client.streaming.StreamingClient}."""

    def made(self, connection: PooledConnection) -> None:
        """Add a connection that was opened."""

    def released(self, connection: PooledConnection) -> None:
        """Keep a connection whose exchanges have ended, for the next request."""

    def lost(self, connection: PooledConnection) -> None:
        """Remove a closed connection."""


@implementer(IHandshakeListener)
class BackendConnection(Protocol):
    """
    One connection, of HTTP/1.1 unless the handshake has chosen another protocol.

    @ivar address: The host and port of the connection.
    @ivar handshake_done: Fires when the handshake is complete; L{None} without TLS.
    @ivar idle_since: The end of its last exchange.
    """

    transport: Any
    idle_since = 0.0

    def __init__(self, client: ConnectionPool, reactor: IReactorTime, address: tuple[str, int], secure: bool) -> None:
        self.address = address
        self.handshake_done: Deferred[None] | None = Deferred(lambda _: self.abort()) if secure else None
        self._client = client
        self._reactor = reactor
        self._state = _NOTHING
        self._buffer = b""
        self._addresses = ""
        self._response_waiter: Deferred[StreamingResponse] | None = None
        self._response: StreamingResponse | None = None
        self._decoder: _ChunkedTransferDecoder | None = None
        self._chunk_overhead = 0
        self._remaining: int | None = 0
        self._method = b""
        self._upgrade = False
        self._interim = 0
        self._used = False
        self._keep_alive = True
        self._sent = True
        self._sending: Deferred[None] | None = None
        self._timer: IDelayedCall | None = None
        self._switched: IProtocol | None = None
        self._paused = False
        self._lost = False
        self._error: Unreachable | None = None

    # The connection.

    def connectionMade(self) -> None:
        """Handle the established TCP connection, before the handshake."""
        self._addresses = connection_addresses(self.transport)
        enable_tcp_keepalive(self.transport)
        self._client.made(self)

    def handshakeCompleted(self) -> None:
        """@see: L{IHandshakeListener}."""
        if self.handshake_done is not None and not self.handshake_done.called:
            self.handshake_done.callback(None)

    def abort(self) -> None:
        """Close the connection at once."""
        self._keep_alive = False
        if not self._lost and self.transport is not None:
            self.transport.abortConnection()

    def close_gracefully(self) -> None:
        """Close the connection when all written data is sent, or after a timeout."""
        if not self._lost:
            self._set_timer(GRACEFUL_CLOSE_TIMEOUT, self.abort)
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Handle the loss of the connection."""
        self._lost = True
        self._stop_timer()
        self._client.lost(self)
        self._stop_sending()
        error = self._error or connection_lost_error(reason.value, self._addresses)
        if self.handshake_done is not None and not self.handshake_done.called:
            self.handshake_done.errback(error or Unreachable("EOF"))
        switched, self._switched = self._switched, None
        if switched is not None:
            switched.connectionLost(reason)
            return
        response_waiter, self._response_waiter = self._response_waiter, None
        if response_waiter is not None and not response_waiter.called:
            if self._used and not (self._buffer or self._interim or self._error):
                retriable = error is not None and error.retriable
                response_waiter.errback(StaleConnection(str(error or "EOF"), retriable=retriable))
            else:
                response_waiter.errback(error or Unreachable("EOF"))
        response, self._response = self._response, None
        if response is None:
            return
        to_the_end = self._state == _BODY and self._remaining is None
        if to_the_end and error is None and reason.check(ConnectionDone):
            response.finish()
        else:
            response.lost(Failure(error or Unreachable("unexpected EOF")))

    def _fail(self, error: str) -> None:
        """Fail the connection after data that is not valid HTTP."""
        self._error = Unreachable(error)
        self.abort()
        response_waiter, self._response_waiter = self._response_waiter, None
        if response_waiter is not None and not response_waiter.called:
            response_waiter.errback(self._error)
        response, self._response = self._response, None
        if response is not None:
            response.lost(Failure(self._error))

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
        Send a request; the previous one must be complete.

        @param method: The HTTP method.
        @param target: Path and query, escaped.
        @param fields: The header fields, without the ones that frame the body.
        @param body: The body; L{None} for none.
        @param timeout: Seconds until the head of the response; L{None} for no limit.
        @param upgrade: Whether the server may switch protocols.
        @return: Fires with the response when its head arrives; cancelling it ends the connection.
        """
        head = [b"%b %b HTTP/1.1" % (method, target)]
        head += [b"%b: %b" % field for field in fields]
        length = body.length if isinstance(body, Upload) else len(body or b"")
        if length is None:
            head.append(b"transfer-encoding: chunked")
        elif length or method in _WITH_BODY:
            head.append(b"content-length: %d" % length)
        head += (b"", b"")
        data = b"\r\n".join(head)
        response_waiter = self._response_waiter = Deferred(self._cancelled)
        self._state = _HEAD
        self._method, self._upgrade, self._interim = method, upgrade, 0
        if self._lost:
            self._response_waiter = None
            response_waiter.errback(StaleConnection("EOF") if self._used else Unreachable("EOF"))
            return response_waiter
        breaks = len(head) - 1
        if data.count(b"\n") != breaks or data.count(b"\r") != breaks or b"\0" in data:
            self._fail("net/http: invalid header field value")
            return response_waiter
        if timeout is not None:
            self._set_timer(timeout, self._fail, "net/http: timeout awaiting response headers")
        if isinstance(body, Upload):
            self.transport.write(data)
            self._send(body)
        else:
            self._sent = True
            self.transport.write(data + body if body else data)
        return response_waiter

    def _cancelled(self, response_waiter: Deferred[StreamingResponse]) -> None:
        self._response_waiter = None
        self.abort()
        response_waiter.errback(CancelledError())

    def _send(self, body: Upload) -> None:
        self._sent = False
        uploading = _Uploading(self.transport, body.length)
        sending = self._sending = body.deliver(uploading)

        def sent(_: None) -> None:
            self._sending = None
            if not uploading.finish():
                self._fail("http: ContentLength does not match the length of the body")
                return
            self._sent = True

        def failed(_: Failure) -> None:
            # The sender of the body has disconnected, or this side has ended the request.
            self._sending = None
            self.abort()

        sending.addCallbacks(sent, failed)

    def _stop_sending(self) -> None:
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.cancel()

    # Responses.

    def dataReceived(self, data: bytes) -> None:
        """Handle received data."""
        state = self._state
        if state == _BODY:
            try:
                self._body_received(data)
            except _MalformedChunkedDataError:
                self._fail("malformed chunked encoding")
        elif state == _HEAD:
            self._buffer = self._buffer + data if self._buffer else data
            self._head_received()
        elif state == _SWITCHED:
            if self._switched is not None:
                self._switched.dataReceived(data)
            elif self._response is not None:
                self._response.received(data)
        else:
            # Data without a request.
            self.abort()

    def _head_received(self) -> None:
        while self._state == _HEAD and self._response_waiter is not None:
            buffer = self._buffer
            end = buffer.find(b"\r\n\r\n", 0, MAX_HEAD)
            if end < 0:
                if len(buffer) >= MAX_HEAD:
                    self._fail(f"net/http: server response headers exceeded {MAX_HEAD} bytes; aborted")
                elif buffer[: len(b"HTTP/1.")] != b"HTTP/1."[: len(buffer)]:
                    self._fail(f"{_BROKEN}malformed HTTP response")
                return
            try:
                head = parse_head(buffer[:end])
                length = body_length(head, self._method)
            except InvalidHead as error:
                self._fail(f"{_BROKEN}{error}")
                return
            self._buffer = buffer[end + 4 :]
            if 100 <= head.code < 200 and head.code != 101:
                self._interim += 1
                if self._interim > MAX_INTERIM:
                    self._fail(f"{_BROKEN}too many 1xx informational responses")
                continue
            if head.code == 101 and not self._upgrade:
                self._fail(f"{_BROKEN}the protocol was switched without being asked")
                return
            self._begin_response(head, length)

    def _begin_response(self, head: Head, length: int | None) -> None:
        response_waiter, self._response_waiter = self._response_waiter, None
        assert response_waiter is not None, "a response is expected"
        rest, self._buffer = self._buffer, b""
        self._stop_timer()
        response = self._response = StreamingResponse(self, head, length)
        # Data after the response to an upgrade does not belong to any call.
        self._keep_alive = head.keep_alive and length is not None and not self._upgrade
        self._remaining = length
        if response.switched:
            self._state = _SWITCHED
            if rest:
                response.received(rest)
        else:
            self._state = _BODY
            if length == -1:
                self._decoder = _ChunkedTransferDecoder(self._chunk_received, self._finished)
                self._chunk_overhead = 0
            try:
                if rest or length == 0:
                    self._body_received(rest)
            except _MalformedChunkedDataError:
                self._fail("malformed chunked encoding")
        if not (response.finished or self._lost):
            self.pause_reading()
        response_waiter.callback(response)

    def _body_received(self, data: bytes) -> None:
        if self._decoder is not None:
            self._chunk_overhead += len(data)
            self._decoder.dataReceived(data)
            self._chunk_overhead = max(self._chunk_overhead, 0)
            if self._decoder is not None and self._chunk_overhead > MAX_CHUNK_OVERHEAD:
                self._fail("http: chunked encoding contains too much non-data")
            return
        response, remaining = self._response, self._remaining
        if response is None:
            return
        if remaining is None:
            response.received(data)
            return
        self._remaining = max(remaining - len(data), 0)
        if data and remaining:
            response.received(data if len(data) <= remaining else data[:remaining])
        if len(data) >= remaining and self._response is response:
            self._finished(data[remaining:])

    def _chunk_received(self, data: bytes) -> None:
        self._chunk_overhead -= 16 + 3 * len(data)
        if self._response is not None:
            self._response.received(data)

    def _finished(self, rest: bytes) -> None:
        response, self._response = self._response, None
        self._decoder = None
        if response is None:
            return
        self._state = _NOTHING
        if rest or not self._sent:
            # Data beyond the response; or the server rejects the rest of the request's body.
            self._keep_alive = False
        self._end_exchange()
        response.finish()

    def _end_exchange(self) -> None:
        """Handle the end of an exchange."""
        if self._keep_alive and not self._lost:
            self._used = True
            self.resume_reading()
            self._client.released(self)
        else:
            self._stop_sending()
            self.abort()

    # Callbacks of its response.

    def resume_reading(self) -> None:
        """@see: L{kubetwist.http.connection.flow.Source}."""
        if self._paused and not self._lost:
            self._paused = False
            self.transport.resumeProducing()

    def pause_reading(self) -> None:
        """@see: L{kubetwist.http.connection.flow.Source}."""
        if not (self._paused or self._lost):
            self._paused = True
            self.transport.pauseProducing()

    def switch_protocol(self, protocol: IProtocol, early: Sequence[bytes]) -> None:
        """Hand the connection to C{protocol}."""
        self._response = None
        if self._lost:
            protocol.makeConnection(RawTransport(self))
            protocol.connectionLost(Failure(self._error or ConnectionDone()))
            return
        self._switched = protocol
        self.resume_reading()
        protocol.makeConnection(RawTransport(self))
        for piece in early:
            protocol.dataReceived(piece)

    # Timeouts.

    def _set_timer(self, seconds: float, call: Callable[..., object], *arguments: object) -> None:
        self._stop_timer()
        self._timer = self._reactor.callLater(seconds, call, *arguments)

    def _stop_timer(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
