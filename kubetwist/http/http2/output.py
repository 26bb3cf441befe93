"""
Flow control of the responses of one connection, and their order. No I/O.

A stream sends directly while nothing is in its way. Otherwise its data wait, its producer is paused, and the streams
that can send take turns of one frame, those with watch events first.

@see: RFC 9113, section 5.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from .budgets import ControlBudget
from .frames import (
    FLOW_CONTROL_ERROR,
    INITIAL_WINDOW,
    MAX_FRAME_SIZE,
    MAX_WINDOW,
    Http2ConnectionError,
    Http2StreamError,
    data_frames,
    header_frames,
    response_frames,
)
from .responsehead import NO_TABLE

#: Bytes that a stream sends at once while no other one waits; a piece of a long response fits.
MAX_WRITE: Final = 12 * MAX_FRAME_SIZE


class Sender(Protocol):
    """
    A stream, as the output uses it.

    @ivar stream_id: The id.
    @ivar window: Bytes that the client accepts on this stream.
    @ivar urgent: Whether its data are sent before the data of other streams and connections.
    @ivar reads: Whether its request only reads, so that the response need not follow watch events.
    @ivar backlog: Its data that wait; L{None} while all are sent.
    """

    stream_id: int
    window: int
    urgent: bool
    reads: bool
    backlog: Backlog | None

    def pause_producer(self) -> None:
        """Pause the producer of the response."""

    def resume_producer(self) -> None:
        """Resume the producer of the response."""

    def end_sent(self) -> None:
        """Handle that the end of the response was sent."""


class Backlog:
    """
    Data of a stream that wait.

    @ivar size: Number of bytes.
    @ivar since: Time of the last progress.
    @ivar ends: Whether the response ends after them.
    """

    __slots__ = ("ends", "pieces", "queued", "since", "size")

    def __init__(self, now: float) -> None:
        self.pieces: deque[memoryview] = deque()
        self.size = 0
        self.since = now
        self.ends = False
        #: Whether the stream is in a queue of streams that can send.
        self.queued = False

    def take(self, limit: int) -> tuple[list[memoryview], int]:
        """Remove at most C{limit} bytes, and return them with their number."""
        pieces, size = self.pieces, 0
        taken: list[memoryview] = []
        while pieces and size < limit:
            piece = pieces.popleft()
            if len(piece) > limit - size:
                pieces.appendleft(piece[limit - size :])
                piece = piece[: limit - size]
            taken.append(piece)
            size += len(piece)
        self.size -= size
        return taken, size


class Output:
    """
    The sending side of a connection.

    @ivar window: Bytes that the client accepts on the connection.
    @ivar initial_window: Window of new streams.
    @ivar blocked: Whether the transport accepts no data for now.
    @ivar size: Bytes that wait, of all streams.
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        write_first: Callable[[bytes], object],
        now: Callable[[], float],
        control: ControlBudget,
        write_unordered: Callable[[bytes], object] | None = None,
    ) -> None:
        """
        @param write: Writes to the transport.
        @param write_first: The same for data that precede the data of other connections.
        @param now: Returns the time.
        @param control: Sent DATA frames are counted for it.
        @param write_unordered: Writes data that need not follow watch events; by default C{write}.
        """
        self._write = write
        self._write_first = write_first
        self._write_unordered = write_unordered or write
        self._now = now
        self._control = control
        self.window = INITIAL_WINDOW
        self.initial_window = INITIAL_WINDOW
        self.blocked = False
        self.size = 0
        self._urgent: deque[Sender] = deque()
        self._waiting: deque[Sender] = deque()
        self._pumping = False
        # The encoder uses no table, which the first block announces. Urgent data may overtake the first block.
        self._prefix = self._urgent_prefix = NO_TABLE

    def send_head(self, stream: Sender, block: bytes, end: bool) -> None:
        """Send a header block, which flow control does not limit."""
        self._writer(stream)(self._head_frames(stream, block, end))

    def _head_frames(self, stream: Sender, block: bytes, end: bool) -> bytes:
        if stream.urgent:
            prefix, self._urgent_prefix = self._urgent_prefix, b""
        else:
            prefix, self._prefix = self._prefix, b""
        return header_frames(stream.stream_id, prefix + block, end)

    def _writer(self, stream: Sender) -> Callable[[bytes], object]:
        if stream.urgent:
            return self._write_first
        return self._write_unordered if stream.reads else self._write

    def send_response(self, stream: Sender, block: bytes, body: bytes) -> None:
        """Send a whole response: a header block, and the body if there is one."""
        size = len(body)
        if (
            0 < size <= MAX_FRAME_SIZE
            and size <= stream.window
            and size <= self.window
            and not (self.blocked or self._waiting or self._urgent or self._prefix or stream.urgent)
        ):
            stream.window -= size
            self.window -= size
            # The same as _writer does, in a path that most requests take.
            (self._write_unordered if stream.reads else self._write)(response_frames(stream.stream_id, block, body))
            self._control.sent_frames += 1
            stream.end_sent()
            return
        self.send_head(stream, block, not size)
        if size:
            self.send_data(stream, body, True)
        else:
            stream.end_sent()

    def send_data(self, stream: Sender, data: bytes, end: bool) -> None:
        """
        Send a part of a response, now or later.

        @param stream: The stream; its producer is paused if data wait.
        @param data: May be empty.
        @param end: Whether the response ends with it.
        """
        self.send_parts(stream, (data,), len(data), end)

    def send_parts(
        self,
        stream: Sender,
        parts: Sequence[bytes | memoryview],
        size: int,
        end: bool,
        block: bytes | None = None,
    ) -> None:
        """
        Send a part of a response as L{send_data} does.

        @param stream: The stream; its producer is paused if data wait.
        @param parts: The data.
        @param size: Their length, in bytes.
        @param end: Whether the response ends with them.
        @param block: The header block of the response, if it begins with them.
        """
        head = b"" if block is None else self._head_frames(stream, block, False)
        backlog = stream.backlog
        if backlog is not None and not (size or backlog.pieces):
            # The end needs no window.
            self.drop(stream)
            backlog = None
        if backlog is None:
            if (
                size <= MAX_WRITE
                and size <= stream.window
                and size <= self.window
                and not (self.blocked or self._waiting or self._urgent)
            ) or not size:
                stream.window -= size
                self.window -= size
                self._writer(stream)(data_frames(stream.stream_id, parts, size, end, head))
                self._control.sent_frames += 1 + size // MAX_FRAME_SIZE
                if end:
                    stream.end_sent()
                elif self.blocked and self.wait_for_window(stream):
                    stream.pause_producer()
                return
            backlog = stream.backlog = Backlog(self._now())
        if head:
            self._writer(stream)(head)
        if size:
            backlog.pieces.extend(map(memoryview, parts))
            backlog.size += size
            self.size += size
        backlog.ends = backlog.ends or end
        self._enqueue(stream)
        self.pump()
        if stream.backlog is not None:
            stream.pause_producer()

    def wait_for_window(self, stream: Sender) -> bool:
        """
        Return whether the client accepts no data on a stream now.

        Then its producer is resumed when the client does.
        """
        if stream.backlog is not None:
            return True
        if stream.window > 0 and self.window > 0 and not (self.blocked or self._waiting or self._urgent):
            return False
        stream.backlog = Backlog(self._now())
        self._enqueue(stream)
        return True

    def drop(self, stream: Sender) -> None:
        """Drop the data of a stream that has ended."""
        backlog, stream.backlog = stream.backlog, None
        if backlog is not None:
            self.size -= backlog.size
            if backlog.queued:
                (self._urgent if stream in self._urgent else self._waiting).remove(stream)

    def add_window(self, increment: int) -> None:
        """
        Handle WINDOW_UPDATE of the connection.

        @raise Http2ConnectionError: The window is too large.
        """
        self.window += increment
        if self.window > MAX_WINDOW:
            raise Http2ConnectionError(FLOW_CONTROL_ERROR, "the window of the connection is too large")
        self.pump()

    def add_stream_window(self, stream: Sender, increment: int) -> None:
        """
        Handle WINDOW_UPDATE of a stream.

        @raise Http2StreamError: The window is too large.
        """
        stream.window += increment
        if stream.window > MAX_WINDOW:
            raise Http2StreamError(stream.stream_id, FLOW_CONTROL_ERROR, "the window of a stream is too large")
        if stream.backlog is not None:
            self._enqueue(stream)
            self.pump()

    def change_initial_window(self, streams: Iterable[Sender], window: int) -> None:
        """
        Handle another initial window, which applies to open streams as well.

        The caller continues with L{release} when it has acknowledged the change.

        @raise Http2ConnectionError: A window is too large.
        """
        increment, self.initial_window = window - self.initial_window, window
        for stream in streams:
            stream.window += increment
            if stream.window > MAX_WINDOW:
                raise Http2ConnectionError(FLOW_CONTROL_ERROR, "the window of a stream is too large")

    def release(self, streams: Iterable[Sender]) -> None:
        """Send what the windows of streams allow now."""
        for stream in streams:
            self._enqueue(stream)
        self.pump()

    def unblock(self) -> None:
        """Handle that the transport accepts data again."""
        self.blocked = False
        self.pump()

    def _enqueue(self, stream: Sender) -> None:
        backlog = stream.backlog
        if backlog is not None and not backlog.queued and stream.window > 0:
            backlog.queued = True
            (self._urgent if stream.urgent else self._waiting).append(stream)

    def pump(self) -> None:
        """Send waiting data, as far as the windows and the transport allow; streams take turns."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self.window > 0 and not self.blocked:
                queue = self._urgent or self._waiting
                if not queue:
                    break
                stream = queue.popleft()
                backlog = stream.backlog
                assert backlog is not None, "a stream without data does not wait"
                backlog.queued = False
                self._send_turn(stream, backlog)
        finally:
            self._pumping = False

    def _send_turn(self, stream: Sender, backlog: Backlog) -> None:
        """Send frames of a stream, and continue with its producer if nothing waits after them."""
        if not (backlog.size or backlog.ends):
            stream.backlog = None
            stream.resume_producer()
            return
        limit = min(stream.window, self.window, MAX_FRAME_SIZE if self._waiting or self._urgent else MAX_WRITE)
        pieces, size = backlog.take(limit)
        ended = backlog.ends and not backlog.pieces
        backlog.since = self._now()
        self.size -= size
        self.window -= size
        stream.window -= size
        if size or ended:
            self._writer(stream)(data_frames(stream.stream_id, pieces, size, ended))
            self._control.sent_frames += 1 + size // MAX_FRAME_SIZE
        if backlog.pieces or (self.blocked and not backlog.ends):
            self._enqueue(stream)
            return
        stream.backlog = None
        if backlog.ends:
            stream.end_sent()
        else:
            stream.resume_producer()
