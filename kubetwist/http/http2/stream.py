"""One stream: a request and its response. It is the L{RequestTransport<kubetwist.http.transport.RequestTransport>}."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from OpenSSL.crypto import X509

from twisted.internet._producer_helpers import _PullToPush
from twisted.internet.interfaces import IAddress, IProducer, IProtocol
from twisted.web.http import NO_BODY_CODES
from zope.interface import implementer

from ...interfaces import IClientConnection
from ..connection.flow import RawTransport
from ..headsyntax import Malformed, refusal_text
from ..request import KubeRequest
from ..sharedpieces import SharedWriter
from ..transport import ConnectionSite
from .body import BodyConnection, RequestBody
from .frames import CANCEL, INTERNAL_ERROR, header_frames
from .output import Backlog, Output
from .responsehead import complete_block, encode_block, response_block

#: The server of streams.
Http2Site = ConnectionSite[KubeRequest]


class StreamConnection(BodyConnection, Protocol):
    """
    The connection of streams.

    @ivar site: The server.
    @ivar remembered: What filters store for all requests of the connection.
    @ivar output: The sending side.
    """

    site: Http2Site
    remembered: dict[object, Any]
    output: Output

    def getPeer(self) -> IAddress:
        """Return the address of the client."""

    def getHost(self) -> IAddress:
        """Return the address that the client has connected to."""

    def peer_certificates(self) -> Sequence[X509]:
        """Return the certificate that the client has presented, and its chain; nothing without TLS."""

    def disable_keep_alive(self) -> None:
        """Accept no further streams."""

    def reset(self, stream: Http2Stream, code: int) -> None:
        """Reset a stream; its request ends in the next iteration of the reactor."""

    def end_request(self, stream: Http2Stream) -> None:
        """End the request of a stream without a complete response."""

    def request_done(self, stream: Http2Stream) -> None:
        """Handle that a request has ended with a complete response."""

    def response_sent(self, stream: Http2Stream) -> None:
        """Handle that the end of a response was sent."""

    def check_backlogs(self) -> None:
        """Check later whether the client has accepted what waits for it."""


@implementer(IClientConnection)
class Http2Stream:
    """
    A stream.

    @ivar connection: Its connection.
    @ivar site: The server.
    @ivar remembered: What filters store for all requests of the connection.
    @ivar stream_id: Its id.
    @ivar window: Bytes that the client accepts.
    @ivar urgent: Whether its data are sent before the data of other streams and connections.
    @ivar reads: Whether the request is a GET: its response need not follow watch events.
    @ivar backlog: Data that wait for the windows or the transport.
    @ivar request: The request; L{None} before it is read and after it has ended.
    @ivar body: The body of the request; L{None} for a request without body.
    @ivar receiving: Whether the client has not ended its side.
    @ivar closed: Whether the stream has ended.
    @ivar head_size: Size of the header list, in bytes.
    """

    __slots__ = (
        "_ended",
        "_last_of_connection",
        "_paused",
        "_producer",
        "_remaining",
        "_truncated",
        "backlog",
        "body",
        "closed",
        "connection",
        "head_size",
        "reads",
        "receiving",
        "remembered",
        "request",
        "site",
        "stream_id",
        "urgent",
        "window",
    )

    def __init__(self, connection: StreamConnection, stream_id: int, window: int, receiving: bool) -> None:
        """
        @param window: The initial window.
        @param receiving: Whether the client sends more after the head.
        """
        self.connection = connection
        self.site: Http2Site = connection.site
        self.remembered: dict[object, Any] = connection.remembered
        self.stream_id = stream_id
        self.window = window
        self.urgent = False
        self.reads = False
        self.backlog: Backlog | None = None
        self.request: KubeRequest | None = None
        self.body: RequestBody | None = None
        self.receiving = receiving
        self.closed = False
        self.head_size = 0
        self._producer: Any = None
        self._paused = False
        self._truncated = False
        self._last_of_connection = False
        #: Bytes of the body that are not written yet; L{None} if the response has no length.
        self._remaining: int | None = None
        #: Whether the end of the response was written.
        self._ended = False

    def start(self) -> None:
        """Serve the request, or read its body first."""
        if self.body is None:
            assert self.request is not None, "the head was read"
            self.request.serve(b"")
        else:
            self.body.begin()

    # The client.

    def getPeer(self) -> IAddress:
        """Return the address of the client."""
        return self.connection.getPeer()

    def getHost(self) -> IAddress:
        """Return the address that the client has connected to."""
        return self.connection.getHost()

    def peer_certificates(self) -> Sequence[X509]:
        """Return the certificate that the client has presented, and its chain; nothing without TLS."""
        return self.connection.peer_certificates()

    def collect(self, request: KubeRequest) -> bool:
        """
        Continue to read the body of a request that is served before its body has arrived.

        @return: Whether there is room for it.
        """
        assert self.body is not None, "the body has not arrived"
        return self.body.collect()

    # The response.

    def send_continue(self) -> None:
        """Send 100 Continue, unless the response has begun."""
        if self.request is not None and not self.request.startedWriting and not self.closed:
            self.connection.write(header_frames(self.stream_id, encode_block(100, ()), False))

    def send_response(self, request: KubeRequest, body: bytes, content_type: bytes) -> None:
        """Send a whole response, with the status and the header fields of the request."""
        block = complete_block(request, len(body), content_type)
        if request.method == b"HEAD" or request.code in NO_BODY_CODES:
            body = b""
        request.sentLength = len(body)
        if not self.closed:
            self.connection.output.send_response(self, block, body)
            if self._last_of_connection:
                self.connection.disable_keep_alive()

    def send_piece(self, request: KubeRequest, data: bytes) -> None:
        """
        Send a piece of the response; the first one begins it, with the status and header fields of the request.

        The last bytes of a body of known length end the stream.
        """
        self.send_parts(request, (data,), len(data))

    def send_parts(self, request: KubeRequest, parts: Sequence[bytes | memoryview], size: int) -> None:
        """Send a piece of the response as L{send_piece} does: C{size} bytes in parts."""
        if self.closed or self._ended:
            return
        output, block = self.connection.output, None
        if not request.startedWriting:
            request.startedWriting = 1
            lengths = request.complete_fields().getRawHeaders(b"content-length")
            if lengths and lengths[0].isdigit():
                self._remaining = int(lengths[0])
            block = response_block(request)
            if self._last_of_connection:
                self.connection.disable_keep_alive()
        if size and request.method != b"HEAD" and request.code not in NO_BODY_CODES:
            request.sentLength += size
            if self._remaining is not None:
                self._remaining -= size
                self._ended = self._remaining <= 0
            output.send_parts(self, parts, size, self._ended, block)
        elif block is not None:
            output.send_head(self, block, False)

    def shared_writer(self, request: KubeRequest) -> SharedWriter:
        """Return what sends pieces of the response as L{send_piece} does, which other requests send, too."""
        return SharedWriter(request.write)

    def end_response(self, request: KubeRequest) -> None:
        """Complete a response that L{send_piece} has begun."""
        if not (self.closed or self._ended):
            self._ended = True
            self.connection.output.send_data(self, b"", True)

    def truncate_response(self, request: KubeRequest) -> None:
        """Reset the stream when the written data are sent."""
        if self.backlog is None or not self.backlog.pieces:
            self.connection.reset(self, INTERNAL_ERROR)
        else:
            self._truncated = True

    def switch_protocol(
        self, request: KubeRequest, fields: Iterable[tuple[bytes, bytes]], protocol: IProtocol
    ) -> RawTransport:
        """Fail: HTTP/2 has no header field that requests it."""
        raise RuntimeError("a stream of HTTP/2 cannot switch to another protocol")

    def refuse(self, error: Malformed) -> None:
        """Answer a malformed request in plain text, as over HTTP/1.1."""
        request = self.request
        if request is not None and (request.startedWriting or self.closed):
            self.connection.reset(self, CANCEL)
            return
        _, text = refusal_text(error.code, str(error))
        fields = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", b"%d" % len(text))]
        if error.code == 429:
            fields.append((b"retry-after", b"1"))
        block = encode_block(error.code, fields)
        self.connection.output.send_response(self, block, text)
        self.connection.end_request(self)

    def prioritize(self, urgent: bool) -> None:
        """Enable or disable sending written data before the responses of other streams and connections."""
        self.urgent = urgent

    def requestDone(self, request: KubeRequest) -> None:
        """Handle that the response is complete."""
        self.request = None
        self._producer = None
        self.connection.request_done(self)

    def disable_keep_alive(self) -> None:
        """Accept no request on this connection after this one."""
        self._last_of_connection = True

    def loseConnection(self) -> None:
        """Reset the stream when the written data are sent."""
        if self.request is not None:
            self.truncate_response(self.request)

    def abort(self) -> None:
        """Reset the stream now."""
        self.connection.reset(self, CANCEL)

    # The producer of the response.

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """
        As L{IConsumer.registerProducer<twisted.internet.interfaces.IConsumer.registerProducer>}.

        A producer that registers while the client accepts no data is paused at once.
        """
        if not streaming:
            pulled: Any = _PullToPush(producer, self)
            self._producer = pulled
            pulled.startStreaming()
        else:
            self._producer = producer
        if self.connection.output.wait_for_window(self):
            self.pause_producer()

    def unregisterProducer(self) -> None:
        """As L{IConsumer.unregisterProducer<twisted.internet.interfaces.IConsumer.unregisterProducer>}."""
        producer, self._producer = self._producer, None
        self._paused = False
        if isinstance(producer, _PullToPush):
            producer.stopStreaming()

    def pause_producer(self) -> None:
        """Pause the producer: data wait."""
        self.connection.check_backlogs()
        # Some producers write although they are paused.
        if self._producer is not None:
            self._paused = True
            self._producer.pauseProducing()

    def resume_producer(self) -> None:
        """Resume the producer: no data wait."""
        if self._truncated:
            self.connection.reset(self, INTERNAL_ERROR)
        elif self._producer is not None and self._paused:
            self._paused = False
            self._producer.resumeProducing()

    def end_sent(self) -> None:
        """Handle that the end of the response was sent."""
        self.connection.response_sent(self)
        if self._producer is not None and self._paused:
            # It has written the whole body, but not finished the response.
            self._paused = False
            self._producer.resumeProducing()
