"""
Read the body of one request: collected or streamed, under flow control and the limits of all bodies.

The client may send as much as fits a small body at any time. More is accepted after the request's handler has asked for
the body, and as fast as the consumer of a streamed body takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet.interfaces import IAddress

from ..connection.bodyshares import BODY_GRACE, MAX_BODY, SMALL_BODY, body_timeout, client_of
from ..connection.connectionlimit import client_network
from ..connection.connections import Connections
from ..headsyntax import Malformed
from ..request import KubeRequest
from ..streaming import StreamedBody
from ..transport import ConnectionSite
from .frames import FLOW_CONTROL_ERROR, PROTOCOL_ERROR, Http2StreamError, window_update

#: The window of a stream, in which a small body fits.
STREAM_WINDOW: Final = SMALL_BODY

#: States: waiting for the request to be served; collecting a body whose request is not served; waiting for the handler
#: to request the body; collecting for it; streaming; dropping the rest.
HELD, COLLECTING, WAITING, REQUESTED, STREAMING, DROPPED = range(6)


class BodyConnection(Protocol):
    """
    The connection of a body.

    @ivar connections: All connections of the server.
    @ivar now: Returns the time.
    @ivar write: Writes a frame.
    """

    connections: Connections
    now: Callable[[], float]
    write: Callable[[bytes], object]

    def hold(self, stream_id: int, size: int) -> None:
        """
        Count bytes of a body whose request is not served.

        @raise Http2StreamError: There is no room for them.
        """

    def release(self, size: int) -> None:
        """Stop counting bytes of a body."""

    def check_by(self, time: float) -> None:
        """Check the deadline of the body at C{time} at the latest."""


class BodyStream(Protocol):
    """
    The stream of a body.

    @ivar site: The server.
    @ivar stream_id: Its id.
    """

    site: ConnectionSite[KubeRequest]
    stream_id: int

    @property
    def connection(self) -> BodyConnection:
        """The connection of the stream."""

    def getPeer(self) -> IAddress:
        """Return the address of the client."""

    def refuse(self, error: Malformed) -> None:
        """Answer a malformed request, or reset the stream."""

    def send_continue(self) -> None:
        """Send 100 Continue."""


class RequestBody:
    """
    The body of a request, which has not arrived completely.

    @ivar deadline: Time limit of its arrival; L{None} while it is not expected to arrive.
    """

    __slots__ = (
        "_credit", "_data", "_ended", "_expects_continue", "_length", "_paused", "_received", "_request", "_reserved",
        "_share", "_since", "_state", "_stream", "_streamed", "_unserved", "_window", "deadline",
    )  # fmt: skip

    def __init__(self, stream: BodyStream, request: KubeRequest, length: int | None, expects_continue: bool) -> None:
        """
        @param length: The value of C{Content-Length}; L{None} without.
        @param expects_continue: Whether the client waits for 100 Continue.
        """
        self._stream = stream
        self._request = request
        self._length = length
        self._expects_continue = expects_continue
        self._state = HELD
        self._received = 0
        self._ended = False
        self._data = bytearray()
        #: Received bytes that the client has not been allowed to send again.
        self._credit = 0
        #: Maximum of these bytes.
        self._window = STREAM_WINDOW
        #: Bytes that the connection counts as held for requests that are not served.
        self._unserved = 0
        self._share: tuple[tuple[str, str], bool] | None = None
        self._reserved = 0
        self._since = 0.0
        self._streamed: StreamedBody | None = None
        self._paused = True
        self.deadline: float | None = None

    # Received data.

    def received(self, data: bytes, size: int, end: bool) -> None:
        """
        Handle a DATA frame.

        @param data: The payload without padding.
        @param size: Bytes that count for flow control.
        @param end: Whether the body ends with it.
        @raise Http2StreamError: The body contradicts C{Content-Length}, or is more than the window.
        """
        length, state = self._length, self._state
        if end and state == COLLECTING and not (self._received or self._credit) and length in (None, len(data)):
            # The whole body, of most requests: nothing is kept or counted.
            self._ended = True
            self.deadline = None
            self._state = DROPPED
            self._request.serve(data)
            return
        self._received += len(data)
        if length is not None and (self._received > length or (end and self._received < length)):
            raise Http2StreamError(self._stream.stream_id, PROTOCOL_ERROR, "the body contradicts Content-Length")
        self._credit += size
        if self._credit > self._window:
            raise Http2StreamError(self._stream.stream_id, FLOW_CONTROL_ERROR, "the client ignores the window")
        self._ended = end
        if state == STREAMING:
            assert self._streamed is not None, "the body is streamed"
            self._streamed.received(data)
            if not self._paused:
                self._return_credit()
        elif state != DROPPED:
            self._append(data)
        if end:
            self._finish()

    def _append(self, data: bytes) -> None:
        size = len(self._data) + len(data)
        if size > MAX_BODY:
            self._too_large()
            return
        state = self._state
        if state <= COLLECTING:
            self._stream.connection.hold(self._stream.stream_id, len(data))
            self._unserved += len(data)
        elif state == REQUESTED and size > max(SMALL_BODY, self._reserved) and not self._reserve(size - self._reserved):
            self._stream.refuse(Malformed(429))
            return
        self._data += data
        if state == COLLECTING and size > SMALL_BODY and self._stream.site.heads_first:
            self._serve_early()
        elif state in (COLLECTING, REQUESTED):
            self.deadline = self._since + body_timeout(size)
            self._return_credit()

    def _finish(self) -> None:
        """Handle the end of the body, unless the request is not served yet."""
        state = self._state
        if state in (HELD, WAITING, DROPPED):
            return
        self.deadline = None
        self._state = DROPPED
        if state == STREAMING:
            streamed, self._streamed = self._streamed, None
            assert streamed is not None, "the body is streamed"
            streamed.finish()
            return
        body, self._data = bytes(self._data), bytearray()
        self._release_unserved()
        if state == COLLECTING:
            self._request.serve(body)
        else:
            self._request.body_arrived(body)

    # The request is served.

    def begin(self) -> None:
        """Serve the request, or wait for its body first: it is the request's turn."""
        stream, request = self._stream, self._request
        site = stream.site
        for is_streamed in site.streams:
            if is_streamed(request):
                self._stream_body()
                return
        length = self._length
        self._state = COLLECTING
        if length is not None and length > MAX_BODY:
            self._too_large()
            return
        self._since = stream.connection.now()
        self.deadline = self._since + BODY_GRACE
        stream.connection.check_by(self.deadline)
        if self._ended:
            self._finish()
            return
        if site.heads_first and (self._expects_continue or (length is not None and length > SMALL_BODY)):
            self._serve_early()
        elif self._expects_continue:
            self.send_continue()

    def _serve_early(self) -> None:
        """Serve the request before its body has arrived; the handler requests the body with L{collect}."""
        self._state = WAITING
        self.deadline = None
        self._release_unserved()
        self._request.body_pending = True
        self._request.serve(b"")

    def collect(self) -> bool:
        """
        Accept the rest of a body whose request is served.

        @return: Whether there is room for it.
        """
        stream, request = self._stream, self._request
        network = client_network(getattr(stream.getPeer(), "host", ""))
        self._share = client_of(request.user, network)
        size = max(len(self._data), self._length or 0)
        if size > SMALL_BODY and not self._reserve(size):
            return False
        self._state = REQUESTED
        self._since = stream.connection.now()
        self.deadline = self._since + BODY_GRACE
        stream.connection.check_by(self.deadline)
        if self._expects_continue:
            self.send_continue()
        if self._ended:
            self._finish()
        elif self._length is not None and self._length > STREAM_WINDOW:
            # There is room for all of it.
            self._window = self._length
            stream.connection.write(window_update(stream.stream_id, self._length - STREAM_WINDOW))
        else:
            self._return_credit()
        return True

    def _reserve(self, size: int) -> bool:
        assert self._share is not None, "the client is known"
        client, anonymous = self._share
        if not self._stream.connection.connections.bodies.reserve(client, size, anonymous=anonymous):
            return False
        self._reserved += size
        return True

    def release(self) -> None:
        """Release the reservation and the data: the request has ended."""
        self._data = bytearray()
        self._state = DROPPED
        self.deadline = None
        self._streamed = None
        if self._unserved:
            self._release_unserved()
        if self._reserved:
            assert self._share is not None, "something is reserved"
            client, anonymous = self._share
            self._stream.connection.connections.bodies.release(client, self._reserved, anonymous=anonymous)
            self._reserved = 0

    def _release_unserved(self) -> None:
        if self._unserved:
            self._stream.connection.release(self._unserved)
            self._unserved = 0

    def _too_large(self) -> None:
        """Answer without the body; the client is asked to stop sending when the response is sent."""
        early = self._state in (WAITING, REQUESTED)
        self._data = bytearray()
        self._state = DROPPED
        self.deadline = None
        self._release_unserved()
        request = self._request
        request.body_too_large = True
        if early:
            request.body_arrived(b"")
        else:
            request.serve(b"")

    # Bodies that are streamed to a handler.

    def _stream_body(self) -> None:
        """Serve a request whose body arrives while it is answered."""
        body = self._request.streamed = self._streamed = StreamedBody(self, self._length, self._expects_continue)
        self._state = STREAMING
        data, self._data = bytes(self._data), bytearray()
        self._release_unserved()
        if data:
            body.received(data)
        if self._ended:
            self._finish()
        self._request.serve(b"")

    def pause_reading(self) -> None:
        """Let the client send no more than the rest of its window."""
        self._paused = True

    def resume_reading(self) -> None:
        """Let the client send more."""
        self._paused = False
        self._return_credit()

    def send_continue(self) -> None:
        """Send 100 Continue, for which the client waits, unless the response has begun."""
        self._stream.send_continue()

    def _return_credit(self) -> None:
        """Let the client send as much again as was consumed, once that is half a window."""
        if self._credit >= STREAM_WINDOW // 2 and not self._ended and self._state != DROPPED:
            credit, self._credit = self._credit, 0
            stream = self._stream
            stream.connection.write(window_update(stream.stream_id, credit))
