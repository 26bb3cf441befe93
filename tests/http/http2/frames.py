"""
Frames of HTTP/2, legal and illegal ones: built byte by byte, and parsed.

Builders check nothing, so that tests can send any frame. HPACK blocks are built by hand for the same reason.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import pack, unpack
from typing import Final, NamedTuple

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
PRIORITIZED: Final = 0x20

NO_ERROR: Final = 0x0
PROTOCOL_ERROR: Final = 0x1
INTERNAL_ERROR: Final = 0x2
FLOW_CONTROL_ERROR: Final = 0x3
STREAM_CLOSED: Final = 0x5
FRAME_SIZE_ERROR: Final = 0x6
REFUSED_STREAM: Final = 0x7
CANCEL: Final = 0x8
COMPRESSION_ERROR: Final = 0x9
ENHANCE_YOUR_CALM: Final = 0xB

HEADER_TABLE_SIZE: Final = 0x1
ENABLE_PUSH: Final = 0x2
MAX_CONCURRENT_STREAMS: Final = 0x3
INITIAL_WINDOW_SIZE: Final = 0x4
MAX_FRAME_SIZE: Final = 0x5
MAX_HEADER_LIST_SIZE: Final = 0x6

#: The initial window of streams and connections, and the initial maximum of a frame's payload.
DEFAULT_WINDOW: Final = 65_535
DEFAULT_FRAME_SIZE: Final = 16_384
#: The maximum of a window.
MAX_WINDOW: Final = 2**31 - 1

Fields = Iterable[tuple[bytes, bytes]]

#: The pseudo fields of a request.
GET: Final = ((b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/a"), (b":authority", b"x"))
POST: Final = ((b":method", b"POST"), *GET[1:])


class Frame(NamedTuple):
    """A frame."""

    type: int
    flags: int
    stream: int
    payload: bytes

    def has(self, flag: int) -> bool:
        """Return whether a flag is set."""
        return bool(self.flags & flag)


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """
    Return any frame.

    @param kind: The type; unknown ones are possible.
    @param flags: All flags.
    @param stream: The stream, with the reserved bit.
    @param payload: The payload, at most C{2**24 - 1} bytes.
    """
    return frame_head(len(payload), kind, flags, stream) + payload


def frame_head(length: int, kind: int, flags: int = 0, stream: int = 0) -> bytes:
    """
    Return the first nine bytes of a frame.

    @param length: The length of its payload.
    @param kind: The type.
    @param flags: All flags.
    @param stream: The stream, with the reserved bit.
    """
    return pack(">I", length)[1:] + bytes((kind, flags)) + pack(">I", stream)


def parse_frames(data: bytes) -> tuple[list[Frame], bytes]:
    """Return the complete frames in C{data}, and the rest."""
    found, at = [], 0
    while len(data) >= at + 9:
        end = at + 9 + int.from_bytes(data[at : at + 3], "big")
        if len(data) < end:
            break
        found.append(
            Frame(data[at + 3], data[at + 4], int.from_bytes(data[at + 5 : at + 9], "big"), data[at + 9 : end])
        )
        at = end
    return found, data[at:]


def integer(value: int, bits: int, first: int = 0) -> bytes:
    """
    Return an integer of HPACK (RFC 7541, 5.1).

    @param bits: The bits of the first byte that belong to it.
    @param first: The other bits of the first byte.
    """
    limit = (1 << bits) - 1
    if value < limit:
        return bytes((first | value,))
    encoded = bytearray((first | limit,))
    value -= limit
    while value >= 128:
        encoded.append(value % 128 | 128)
        value //= 128
    encoded.append(value)
    return bytes(encoded)


def string(value: bytes) -> bytes:
    """Return a string of HPACK, without Huffman coding."""
    return integer(len(value), 7) + value


def literal(name: bytes, value: bytes, first: int = 0x00) -> bytes:
    """
    Return a literal field of HPACK with a literal name.

    @param first: C{0x00} is not indexed, C{0x10} never indexed, C{0x40} added to the dynamic table.
    """
    return bytes((first,)) + string(name) + string(value)


def indexed(index: int) -> bytes:
    """Return an indexed field of HPACK."""
    return integer(index, 7, 0x80)


def table_size(size: int) -> bytes:
    """Return an update of the size of the dynamic table."""
    return integer(size, 5, 0x20)


def block(fields: Fields) -> bytes:
    """Return a header block of literal fields that are not indexed."""
    return b"".join(literal(name, value) for name, value in fields)


def headers(
    stream: int, fields: Fields | bytes = GET, *, end_stream: bool = True, end_headers: bool = True, flags: int = 0
) -> bytes:
    """
    Return a HEADERS frame without padding and priority.

    @param fields: Header fields, or an encoded block.
    @param end_stream: Whether no body follows.
    @param end_headers: Whether no CONTINUATION follows.
    @param flags: Further flags.
    """
    payload = fields if isinstance(fields, bytes) else block(fields)
    flags |= (END_STREAM if end_stream else 0) | (END_HEADERS if end_headers else 0)
    return frame(HEADERS, flags, stream, payload)


def continuation(stream: int, payload: bytes, *, end_headers: bool = True) -> bytes:
    """Return a CONTINUATION frame."""
    return frame(CONTINUATION, END_HEADERS if end_headers else 0, stream, payload)


def data(stream: int, payload: bytes = b"", *, end_stream: bool = False, padding: int | None = None) -> bytes:
    """Return a DATA frame; C{padding} is the number of bytes after the payload, L{None} sends it without padding."""
    flags = END_STREAM if end_stream else 0
    if padding is None:
        return frame(DATA, flags, stream, payload)
    return frame(DATA, flags | PADDED, stream, bytes((padding,)) + payload + bytes(padding))


def settings(*values: tuple[int, int], flags: int = 0, stream: int = 0) -> bytes:
    """Return a SETTINGS frame with pairs of identifier and value."""
    return frame(SETTINGS, flags, stream, b"".join(pack(">HI", name, value) for name, value in values))


def ping(payload: bytes = b"8 octets", flags: int = 0) -> bytes:
    """Return a PING frame."""
    return frame(PING, flags, 0, payload)


def reset(stream: int, code: int = CANCEL) -> bytes:
    """Return a RST_STREAM frame."""
    return frame(RST_STREAM, 0, stream, pack(">I", code))


def goaway(last: int = 0, code: int = NO_ERROR, debug: bytes = b"") -> bytes:
    """Return a GOAWAY frame."""
    return frame(GOAWAY, 0, 0, pack(">II", last, code) + debug)


def window_update(stream: int, increment: int) -> bytes:
    """Return a WINDOW_UPDATE frame."""
    return frame(WINDOW_UPDATE, 0, stream, pack(">I", increment))


def priority(stream: int, depends_on: int = 0, weight: int = 15) -> bytes:
    """Return a PRIORITY frame."""
    return frame(PRIORITY, 0, stream, pack(">IB", depends_on, weight))


def parse_settings(payload: bytes) -> dict[int, int]:
    """Return the settings in a payload."""
    return dict(unpack(">HI", payload[at : at + 6]) for at in range(0, len(payload) - len(payload) % 6, 6))
