"""
Frames of HTTP/2, blocks of headers, and messages of gRPC: bytes in, values out, without I/O.

Frames of every call (data, headers) are parsed here; other and padded frames are parsed by hyperframe, which
takes some microseconds for each. L{kubetwist.storage.etcd._http2} interprets the frames.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from struct import Struct
from typing import Final
from urllib.parse import unquote_to_bytes

from attrs import frozen
from hpack import Decoder, Encoder, HPACKError
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import DataFrame, Frame, HeadersFrame

from ._errors import (
    UNKNOWN,
    ProtocolError,
)

# Frame types.
DATA: Final = 0
HEADERS: Final = 1
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

# Flags. An acknowledgement has the same bit as the end of a stream.
END_STREAM: Final = 1
ACK: Final = 1
END_HEADERS: Final = 4
PADDED: Final = 8
PRIORITY: Final = 32

#: The largest frame that the peer may send; HTTP/2's default.
MAX_FRAME_SIZE: Final = 16384
#: Maximum size in bytes of a block of headers, in one frame and its continuations.
MAX_HEADER_SIZE: Final = 64 << 10
MAX_CONTINUATIONS: Final = 32
#: The bytes that the headers of all requests need in a table: with this size, no entry is ever evicted.
ROOMY_TABLE: Final = 2048
#: HTTP/2's default size of the header table.
MAX_HEADER_TABLE_SIZE: Final = 4096
#: Maximum number of bytes of an error text that are kept.
MAX_MESSAGE_TEXT: Final = 4096

_HEADER: Final = Struct(">HBBBL")
#: The prefix of each message: whether it is compressed, and its length.
_PREFIX: Final = Struct(">BL")
_STREAM: Final = 0x7FFFFFFF

#: Type, flags, stream, content, and the bytes that count for the flow control windows.
RawFrame = tuple[int, int, int, bytes, int]


def frame_header(size: int, kind: int, flags: int, stream: int) -> bytes:
    """
    Return the header of a frame.

    @param size: The length of the payload, in bytes.
    @param kind: The type of the frame.
    @param flags: The flags, combined.
    @param stream: The stream id; 0 for the connection.
    """
    return _HEADER.pack(size >> 8, size & 255, kind, flags, stream)


def parse_frame(kind: int, flags: int, stream: int, content: bytes) -> Frame:
    """
    Parse a frame of any type.

    @raise ProtocolError: It is malformed.
    """
    try:
        frame, _ = Frame.parse_frame_header(memoryview(frame_header(len(content), kind, flags, stream)))
        frame.parse_body(memoryview(content))
    except (HyperframeError, ValueError) as error:
        raise ProtocolError(f"etcd sent a frame that cannot be read: {error}") from None
    return frame


class FrameReader:
    """
    Splits a stream of bytes into frames, however it is fragmented.

    Padding is removed, and a block of headers with its continuations is one frame.
    """

    __slots__ = ("_block", "_rest")

    def __init__(self) -> None:
        self._rest = b""
        #: An incomplete block of headers: flags, stream, content so far.
        self._block: tuple[int, int, list[bytes]] | None = None

    def feed(self, data: bytes) -> list[RawFrame]:
        """
        Add received bytes.

        @return: The frames that are complete.
        @raise ProtocolError: A frame is too large, or invalid at its position.
        """
        buffer = self._rest + data if self._rest else data
        position, end = 0, len(buffer)
        frames: list[RawFrame] = []
        unpack = _HEADER.unpack_from
        while end - position >= 9:
            high, low, kind, flags, stream = unpack(buffer, position)
            size = high << 8 | low
            if size > MAX_FRAME_SIZE:
                raise ProtocolError(f"etcd sent invalid HTTP/2: {buffer[position : position + 24]!r}")
            stop = position + 9 + size
            if stop > end:
                break
            content = buffer[position + 9 : stop]
            position = stop
            stream &= _STREAM
            if kind <= HEADERS:
                if not stream:
                    raise ProtocolError("etcd sent DATA or HEADERS without a stream id")
                if flags & PADDED or (kind == HEADERS and flags & PRIORITY):
                    padded = parse_frame(kind, flags, stream, content)
                    assert isinstance(padded, (DataFrame, HeadersFrame)), "the type determines the class"
                    content = padded.data
            if self._block is None and (kind == DATA or (kind == HEADERS and flags & END_HEADERS)):
                frames.append((kind, flags, stream, content, size))
            else:
                frames += self._unusual(kind, flags, stream, content, size)
        self._rest = buffer[position:]
        return frames

    def _unusual(self, kind: int, flags: int, stream: int, content: bytes, size: int) -> Iterable[RawFrame]:
        if self._block is None:
            if kind == CONTINUATION:
                raise ProtocolError("etcd sent CONTINUATION without HEADERS")
            if kind == HEADERS:
                self._block = (flags, stream, [content])
                return ()
            return ((kind, flags, stream, content, size),)
        first_flags, of, parts = self._block
        if kind != CONTINUATION or stream != of:
            raise ProtocolError("etcd broke off a block of headers")
        parts.append(content)
        if len(parts) > MAX_CONTINUATIONS or sum(map(len, parts)) > MAX_HEADER_SIZE:
            raise ProtocolError("etcd sent headers without an end")
        if not flags & END_HEADERS:
            return ()
        self._block = None
        return ((HEADERS, first_flags | END_HEADERS, of, b"".join(parts), size),)


@frozen
class Head:
    """
    Decode a block of headers.

    @ivar status: The status of HTTP; 0 if there is none: then these are trailers.
    @ivar grpc: Whether the content type is gRPC.
    @ivar code: The code of gRPC; L{None} if there is none.
    @ivar message: The message of the code.
    """

    status: int
    grpc: bool
    code: int | None
    message: str


@lru_cache(maxsize=64)
def read_head(block: bytes) -> Head:
    """
    Decode a block of headers.

    A block always decodes to the same headers, as the peer may use no dynamic table; nearly all blocks are equal.

    @raise ProtocolError: It is malformed.
    """
    decoder = Decoder(MAX_HEADER_SIZE)
    decoder.max_allowed_table_size = 0
    decoder.header_table_size = 0
    try:
        fields = [(name.lower(), value) for name, value, *_ in decoder.decode(block, raw=True)]
    except (HPACKError, UnicodeError) as error:
        raise ProtocolError(f"etcd sent headers that cannot be read: {error}") from None
    found: dict[bytes, bytes] = {}
    for name, value in fields:
        if name.startswith(b":") and (name != b":status" or name in found):
            raise ProtocolError(f"etcd sent a header that no response has: {name[:40]!r}")
        found[name] = value
    status, code = found.get(b":status", b"0"), found.get(b"grpc-status")
    if not status.isdigit() or len(status) > 3 or (code is not None and (not code.isdigit() or len(code) > 3)):
        raise ProtocolError(f"etcd sent a status that is none: {status[:40]!r}, {(code or b'')[:40]!r}")
    kind = found.get(b"content-type", b"")
    text = unquote_to_bytes(found.get(b"grpc-message", b"")[:MAX_MESSAGE_TEXT]).decode("utf-8", "replace")
    return Head(
        int(status),
        kind == b"application/grpc" or kind.startswith((b"application/grpc+", b"application/grpc;")),
        None if code is None else int(code),
        text,
    )


#: The codes of gRPC for responses without gRPC, by the status of HTTP.
#: @see: grpc/grpc, C{doc/http-grpc-status-mapping.md}.
HTTP_CODES: Final = {400: 13, 401: 16, 403: 7, 404: 12, 429: 14, 502: 14, 503: 14, 504: 14}


def http_code(status: int) -> int:
    """Return the code of gRPC for a response of plain HTTP."""
    return HTTP_CODES.get(status, UNKNOWN)


class HeadWriter:
    """
    Encodes the headers of requests, in the order in which they are sent.

    A header sent before is an index into the peer's table: a few bytes, as long as all headers repeat.
    """

    def __init__(self, authority: str, scheme: str) -> None:
        self._encoder = Encoder()
        self._blocks: dict[bytes, bytes] = {}
        self._authority = authority.encode("ascii")
        self._scheme = scheme.encode("ascii")

    def limit_table(self, size: int) -> None:
        """Limit the table to the peer's size; a table that is too small for all headers stays empty."""
        encoder = self._encoder
        table_size = min(size, MAX_HEADER_TABLE_SIZE) if size >= ROOMY_TABLE else 0
        if table_size != encoder.header_table_size:
            encoder.header_table_size = table_size
            # Only the changes since the last block are announced, or one of them might be too large by now.
            changes = encoder.table_size_changes
            encoder.table_size_changes = [min(changes), table_size] if min(changes) < table_size else [table_size]
        self._blocks.clear()

    def block(self, path: bytes, *, require_leader: bool = False) -> bytes:
        """
        Return the block of headers of a request.

        @param require_leader: Whether a member without a leader refuses and ends the call. Always the same
            for a path.
        """
        block = self._blocks.get(path)
        if block is not None:
            return block
        headers = [
            (b":method", b"POST"),
            (b":scheme", self._scheme),
            (b":path", path),
            (b":authority", self._authority),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
            (b"user-agent", b"kubetwist"),
        ]
        if require_leader:
            headers.append((b"hasleader", b"true"))
        block = self._encoder.encode(headers)
        reset_for_retry = self._encoder.encode(headers)
        if reset_for_retry != block:
            # An insertion into the table shifts all other entries.
            self._blocks.clear()
        self._blocks[path] = reset_for_retry
        return block


def prefixed(message: bytes) -> bytes:
    """Return a message with its prefix."""
    return _PREFIX.pack(0, len(message)) + message


class MessageReader:
    """Splits the data of a stream into messages, however it is fragmented."""

    __slots__ = ("_limit", "_parts", "_size", "_wanted")

    def __init__(self, limit: int) -> None:
        """
        @param limit: Maximum size in bytes of one message.
        """
        self._limit = limit
        self._parts: list[bytes] = []
        #: The number of bytes buffered, and the number needed for the next message.
        self._size = 0
        self._wanted = 5

    def feed(self, data: bytes) -> list[bytes]:
        """
        Add received data.

        @return: The messages that are complete.
        @raise ProtocolError: A message is too large, or compressed, which the request does not allow.
        """
        self._parts.append(data)
        self._size += len(data)
        if self._size < self._wanted:
            return []
        buffer = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        position, end = 0, self._size
        messages = []
        self._wanted = 5
        while end - position >= 5:
            compressed, size = _PREFIX.unpack_from(buffer, position)
            if compressed:
                raise ProtocolError("etcd sent a message that is compressed")
            if size > self._limit:
                raise ProtocolError("etcd sent a message that is too large")
            stop = position + 5 + size
            if stop > end:
                self._wanted = 5 + size
                break
            messages.append(buffer[position + 5 : stop])
            position = stop
        self._size = end - position
        self._parts = [buffer[position:]] if self._size else []
        return messages

    @property
    def idle(self) -> bool:
        """Return whether there is no incomplete message."""
        return not self._size
