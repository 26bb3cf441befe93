"""The streams of a connection that are open, and how they end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure

from ..connection.bodyshares import UnservedBytes
from ..connection.connections import Connections
from .budgets import reset_budget
from .closedstreams import ClosedStreams
from .frames import NO_ERROR, REFUSED_STREAM, Http2ConnectionError, Http2StreamError, rst_stream
from .output import Output
from .stream import Http2Site, Http2Stream

#: Header lists of open streams, in bytes, with which no stream is accepted. Many watches with long tokens fit.
MAX_HEADS: Final = 4 * 1024 * 1024
#: Minimum number of recently reset streams that are remembered; more if a connection may have more streams.
MAX_RESET_STREAMS: Final = 1000
#: Seconds from a response to the reset of its stream, if the client has not sent the body until then.
REFUSED_BODY_TIMEOUT: Final = 0.1


class OpenStreams(Protocol, ABC):
    """
    Base of L{kubetwist.http.http2.connection.Http2Connection}: the open streams.

    @ivar site: The server.
    @ivar connections: All connections of the server.
    @ivar remembered: What filters store for all requests of this connection, such as the owner of its certificate.
    @ivar streams: The open streams, by id.
    @ivar output: The sending side.
    @ivar write: Writes a frame.
    """

    output: Output
    write: Callable[[bytes], object]
    _unserved: UnservedBytes

    def __init__(self, site: Http2Site) -> None:
        self.site = site
        self.connections: Connections = site.connections
        self.now = self.connections.now
        self.remembered: dict[object, Any] = {}
        self.streams: dict[int, Http2Stream] = {}
        #: Closed streams whose requests have not ended: the end of the response was sent, or the stream was reset.
        self._unfinished: set[Http2Stream] = set()
        self._closed = ClosedStreams(max(MAX_RESET_STREAMS, site.max_streams))
        self._resets = reset_budget(self.now)
        self._head_bytes = 0

    @abstractmethod
    def streams_ended(self) -> None:
        """Handle the end of the last stream."""

    def _open(self, stream: Http2Stream, head_size: int) -> None:
        """
        Add a stream.

        @param head_size: Size of the header list, in bytes.
        @raise Http2StreamError: There is no room for it.
        """
        streams, head_bytes = self.streams, self._head_bytes + head_size
        if len(streams) >= self.site.max_streams or head_bytes > MAX_HEADS:
            raise Http2StreamError(stream.stream_id, REFUSED_STREAM, "too many streams are open")
        streams[stream.stream_id] = stream
        stream.head_size = head_size
        self._head_bytes = head_bytes

    def _reset_by_error(self, error: Http2StreamError) -> None:
        """Reset a stream whose client breaks a rule, which counts like a reset by the client."""
        self._resets.spend()
        stream = self.streams.get(error.stream_id)
        if stream is None:
            if self._closed.is_idle(error.stream_id):
                # An idle stream cannot be reset.
                raise Http2ConnectionError(error.code, str(error))
            self._closed.was_reset(error.stream_id, by_client=False)
            self.write(rst_stream(error.stream_id, error.code))
        else:
            self._reset_now(stream, error.code)
            self.end_request(stream)

    def reset(self, stream: Http2Stream, code: int) -> None:
        """Reset a stream; its request ends in the next iteration of the reactor."""
        if not stream.closed:
            self._reset_now(stream, code)
            self.site.reactor.callLater(0, self.end_request, stream)

    def _reset_now(self, stream: Http2Stream, code: int) -> None:
        self._closed.was_reset(stream.stream_id, by_client=False)
        self.write(rst_stream(stream.stream_id, code))
        self._close_stream(stream)

    def _close_stream(self, stream: Http2Stream) -> None:
        """Remove a stream that both sides have ended, or that was reset."""
        if stream.closed:
            return
        stream.closed = True
        if stream.backlog is not None:
            self.output.drop(stream)
        del self.streams[stream.stream_id]
        if stream.request is not None:
            self._unfinished.add(stream)
        self._head_bytes -= stream.head_size
        if not self.streams:
            self.streams_ended()

    def end_request(self, stream: Http2Stream) -> None:
        """End the request of a stream without a complete response."""
        request, stream.request = stream.request, None
        self._unfinished.discard(stream)
        if stream.body is not None:
            stream.body.release()
        if request is not None:
            stream.unregisterProducer()
            request.connectionLost(Failure(ConnectionDone()))

    def response_sent(self, stream: Http2Stream) -> None:
        """Handle that the end of a response was sent."""
        if stream.receiving:
            # Some clients drop a response that arrives together with the reset.
            self.site.reactor.callLater(REFUSED_BODY_TIMEOUT, self._refuse_body, stream)
        else:
            self._close_stream(stream)

    def _refuse_body(self, stream: Http2Stream) -> None:
        """Ask the client to stop sending a body whose request is answered."""
        if not stream.closed:
            self._reset_now(stream, NO_ERROR)

    def request_done(self, stream: Http2Stream) -> None:
        """Handle that a request has ended with a complete response."""
        self._unfinished.discard(stream)
        if stream.body is not None:
            stream.body.release()
            stream.body = None

    def hold(self, stream_id: int, size: int) -> None:
        """
        Count bytes of a body whose request is not served.

        @raise Http2StreamError: There is no room for them.
        """
        if not self._unserved.add(size):
            raise Http2StreamError(stream_id, REFUSED_STREAM, "there is no room for the body")

    def release(self, size: int) -> None:
        """Stop counting bytes of a body."""
        self._unserved.remove(size)
