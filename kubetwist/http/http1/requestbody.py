"""
Read request bodies from a connection: by length or in chunks; collected, streamed or discarded.

This module enforces limits of size and rate. L{kubetwist.http.http1.channel} handles heads, answers and the connection.
"""

from __future__ import annotations

from typing import Any, Final

from twisted.web.http import HTTPChannel, _ChunkedTransferDecoder

from ..connection.bodyshares import BODY_GRACE, MAX_BODY, SMALL_BODY, body_timeout, client_of
from ..connection.connectionlimit import client_network
from ..connection.flow import is_peer_closed
from ..headsyntax import Malformed
from ..request import KubeRequest
from ..streaming import StreamedBody
from ..transport import ConnectionSite

#: Bytes of a refused body that are read and discarded, so that its sender can read the response.
MAX_DISCARDED: Final = 32 * 1024 * 1024

#: States of a connection: what it waits for, or does with received bytes.
HEAD, BODY, ANSWER, DISCARD, STREAM, SWITCHED = range(6)


ChannelSite = ConnectionSite[KubeRequest]


class BodyReader(HTTPChannel):
    """
    Base of L{kubetwist.http.http1.channel.KubeChannel}: the reading of bodies.

    @ivar deadline: Time limit for the head or the body, in the site's time; L{None} while a request is
        answered.
    """

    site: ChannelSite
    transport: Any
    requests: list[KubeRequest]
    deadline: float | None = None

    def __init__(self, site: ChannelSite) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Twisted has no annotations here
        self.site = self.factory = site
        self.connections = site.connections
        self._state = HEAD
        #: Received bytes that belong to no request yet.
        self._buffer = b""
        self._paused = False
        self._decoder: Any = None
        self._body = bytearray()
        #: Bytes that have not arrived; L{None} if their number is unknown.
        self._remaining: int | None = 0
        self._body_since = 0.0
        #: Whether the request is being served while its body has not arrived.
        self._served_early = False
        #: Whether a handler has requested that body, and whether the client waits for 100 Continue.
        self._body_requested = False
        self._expects_continue = False
        #: The client with a reservation of L{_reserved} bytes, and whether it is anonymous.
        self._share: tuple[tuple[str, str], bool] | None = None
        self._reserved = 0
        self._discarded = 0
        self._streamed: StreamedBody | None = None
        #: The value of C{persistent} before a request was served ahead of its body.
        self._persistent_before = 0

    # Requests, with their bodies.

    def _serve(self, request: KubeRequest, body: bytes, rest: bytes) -> None:
        self._buffer = rest
        self._state = ANSWER
        self._handlingRequest = True
        self.deadline = None
        request.serve(body)

    def _read_body(self, request: KubeRequest, length: int | None, rest: bytes, expects_continue: bool) -> None:
        """
        Begin to read the body of a request whose head has arrived.

        @param length: In bytes, not 0; L{None} for a body in chunks.
        @param rest: Received bytes after the head.
        @param expects_continue: Whether the client waits for 100 Continue.
        """
        for is_streamed in self.site.streams:
            if is_streamed(request):
                self._stream(request, length, rest, expects_continue)
                return
        if length is not None and length > MAX_BODY:
            self._too_large(request, len(rest), length)
            return
        self._state = BODY
        self._remaining = length or 0
        if length is None:
            self._decoder = _ChunkedTransferDecoder(self._chunk_received, self._chunks_finished)
        self._body_since = now = self.connections.now()
        self.deadline = now + BODY_GRACE
        if self.site.heads_first and (expects_continue or (length is not None and length > max(SMALL_BODY, len(rest)))):
            self._serve_head(request, expects_continue)
        elif expects_continue:
            self.send_continue()
        if rest:
            if self._state == BODY:
                self._body_received(rest)
            elif self._state == DISCARD:
                self._discard(len(rest))

    def _body_received(self, data: bytes) -> None:
        remaining = self._remaining or 0
        unfinished = self._decoder is not None or len(data) < remaining
        if unfinished and self.deadline is not None:
            self.deadline = self._body_since + body_timeout(len(self._body) + len(data))
        if self._decoder is not None:
            self._decoder.dataReceived(data)
            return
        if unfinished:
            self._remaining = remaining - len(data)
            self._append_body(data)
            return
        if self._body or self._served_early:
            self._remaining = 0
            self._append_body(data[:remaining])
            self._finish_body(data[remaining:])
        else:
            request = self.requests[-1]
            body, rest = (data, b"") if len(data) == remaining else (data[:remaining], data[remaining:])
            self._serve(request, body, rest)

    def _chunk_received(self, data: bytes) -> None:
        if self._state != BODY:
            return
        size = len(self._body) + len(data)
        if size > MAX_BODY:
            self._too_large(self.requests[-1], len(data), None)
            return
        if size > SMALL_BODY and self.site.heads_first and not self._served_early:
            self._serve_head(self.requests[-1], False)
            if self._state != BODY:
                return
        self._append_body(data)

    def _chunks_finished(self, rest: bytes) -> None:
        if self._state == BODY:
            self._finish_body(rest)

    def _append_body(self, data: bytes) -> None:
        size = len(self._body) + len(data)
        if self._body_requested and size > max(SMALL_BODY, self._reserved) and not self._reserve(size - self._reserved):
            raise Malformed(429)
        self._body += data

    def _finish_body(self, rest: bytes) -> None:
        body = bytes(self._body)
        self._body = bytearray()
        self._decoder = None
        request = self.requests[-1]
        if not self._served_early:
            self._serve(request, body, rest)
            return
        self._served_early = False
        self._state = ANSWER
        self._buffer = rest
        self.deadline = None
        self.persistent = self._persistent_before
        request.body_arrived(body)

    def _drop_body(self) -> None:
        self._body = bytearray()
        self._decoder = None
        self._served_early = False
        self._release()

    # Large bodies, whose requests are authorized by their heads.

    def _serve_head(self, request: KubeRequest, expects_continue: bool) -> None:
        """Serve a request before its body; the rest of the body is not read before L{collect}."""
        self._served_early = True
        self._body_requested = False
        self._expects_continue = expects_continue
        self._handlingRequest = True
        self.deadline = None
        # A response that begins before the end of the body closes the connection, and its head must announce that.
        self._persistent_before, self.persistent = self.persistent, 0
        request.body_pending = True
        request.serve(b"")
        if self._state == BODY and not self._body_requested:
            self.pause_reading()

    def collect(self, request: KubeRequest) -> bool:
        """
        Continue to read the body of a request that L{_serve_head} serves.

        @return: Whether there is room for it.
        """
        network = client_network(getattr(self.transport.getPeer(), "host", ""))
        self._share = client_of(request.user, network)
        size = len(self._body) + (self._remaining or 0)
        if size > SMALL_BODY and not self._reserve(size):
            return False
        self._body_requested = True
        self._body_since = now = self.connections.now()
        self.deadline = now + BODY_GRACE
        if self._expects_continue:
            self.send_continue()
        self.resume_reading()
        return True

    def _reserve(self, size: int) -> bool:
        assert self._share is not None, "the client is known"
        client, anonymous = self._share
        if not self.connections.bodies.reserve(client, size, anonymous=anonymous):
            return False
        self._reserved += size
        return True

    def _release(self) -> None:
        """Release the reservations of bodies."""
        if self._reserved:
            assert self._share is not None, "something is reserved"
            client, anonymous = self._share
            self.connections.bodies.release(client, self._reserved, anonymous=anonymous)
            self._reserved = 0
        self._body_requested = False

    def _too_large(self, request: KubeRequest, arrived: int, length: int | None) -> None:
        """Answer without the body, discard the rest of it, and close the connection."""
        served_early = self._served_early
        self._drop_body()
        self.persistent = 0
        self._state = DISCARD
        self._remaining = None if length is None else length - arrived
        self._discarded = 0
        self.deadline = None
        self._handlingRequest = True
        request.body_too_large = True
        if served_early:
            request.body_arrived(b"")
        else:
            request.serve(b"")

    def _discard(self, arrived: int) -> None:
        self._discarded += arrived
        if self._discarded > MAX_DISCARDED:
            self.abort()
        elif self._remaining is not None:
            self._remaining -= arrived
            if self._remaining <= 0 and self.idle:
                self.loseConnection()  # type: ignore[no-untyped-call]

    # Bodies that are streamed to a handler.

    def _stream(self, request: KubeRequest, length: int | None, rest: bytes, expects_continue: bool) -> None:
        """
        Serve a request whose body arrives while it is answered.

        @param request: Its body is streamed to the handler.
        @param length: Length of the body, in bytes; L{None} for a body in chunks.
        @param rest: Received bytes after the head.
        @param expects_continue: Whether the client waits for 100 Continue.
        """
        body = request.streamed = self._streamed = StreamedBody(self, length, expects_continue)
        self._state = STREAM
        self._handlingRequest = True
        self.deadline = None
        self._remaining = length
        if length is None:
            self._decoder = _ChunkedTransferDecoder(body.received, self._stream_finished)
        # As in L{_serve_head}.
        self._persistent_before, self.persistent = self.persistent, 0
        if rest:
            self._stream_received(rest)
        request.serve(b"")
        if self._state == STREAM and not body.consumed:
            self.pause_reading()

    def _stream_received(self, data: bytes) -> None:
        if self._decoder is not None:
            self._decoder.dataReceived(data)
            return
        remaining = self._remaining or 0
        body = self._streamed
        assert body is not None, "a body is streamed"
        self._remaining = max(remaining - len(data), 0)
        body.received(data if len(data) <= remaining else data[:remaining])
        if len(data) >= remaining:
            self._stream_finished(data[remaining:])

    def _stream_finished(self, rest: bytes) -> None:
        body = self._streamed
        if self._state != STREAM or body is None:
            return
        self._streamed = self._decoder = None
        self._state = ANSWER
        self._buffer = rest
        if not self.requests[0].startedWriting:
            self.persistent = self._persistent_before
        body.finish()
        if self._state == ANSWER:
            self.resume_reading()

    def _stop_collecting(self) -> None:
        """Drop the body of a request that is answered before it has arrived."""
        self._stop_streaming()
        self._drop_body()

    def _stop_streaming(self) -> None:
        """Drop the rest of a streamed body, whose request is answered."""
        if self._decoder is not None:
            self._remaining = None
        self._streamed = self._decoder = None
        self._state = DISCARD
        self._discarded = 0
        self.resume_reading()

    # The connection.

    def send_continue(self) -> None:
        """Send 100 Continue, for which the client waits, unless the response has begun."""
        if not (self.requests and self.requests[0].startedWriting):
            self._send100Continue()  # type: ignore[no-untyped-call]

    def pause_reading(self) -> None:
        """Stop reading, so that the client's data wait in the network."""
        if not self._paused:
            self._paused = True
            self._networkProducer.pauseProducing()
            self.connections.stalled[self] = self.connections.now()

    def resume_reading(self) -> None:
        """Resume reading what the client sends."""
        if self._paused:
            self._paused = False
            self.connections.stalled.pop(self, None)
            self._networkProducer.resumeProducing()

    def check_peer_closed(self) -> None:
        """Close a connection whose client has disconnected while reading was paused."""
        if is_peer_closed(self.transport):
            self.abort()

    def abort(self) -> None:
        """End the connection now."""
        # Twisted's TLS cannot abort twice.
        if self.connections.has(self):
            self.transport.abortConnection()

    @property
    def idle(self) -> bool:
        """Return whether no request is open."""
        return not self.requests
