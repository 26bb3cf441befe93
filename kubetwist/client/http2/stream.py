"""One stream of a connection as a client: a request, and the response to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IDelayedCall, IProducer, IProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from ...http.http2.frames import (
    CANCEL,
    FLOW_CONTROL_ERROR,
    PROTOCOL_ERROR,
    Http2StreamError,
    window_update,
)
from ...http.http2.output import Backlog, Output
from ..connection import MAX_INTERIM, StreamingResponse, Upload
from ..errors import Unreachable
from ..responsehead import Head, InvalidHead, body_length
from .heads import parse_response_head

#: Bytes that the server may send on a stream before they are read.
STREAM_WINDOW: Final = 128 * 1024


class StreamConnection(Protocol):
    """
    The connection of streams.

    @ivar output: The sending side.
    """

    output: Output

    def write(self, data: bytes) -> object:
        """Send frames."""

    def reset(self, stream: ClientStream, code: int) -> None:
        """Reset a stream."""

    def head_arrived(self, stream: ClientStream) -> None:
        """Handle a head that is passed on after the received data were read."""

    def ended(self, stream: ClientStream) -> None:
        """Remove a stream whose response is complete."""


@implementer(IConsumer)
class ClientStream:
    """
    A stream. It is the source of its response, and the consumer of an upload.

    @ivar stream_id: Its id.
    @ivar window: Bytes that the server accepts.
    @ivar urgent: See L{kubetwist.http.http2.output.Sender}.
    @ivar reads: The same.
    @ivar backlog: Data that wait for the windows or the transport.
    @ivar closed: Whether it has ended, or was reset.
    @ivar credit: Received bytes that the server has not been allowed to send again.
    @ivar opened_after: Number of reads from the connection before it was opened.
    @ivar waiter: Fires with the response; L{None} when it has fired.
    @ivar timer: The time limit of the head.
    """

    __slots__ = (
        "_connection",
        "_interim",
        "_method",
        "_paused",
        "_pieces",
        "_producer",
        "_producer_paused",
        "_remaining",
        "_response",
        "_sending",
        "_sent",
        "_upload_left",
        "backlog",
        "closed",
        "credit",
        "opened_after",
        "reads",
        "stream_id",
        "timer",
        "urgent",
        "waiter",
        "window",
    )

    def __init__(
        self, connection: StreamConnection, stream_id: int, window: int, method: bytes, opened_after: int
    ) -> None:
        """
        @param stream_id: The id.
        @param window: The initial window of the server.
        @param method: The method of the request.
        @param opened_after: Number of reads from the connection before.
        """
        self.stream_id = stream_id
        self.window = window
        self.urgent = self.reads = False
        self.backlog: Backlog | None = None
        self.closed = False
        self.credit = 0
        self.opened_after = opened_after
        self.waiter: Deferred[StreamingResponse] | None = Deferred(self._cancelled)
        self.timer: IDelayedCall | None = None
        self._connection = connection
        self._method = method
        self._response: StreamingResponse | None = None
        #: Bytes of the response that have not arrived; L{None} if their number is unknown.
        self._remaining: int | None = None
        self._interim = 0
        self._paused = True
        #: Data that were received and not passed on.
        self._pieces: list[bytes] = []
        self._sent = False
        self._sending: Deferred[None] | None = None
        #: Bytes of the upload that were not written; L{None} if their number is unknown.
        self._upload_left: int | None = None
        self._producer: Any = None
        self._producer_paused = False

    def _cancelled(self, waiter: Deferred[StreamingResponse]) -> None:
        self.waiter = None
        self._connection.reset(self, CANCEL)
        waiter.errback(CancelledError())

    # The request body.

    def upload(self, body: Upload) -> None:
        """Send a body while it arrives."""
        self._upload_left = body.length
        sending = self._sending = body.deliver(self)

        def sent(_: None) -> None:
            self._sending = None
            if self.closed:
                return
            if self._upload_left:
                self._connection.reset(self, CANCEL)
                self.fail(Unreachable("http: ContentLength does not match the length of the body"))
                return
            self._connection.output.send_data(self, b"", True)

        def failed(_: Failure) -> None:
            # The sender of the body has disconnected, or this side has ended the request.
            self._sending = None
            if not self.closed:
                self.abort()

        sending.addCallbacks(sent, failed)

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """@see: L{IConsumer}; a producer that registers while the server accepts no data is paused at once."""
        self._producer, self._producer_paused = producer, False
        if not self.closed and self._connection.output.wait_for_window(self):
            self.pause_producer()

    def unregisterProducer(self) -> None:
        """@see: L{IConsumer}."""
        self._producer = None

    def write(self, data: bytes) -> None:
        """Send a part of the body."""
        if not data or self.closed:
            return
        left = self._upload_left
        if left is not None:
            # Data beyond the length are not sent.
            data = data[:left]
            self._upload_left = left - len(data)
        if data:
            self._connection.output.send_data(self, data, False)

    # The sending side continues, see kubetwist.http.http2.output.Sender.

    def pause_producer(self) -> None:
        """Pause the sender of the body: data wait."""
        if self._producer is not None and not self._producer_paused:
            self._producer_paused = True
            self._producer.pauseProducing()

    def resume_producer(self) -> None:
        """Resume the sender of the body: no data wait."""
        if self._producer is not None and self._producer_paused:
            self._producer_paused = False
            self._producer.resumeProducing()

    def end_sent(self) -> None:
        """Handle that the end of the request was sent."""
        self._sent = True

    # The response.

    def head_received(self, header_list: Sequence[tuple[bytes, bytes]], end: bool) -> None:
        """
        Handle a header list.

        @param end: Whether the response ends with it.
        @raise Http2StreamError: It is malformed, or at a wrong position.
        """
        if self._response is not None:
            # Trailers are not passed on, as over HTTP/1.1.
            if not end:
                raise self._error("HEADERS within a response")
            self._end_received()
            return
        try:
            head = parse_response_head(header_list)
            length = body_length(head, self._method)
        except InvalidHead as error:
            raise self._error(str(error)) from None
        if head.code < 200:
            self._interim += 1
            if head.code == 101 or end:
                raise self._error("malformed response from server: invalid 1xx informational response")
            if self._interim > MAX_INTERIM:
                raise self._error("too many 1xx informational responses")
            return
        self._begin_response(head, length, end)

    def _begin_response(self, head: Head, length: int | None, end: bool) -> None:
        if end and length is None:
            length = 0
        self._remaining = length
        self._response = StreamingResponse(self, head, -1 if length is None else length)
        self._connection.head_arrived(self)
        if end:
            self._end_received()

    def data_received(self, data: bytes, size: int, end: bool) -> None:
        """
        Handle DATA.

        @param data: The payload without padding.
        @param size: Bytes that count for flow control.
        @param end: Whether the response ends with it.
        @raise Http2StreamError: It is not a part of the body, or more than the window.
        """
        response = self._response
        if response is None:
            raise self._error("received DATA before a HEADERS frame")
        self.credit += size
        if self.credit > STREAM_WINDOW:
            raise Http2StreamError(self.stream_id, FLOW_CONTROL_ERROR, "the server ignores the window")
        if self._remaining is not None:
            self._remaining -= len(data)
            if self._remaining < 0:
                raise self._error("server replied with more than declared Content-Length")
        if data:
            self._pieces.append(data)
        if end:
            self._end_received()

    def pass_on(self) -> None:
        """Pass on the data of all frames that were read at once: a frame of one byte costs as much as a large one."""
        pieces, self._pieces = self._pieces, []
        if pieces and self._response is not None:
            self._response.received(b"".join(pieces))
        if not self._paused:
            self._return_credit()

    def _end_received(self) -> None:
        if self._remaining:
            raise self._error("server replied with less than declared Content-Length")
        response = self._response
        assert response is not None, "the head has arrived"
        # No more is to be sent.
        self._paused = True
        self.pass_on()
        if self.closed:
            # The consumer has discarded the response.
            return
        if self._sent:
            self._connection.ended(self)
        else:
            # The server does not want the rest of the request.
            self._connection.reset(self, CANCEL)
        response.finish()

    def _error(self, text: str) -> Http2StreamError:
        return Http2StreamError(self.stream_id, PROTOCOL_ERROR, text)

    def answer(self) -> None:
        """Pass the response on."""
        self.stop_timer()
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.called:
            assert self._response is not None, "the head has arrived"
            waiter.callback(self._response)

    def close(self) -> None:
        """Stop sending: the stream has ended."""
        self.closed = True
        self.stop_timer()
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.cancel()

    def fail(self, error: Unreachable) -> None:
        """Fail the request, or the rest of the response."""
        waiter, self.waiter = self.waiter, None
        if waiter is not None and not waiter.called:
            waiter.errback(error)
        if self._response is not None:
            self.pass_on()
            self._response.lost(Failure(error))

    def stop_timer(self) -> None:
        """Stop the time limit of the head."""
        timer, self.timer = self.timer, None
        if timer is not None and timer.active():
            timer.cancel()

    # The source of the response, see kubetwist.client.connection.Exchange.

    def pause_reading(self) -> None:
        """Let the server send no more than the rest of its window."""
        self._paused = True

    def resume_reading(self) -> None:
        """Let the server send more."""
        self._paused = False
        self._return_credit()

    def _return_credit(self) -> None:
        if self.credit >= STREAM_WINDOW // 2 and not self.closed:
            credit, self.credit = self.credit, 0
            self._connection.write(window_update(self.stream_id, credit))

    def abort(self) -> None:
        """Reset the stream, and discard what has arrived."""
        self._pieces = []
        self._connection.reset(self, CANCEL)
        self.fail(Unreachable("context canceled"))

    def switch_protocol(self, protocol: IProtocol, early: Sequence[bytes]) -> None:
        """Fail: a stream never switches to another protocol."""
        raise RuntimeError("a stream of HTTP/2 cannot switch to another protocol")
