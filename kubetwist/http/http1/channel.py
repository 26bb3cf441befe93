"""
HTTP/1.1 connections: their lifecycle, the order of requests, deadlines, and switching to other protocols.

Twisted's own channel parses a head line by line and sets a timer for every request. Here a head is parsed in one go
(L{kubetwist.http.http1.requesthead}), and one clock of the site checks the deadlines of all connections.
L{kubetwist.http.http1.requestbody} reads bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

from OpenSSL import SSL
from OpenSSL.crypto import X509

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IHandshakeListener, IProducer, IProtocol, IPushProducer
from twisted.python.failure import Failure
from twisted.web.http import NO_BODY_CODES, _MalformedChunkedDataError
from zope.interface import implementer

from ...interfaces import IClientConnection
from ..connection.coalescingtls import peer_certificates
from ..connection.flow import RawTransport, bound_unsent, enable_tcp_keepalive, is_tls_closing
from ..headsyntax import MAX_HEAD, Malformed, expects_continue
from ..request import KubeRequest
from ..sharedpieces import ChunkWriter, SharedWriter
from .requestbody import ANSWER, BODY, DISCARD, HEAD, STREAM, SWITCHED, BodyReader, ChannelSite
from .requesthead import MAX_LINE, HeadParser, body_length, refusal
from .responsehead import complete_head, encode_head, switching_head

#: Bytes that a client may send ahead while its request is answered; reading is paused at this limit.
MAX_PIPELINED_BYTES: Final = 64 * 1024

#: Seconds between requests; the reference's IdleTimeout.
IDLE_TIMEOUT: Final = 90.0
#: Seconds from the first byte of a head to its last; the reference's ReadHeaderTimeout.
HEAD_TIMEOUT: Final = 32.0
#: Seconds that the client of a closing connection has to read its response.
LINGER_TIMEOUT: Final = 5.0
#: The same for data that another protocol has written.
GRACEFUL_CLOSE_TIMEOUT: Final = 20.0


@implementer(IClientConnection, IHandshakeListener)
class KubeChannel(BodyReader):
    """
    One connection, which serves its requests one after the other.

    It is the L{RequestTransport<kubetwist.http.transport.RequestTransport>} of the request that is open.

    @ivar remembered: What filters store for all requests of this connection, such as the owner of its certificate.
    """

    timeOut = None
    factory: Any

    def __init__(self, site: ChannelSite) -> None:
        super().__init__(site)
        self.callLater = site.reactor.callLater  # type: ignore[assignment]
        self.remembered: dict[object, Any] = {}
        self._heads = HeadParser()
        self._parsing = False
        self._chunked = False
        self._write_unordered: Callable[[bytes], object] | None = None
        self._switched: IProtocol | None = None

    # Receiving data.

    def connectionMade(self) -> None:
        """Register the connection."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        enable_tcp_keepalive(self.transport)
        bound_unsent(self.transport)
        self._write_unordered = getattr(self.transport, "write_unordered", None)
        if not self.connections.connected(self):
            self._state = DISCARD
            self.transport.abortConnection()
            return
        self.deadline = self.connections.now() + HEAD_TIMEOUT

    def handshakeCompleted(self) -> None:
        """Continue with HTTP/2 if the TLS handshake has chosen it."""
        if self.transport.negotiatedProtocol == b"h2":
            self.site.continue_with_http2(self)

    def release_transport(self) -> None:
        """Leave the transport to another protocol before the first request."""
        self.transport.unregisterProducer()
        self.connections.disconnected(self)
        self.transport = None

    def dataReceived(self, data: bytes) -> None:
        """Handle received data."""
        state = self._state
        if state == HEAD:
            if not self._buffer:
                self._buffer = data
                self.deadline = self.connections.now() + HEAD_TIMEOUT
            else:
                self._buffer += data
            self._parse()
        elif state == BODY:
            self._guarded(self._body_received, data)
            if self._state == HEAD:
                self._parse()
        elif state == STREAM:
            self._guarded(self._stream_received, data)
        elif state == SWITCHED:
            assert self._switched is not None, "the connection has another protocol"
            self._switched.dataReceived(data)
        elif state == ANSWER:
            self._buffer += data
            if len(self._buffer) > MAX_PIPELINED_BYTES:
                self.pause_reading()
        else:
            self._discard(len(data))

    def _parse(self) -> None:
        """Serve the next request, if it has arrived completely; a following one alternates with other connections."""
        if self._parsing:
            return
        self._parsing = True
        try:
            # A client that does not read its responses gets no further ones.
            if self._state == HEAD and self._buffer and not self._waitingForTransport:
                buffer = self._buffer
                end = buffer.find(b"\r\n\r\n")
                if end < 0:
                    self._check_unfinished(buffer)
                    return
                self._buffer = b""
                self._head_received(buffer[:end], buffer[end + 4 :])
        except Malformed as error:
            self.refuse(error.code, str(error))
        except _MalformedChunkedDataError:
            self.refuse(400)
        finally:
            self._parsing = False
        if self._buffer and self._state == HEAD and not self._waitingForTransport:
            self.connections.schedule_pipelined(self)

    def serve_next(self) -> None:
        """Serve the next complete request, when it is this connection's turn."""
        if self in self.connections.channels:
            self._parse()

    def _guarded(self, step: Callable[..., None], *arguments: object) -> None:
        try:
            step(*arguments)
        except Malformed as error:
            self.refuse(error.code, str(error))
        except _MalformedChunkedDataError:
            self.refuse(400)

    def _check_unfinished(self, head: bytes) -> None:
        if head.startswith(b"\r\n"):
            # Some clients end a body with an additional line break.
            self._buffer = head[2:]
        elif len(head) > MAX_LINE and b"\r\n" not in head:
            raise Malformed(414)
        elif len(head) > MAX_HEAD:
            raise Malformed(431)

    # Heads.

    def _head_received(self, head: bytes, rest: bytes) -> None:
        method, target, version, fields = self._heads.parse(head)
        length = body_length(fields)
        connection = fields.get(b"connection")
        close = version != b"HTTP/1.1" or (connection is not None and b"close" in connection[0].lower())
        self.persistent = 0 if close else 1
        request = self.site.requestFactory(self, method, target, version, fields)
        self.requests.append(request)
        expected = False
        if b"expect" in fields and fields[b"expect"][0]:
            expected = expects_continue(fields[b"expect"][0]) and version == b"HTTP/1.1"
        if length == 0:
            self._serve(request, b"", rest)
        else:
            self._read_body(request, length, rest, expected)

    # Other protocols.

    def switch_protocol(
        self, request: KubeRequest, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol
    ) -> RawTransport:
        """Send a response 101 with these header fields, and connect C{protocol} to the client."""
        self.transport.write(switching_head(fields, request.audit_id))
        early_data, self._buffer = self._buffer, b""
        self._state = SWITCHED
        self._switched = protocol
        self.deadline = None
        self.persistent = 0
        self.transport.unregisterProducer()
        self.resume_reading()
        transport = RawTransport(self)
        protocol.makeConnection(transport)
        if early_data:
            protocol.dataReceived(early_data)
        return transport

    def close_gracefully(self) -> None:
        """Close after another protocol has ended, when the client has read the written data, or after a timeout."""
        self.deadline = self.connections.now() + GRACEFUL_CLOSE_TIMEOUT
        self.transport.loseConnection()

    # Responses.

    def send_response(self, request: KubeRequest, body: bytes, content_type: bytes) -> None:
        """Send a whole response, with the status and the header fields of the request."""
        head = complete_head(request, len(body), content_type, not self.persistent)
        if request.method == b"HEAD" or request.code in NO_BODY_CODES:
            body = b""
        request.sentLength = len(body)
        self._write_response(request, head + body if body else head)

    def send_piece(self, request: KubeRequest, data: bytes) -> None:
        """Send a piece of the response, in chunks unless its length is known; the first one begins it."""
        bodiless = request.method == b"HEAD" or request.code in NO_BODY_CODES
        head = b""
        if not request.startedWriting:
            request.startedWriting = 1
            headers = request.responseHeaders
            if not headers.hasHeader(b"Content-Length") and not bodiless:
                if request.clientproto == b"HTTP/1.1":
                    headers.setRawHeaders(b"Transfer-Encoding", [b"chunked"])
                    self._chunked = True
                else:
                    self.persistent = 0
            head = encode_head(request.code, request.complete_fields(), request.apf_headers.lines, not self.persistent)
        if bodiless:
            data = b""
        if data:
            request.sentLength += len(data)
            if self._chunked:
                data = b"%x\r\n%b\r\n" % (len(data), data)
        if head or data:
            self._write_response(request, head + data)

    def send_parts(self, request: KubeRequest, parts: Sequence[bytes | memoryview], size: int) -> None:
        """Send a piece of the response as L{send_piece} does: C{size} bytes in parts."""
        self.send_piece(request, b"".join(parts))

    def shared_writer(self, request: KubeRequest) -> SharedWriter:
        """
        Return what sends pieces of the response as L{send_piece} does, which other requests send, too.

        @param request: A request whose response has begun.
        """
        return ChunkWriter(self.transport.write) if self._chunked else SharedWriter(request.write)

    def end_response(self, request: KubeRequest) -> None:
        """Complete a response that L{send_piece} has begun."""
        if self._chunked:
            self._chunked = False
            self._write_response(request, b"0\r\n\r\n")

    def _write_response(self, request: KubeRequest, data: bytes) -> None:
        if request.method == b"GET" and self._write_unordered is not None:
            # Watch events need not precede what a client reads.
            self._write_unordered(data)
        else:
            self.transport.write(data)

    def prioritize(self, urgent: bool) -> None:
        """Enable or disable sending written data before the responses of other connections."""
        self.transport.urgent = urgent

    def peer_certificates(self) -> list[X509]:
        """Return the certificate that the client has presented, and its chain; nothing without TLS."""
        return peer_certificates(self.transport)

    def requestDone(self, request: KubeRequest) -> None:
        """Continue with the next request, or close the connection: the request is answered."""
        del self.requests[0]
        if self._state == STREAM:
            self._stop_streaming()
        elif self._state == BODY:
            self._stop_collecting()
        elif self._reserved:
            self._release()
        if not self.persistent:
            if self._state == DISCARD and (self._remaining is None or self._remaining > 0):
                # The client still sends; closed now, the connection would be reset before it has read the response.
                self.deadline = self.connections.now() + LINGER_TIMEOUT
            else:
                self.loseConnection()  # type: ignore[no-untyped-call]
            return
        self._handlingRequest = False
        self._state = HEAD
        if not self._waitingForTransport:
            self.resume_reading()
        self.deadline = self.connections.now() + (HEAD_TIMEOUT if self._buffer else IDLE_TIMEOUT)
        if self._buffer and not self._parsing:
            self._parse()

    def truncate_response(self, request: KubeRequest) -> None:
        """
        End an incomplete response such that its client notices.

        Written data are sent before, unless the end of the connection would complete the response.
        """
        if self._chunked or request.responseHeaders.hasHeader(b"Content-Length"):
            self.truncate_and_close()
        else:
            self.abort()

    def truncate_and_close(self) -> None:
        """Close the connection in the middle of a response, when the written data are sent."""
        if self._state == STREAM:
            self._stop_streaming()
        elif self._state == BODY:
            self._stop_collecting()
        self._state = DISCARD
        self._remaining = None
        self.persistent = 0
        self.deadline = self.connections.now() + LINGER_TIMEOUT
        self.resume_reading()
        self.loseConnection()  # type: ignore[no-untyped-call]

    def refuse(self, code: int, message: str = "") -> None:
        """Answer a malformed request in plain text, as the reference does, and close the connection."""
        if self.requests and self.requests[0].startedWriting:
            # The malformed data may be the end of a body whose request is being answered.
            self.abort()
            return
        self.transport.write(refusal(code, message))
        self._drop_body()
        self._buffer = b""
        self._state = DISCARD
        self._remaining = None
        self._discarded = 0
        self.persistent = 0
        pending, self.requests = self.requests, []
        for request in pending:
            request.connectionLost(Failure(ConnectionDone()))
        self.deadline = self.connections.now() + LINGER_TIMEOUT
        self.loseConnection()  # type: ignore[no-untyped-call]

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """
        As L{twisted.internet.interfaces.IConsumer}; a producer that registers while writing is paused is paused at
        once.
        """
        super().registerProducer(producer, streaming)  # type: ignore[no-untyped-call]
        if streaming and self._waitingForTransport:
            cast(IPushProducer, producer).pauseProducing()

    def resumeProducing(self) -> None:
        """Resume the producer: the transport accepts more data."""
        if is_tls_closing(self.transport):
            # TLS closes the connection below it, which waits for its producer and is not read.
            self.transport.unregisterProducer()
            return
        super().resumeProducing()  # type: ignore[no-untyped-call]
        if not self._handlingRequest:
            self.resume_reading()
            self._parse()

    # Deadlines.

    def deadline_expired(self) -> None:
        """Handle the passing of the deadline."""
        self.deadline = None
        if self._state == DISCARD or (self._state == HEAD and not self._buffer):
            self.close()
        elif self._state in (HEAD, BODY):
            self.refuse(408)
        elif self._state == SWITCHED:
            self.abort()

    def close(self) -> None:
        """Close a connection without an open request; abort it if the client does not close its side."""
        if self._state == DISCARD:
            self.abort()
        else:
            self._state = DISCARD
            self.deadline = self.connections.now() + LINGER_TIMEOUT
            self.loseConnection()  # type: ignore[no-untyped-call]

    def connectionLost(self, reason: Failure) -> None:  # type: ignore[override]
        """Handle the loss of the connection."""
        self.connections.disconnected(self)
        self.connections.stalled.pop(self, None)
        if not self.remembered and isinstance(reason, Failure) and reason.check(SSL.Error):
            # The connection ended without a request, in the TLS handshake.
            self.connections.failed_handshakes += 1
        self.deadline = None
        self._buffer = b""
        self._drop_body()
        switched, self._switched = self._switched, None
        try:
            if switched is not None:
                switched.connectionLost(reason)
        finally:
            super().connectionLost(reason)  # type: ignore[no-untyped-call]
            self.requests = []
            self._requestProducer = None

    def disable_keep_alive(self) -> None:
        """Accept no requests after the one that is open."""
        self.persistent = self._persistent_before = 0

    @property
    def unflushed(self) -> bool:
        """Return whether much data is written that the client has not read yet."""
        return self._waitingForTransport
