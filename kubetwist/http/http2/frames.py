"""
Frames of HTTP/2: bytes in, values out, without I/O.

@see: RFC 9113, sections 3.4, 4 and 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

#: The first bytes that a client sends.
PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

# Frame types.
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

# Flags. An acknowledgement has the same bit as the end of a stream.
END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20
#: Not on the wire, where flags have eight bits: the stream of a HEADERS frame depends on itself.
SELF_DEPENDENT: Final = 0x100

# Parameters of SETTINGS.
SETTINGS_HEADER_TABLE_SIZE: Final = 1
SETTINGS_ENABLE_PUSH: Final = 2
SETTINGS_MAX_CONCURRENT_STREAMS: Final = 3
SETTINGS_INITIAL_WINDOW_SIZE: Final = 4
SETTINGS_MAX_FRAME_SIZE: Final = 5
SETTINGS_MAX_HEADER_LIST_SIZE: Final = 6

# Error codes.
NO_ERROR: Final = 0
PROTOCOL_ERROR: Final = 1
INTERNAL_ERROR: Final = 2
FLOW_CONTROL_ERROR: Final = 3
STREAM_CLOSED: Final = 5
FRAME_SIZE_ERROR: Final = 6
REFUSED_STREAM: Final = 7
CANCEL: Final = 8
COMPRESSION_ERROR: Final = 9
ENHANCE_YOUR_CALM: Final = 11

#: Maximum payload of a frame in both directions; the default of the protocol.
MAX_FRAME_SIZE: Final = 16384
#: Maximum number of parts of data that are divided into frames without joining them before.
MAX_FRAMED_PARTS: Final = 16
#: The windows before any SETTINGS.
INITIAL_WINDOW: Final = 65535
MAX_WINDOW: Final = 2**31 - 1
MAX_STREAM_ID: Final = 2**31 - 1
#: Maximum number of CONTINUATION frames of one header block.
MAX_CONTINUATIONS: Final = 32

_HEADER: Final = Struct(">HBBBL")
_UINT32: Final = Struct(">L")
_SETTING: Final = Struct(">HL")
_GOAWAY: Final = Struct(">LL")
#: Lengths of frames that have one length.
_LENGTHS: Final = {PRIORITY: 5, RST_STREAM: 4, PING: 8, WINDOW_UPDATE: 4}
_ON_STREAMS: Final = frozenset((DATA, HEADERS, PRIORITY, RST_STREAM, CONTINUATION))
_ON_CONNECTIONS: Final = frozenset((SETTINGS, PING, GOAWAY))

#: Type, flags, stream id, payload without padding, and the length that counts for flow control.
RawFrame = tuple[int, int, int, bytes, int]


class Http2ConnectionError(Exception):
    """
    The client breaks a rule such that the connection must end.

    @ivar code: The error code of GOAWAY.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Http2StreamError(Exception):
    """
    The client breaks a rule such that a stream must end.

    @ivar stream_id: The stream.
    @ivar code: The error code of RST_STREAM.
    """

    def __init__(self, stream_id: int, code: int, message: str) -> None:
        super().__init__(message)
        self.stream_id = stream_id
        self.code = code


class FrameReader:
    """
    Splits the bytes of the peer into frames, after the connection preface of a client.

    Padding and priorities are removed, and a header block is one frame with its continuations.

    @ivar exhausted: Whether the last frame was the end of the received bytes.
    """

    __slots__ = ("_block", "_buffer", "_max_block", "_position", "_preface", "exhausted")

    def __init__(self, max_block: int, preface: bytes = PREFACE) -> None:
        """
        @param max_block: Maximum size of a header block, in bytes.
        @param preface: What the peer sends before its first frame; servers send nothing.
        """
        self._buffer = b""
        self._position = 0
        self.exhausted = False
        self._max_block = max_block
        #: What has not arrived of the preface.
        self._preface = preface
        #: An incomplete header block: flags, stream id, fragments, their size.
        self._block: tuple[int, int, list[bytes], int] | None = None

    @property
    def pending(self) -> bool:
        """Return whether the client has to complete its preface, a frame or a header block."""
        return bool(self._preface or self._block or len(self._buffer) > self._position)

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        rest = self._buffer[self._position :] if self._position else self._buffer
        self._buffer = rest + data if rest else data
        self._position = 0
        self.exhausted = False
        if self._preface:
            expected = self._preface[: len(data)]
            if not data.startswith(expected):
                raise Http2ConnectionError(PROTOCOL_ERROR, "the client did not send the preface of HTTP/2")
            self._preface = self._preface[len(expected) :]
            self._buffer = data[len(expected) :]

    def next_frame(self) -> RawFrame | None:
        """
        Return the next complete frame; L{None} if there is none.

        @raise Http2ConnectionError: A frame has a wrong size, or is invalid at its position.
        @raise Http2StreamError: The same for one stream.
        """
        while True:
            buffer, begin = self._buffer, self._position + 9
            if len(buffer) < begin:
                return None
            high, low, kind, flags, stream_id = _HEADER.unpack_from(buffer, begin - 9)
            size = high << 8 | low
            if size > MAX_FRAME_SIZE:
                raise Http2ConnectionError(FRAME_SIZE_ERROR, f"a frame has {size} bytes")
            end = begin + size
            if len(buffer) < end:
                return None
            self._position = end
            stream_id &= MAX_STREAM_ID
            payload = buffer[begin:end]
            if self._block is not None:
                if kind != CONTINUATION or stream_id != self._block[1]:
                    raise Http2ConnectionError(PROTOCOL_ERROR, "a frame interrupts a header block")
                complete = self._continue_block(payload, flags)
                if complete is not None:
                    self.exhausted = end == len(buffer)
                    return complete
                continue
            if kind <= HEADERS:
                if not stream_id:
                    raise Http2ConnectionError(PROTOCOL_ERROR, "DATA or HEADERS without a stream")
                if flags & (PADDED | WITH_PRIORITY):
                    payload, flags = _strip(kind, flags, stream_id, payload)
                if kind == HEADERS and not flags & END_HEADERS:
                    self._block = flags, stream_id, [payload], len(payload)
                    continue
            else:
                _check(kind, flags, stream_id, size)
            self.exhausted = end == len(buffer)
            return kind, flags, stream_id, payload, size

    def _continue_block(self, payload: bytes, flags: int) -> RawFrame | None:
        """Add a fragment to the incomplete header block, and return the block when it is complete."""
        assert self._block is not None, "there is an incomplete block"
        first_flags, stream_id, fragments, size = self._block
        fragments.append(payload)
        size += len(payload)
        if size > self._max_block or len(fragments) > MAX_CONTINUATIONS:
            raise Http2ConnectionError(ENHANCE_YOUR_CALM, "a header block is too long")
        if not flags & END_HEADERS:
            self._block = first_flags, stream_id, fragments, size
            return None
        self._block = None
        return HEADERS, first_flags | END_HEADERS, stream_id, b"".join(fragments), size


def _strip(kind: int, flags: int, stream_id: int, payload: bytes) -> tuple[bytes, int]:
    """Remove padding and priority of DATA or HEADERS."""
    begin, end = 0, len(payload)
    if flags & PADDED:
        if not payload:
            raise Http2ConnectionError(FRAME_SIZE_ERROR, "a padded frame is empty")
        begin, end = 1, end - payload[0]
    if kind == HEADERS and flags & WITH_PRIORITY:
        if len(payload) < begin + 5:
            raise Http2ConnectionError(FRAME_SIZE_ERROR, "a frame is too short for its priority")
        if _UINT32.unpack_from(payload, begin)[0] & MAX_STREAM_ID == stream_id:
            flags |= SELF_DEPENDENT
        begin += 5
    if end < begin:
        raise Http2ConnectionError(PROTOCOL_ERROR, "the padding is longer than its frame")
    return payload[begin:end], flags


def _check(kind: int, flags: int, stream_id: int, size: int) -> None:
    """Check the stream and the length of a frame other than DATA and HEADERS."""
    if kind in (CONTINUATION, PUSH_PROMISE):
        raise Http2ConnectionError(PROTOCOL_ERROR, f"a frame of type {kind} is at a wrong position")
    if (kind in _ON_STREAMS and not stream_id) or (kind in _ON_CONNECTIONS and stream_id):
        raise Http2ConnectionError(PROTOCOL_ERROR, f"a frame of type {kind} has the stream id {stream_id}")
    length = _LENGTHS.get(kind)
    if length is not None:
        if size != length:
            if kind == PRIORITY:
                raise Http2StreamError(stream_id, FRAME_SIZE_ERROR, f"PRIORITY has {size} bytes")
            raise Http2ConnectionError(FRAME_SIZE_ERROR, f"a frame of type {kind} has {size} bytes")
    elif kind == SETTINGS:
        if size % 6 or (flags & ACK and size):
            raise Http2ConnectionError(FRAME_SIZE_ERROR, f"SETTINGS has {size} bytes")
    elif kind == GOAWAY and size < 8:
        raise Http2ConnectionError(FRAME_SIZE_ERROR, f"GOAWAY has {size} bytes")


def frame_header(size: int, kind: int, flags: int, stream_id: int) -> bytes:
    """
    Return the header of a frame.

    @param size: Length of the payload, in bytes.
    @param kind: Type of the frame.
    @param flags: The flags, combined.
    @param stream_id: The stream; 0 for the connection.
    """
    return _HEADER.pack(size >> 8, size & 255, kind, flags, stream_id)


def parse_uint32(payload: bytes) -> int:
    """Return the number at the start of a payload, such as an error code or the last stream of GOAWAY."""
    number: int = _UINT32.unpack_from(payload)[0]
    return number


def read_settings(payload: bytes, window: int) -> int:
    """
    Check the parameters of SETTINGS, and return the initial window of streams.

    The server does not use the other parameters: it sends no long frames, no pushes, and needs no header table.

    @param window: The initial window before.
    @raise Http2ConnectionError: A value is invalid.
    """
    for name, value in _SETTING.iter_unpack(payload):
        if name == SETTINGS_INITIAL_WINDOW_SIZE:
            if value > MAX_WINDOW:
                raise Http2ConnectionError(FLOW_CONTROL_ERROR, "the initial window is too large")
            window = value
        elif name == SETTINGS_ENABLE_PUSH:
            if value > 1:
                raise Http2ConnectionError(PROTOCOL_ERROR, "ENABLE_PUSH is neither 0 nor 1")
        elif name == SETTINGS_MAX_FRAME_SIZE and not MAX_FRAME_SIZE <= value < 1 << 24:
            raise Http2ConnectionError(PROTOCOL_ERROR, "the maximum frame size is invalid")
    return window


def find_setting(payload: bytes, name: int) -> int | None:
    """Return the last value of a parameter in SETTINGS; L{None} without."""
    found = None
    for one, value in _SETTING.iter_unpack(payload):
        if one == name:
            found = value
    return found


def settings_frame(parameters: list[tuple[int, int]]) -> bytes:
    """Return SETTINGS with some parameters."""
    payload = b"".join([_SETTING.pack(name, value) for name, value in parameters])
    return frame_header(len(payload), SETTINGS, 0, 0) + payload


SETTINGS_ACK: Final = frame_header(0, SETTINGS, ACK, 0)


def ping(payload: bytes) -> bytes:
    """Return a PING."""
    return frame_header(8, PING, 0, 0) + payload


def ping_ack(payload: bytes) -> bytes:
    """Return the acknowledgement of a PING."""
    return frame_header(8, PING, ACK, 0) + payload


def window_update(stream_id: int, increment: int) -> bytes:
    """Return WINDOW_UPDATE of a stream; 0 for the connection."""
    return frame_header(4, WINDOW_UPDATE, 0, stream_id) + _UINT32.pack(increment)


def rst_stream(stream_id: int, code: int) -> bytes:
    """Return RST_STREAM with an error code."""
    return frame_header(4, RST_STREAM, 0, stream_id) + _UINT32.pack(code)


def goaway(last_stream_id: int, code: int, text: bytes = b"") -> bytes:
    """
    Return GOAWAY.

    @param last_stream_id: Streams after it were not processed.
    @param code: The error code.
    @param text: Debug data.
    """
    return frame_header(8 + len(text), GOAWAY, 0, 0) + _GOAWAY.pack(last_stream_id, code) + text


def data_frames(
    stream_id: int, parts: Sequence[bytes | memoryview], size: int, end_stream: bool, before: bytes = b""
) -> bytes:
    """
    Return data as DATA, in several frames if they are long. Long parts are copied once.

    @param stream_id: The stream.
    @param parts: The data.
    @param size: Their length, in bytes.
    @param end_stream: Whether the stream ends with them.
    @param before: Frames that precede them.
    """
    flags = END_STREAM if end_stream else 0
    if size <= MAX_FRAME_SIZE:
        return b"".join((before, frame_header(size, DATA, flags, stream_id), *parts))
    if len(parts) > MAX_FRAMED_PARTS:
        # A copy takes less time than the loop.
        parts = (b"".join(parts),)
    frames: list[bytes | memoryview] = [before]
    header = _HEADER.pack(MAX_FRAME_SIZE >> 8, MAX_FRAME_SIZE & 255, DATA, 0, stream_id)
    room, left = 0, size
    for part in parts:
        view, position, length = memoryview(part), 0, len(part)
        while position < length:
            if not room:
                if left <= MAX_FRAME_SIZE:
                    header = _HEADER.pack(left >> 8, left & 255, DATA, flags, stream_id)
                frames.append(header)
                room = MAX_FRAME_SIZE
                left -= room
            end = position + room
            if end > length:
                frames.append(view[position:])
                room = end - length
                break
            frames.append(view[position:end])
            room, position = 0, end
    return b"".join(frames)


def response_frames(stream_id: int, block: bytes, body: bytes) -> bytes:
    """Return a header block, and a body of at most one frame that ends the stream."""
    size, length = len(block), len(body)
    if size > MAX_FRAME_SIZE:
        return header_frames(stream_id, block, False) + frame_header(length, DATA, END_STREAM, stream_id) + body
    return b"".join(
        (
            _HEADER.pack(size >> 8, size & 255, HEADERS, END_HEADERS, stream_id),
            block,
            _HEADER.pack(length >> 8, length & 255, DATA, END_STREAM, stream_id),
            body,
        )
    )


def header_frames(stream_id: int, block: bytes, end_stream: bool) -> bytes:
    """Return a header block as HEADERS, and CONTINUATION for a long one."""
    flags = END_STREAM if end_stream else 0
    if len(block) <= MAX_FRAME_SIZE:
        return frame_header(len(block), HEADERS, flags | END_HEADERS, stream_id) + block
    parts: list[bytes] = []
    for begin in range(0, len(block), MAX_FRAME_SIZE):
        fragment = block[begin : begin + MAX_FRAME_SIZE]
        last = END_HEADERS if begin + MAX_FRAME_SIZE >= len(block) else 0
        parts += (frame_header(len(fragment), CONTINUATION if begin else HEADERS, flags | last, stream_id), fragment)
        flags = 0
    return b"".join(parts)
