"""
Encoding and decoding of SPDY/3.1 frames, without I/O.

Kubelets and clients (moby/spdystream) use the frames of SPDY/3 with its header compression. They do not use flow
control windows, so backpressure applies to the connection and not to single streams.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from attrs import frozen

VERSION: Final = 3
#: Maximum payload by the 24 bit length of a frame.
MAX_PAYLOAD: Final = (1 << 24) - 1
#: Maximum payload of control frames, which are buffered until they are complete; DATA frames are not.
MAX_CONTROL: Final = 32 * 1024
#: Maximum size of a decompressed header block.
MAX_BLOCK: Final = 32 * 1024
#: Maximum number of headers in one block.
MAX_HEADERS: Final = 100
#: Maximum number of settings in one frame; the protocol defines eight.
MAX_SETTINGS: Final = 64
#: Maximum stream id.
MAX_STREAM_ID: Final = (1 << 31) - 1

FLAG_FIN: Final = 1
FLAG_UNIDIRECTIONAL: Final = 2

# Status codes of RST_STREAM.
PROTOCOL_ERROR: Final = 1
INVALID_STREAM: Final = 2
REFUSED_STREAM: Final = 3
CANCEL: Final = 5
INTERNAL_ERROR: Final = 6

# Status codes of GOAWAY.
GOAWAY_OK: Final = 0
GOAWAY_PROTOCOL_ERROR: Final = 1

_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _HEADERS, _WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9

_FIXED_LENGTHS: Final = {_RST_STREAM: 8, _PING: 4, _GOAWAY: 8, _WINDOW_UPDATE: 8}
_MIN_LENGTHS: Final = {_SYN_STREAM: 10, _SYN_REPLY: 4, _HEADERS: 4, _SETTINGS: 4}

_TWO_UINT32: Final = struct.Struct(">II")
_UINT32: Final = struct.Struct(">I")
_CONTROL: Final = 0x80000000

#: Hop-by-hop headers, which are invalid in a stream.
_CONNECTION_HEADERS: Final = frozenset(("connection", "keep-alive", "proxy-connection", "transfer-encoding"))

# The compression dictionary of SPDY/3: these words, each preceded by its length, ...
_WORDS: Final = """
options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match
if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range
referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status 200_OK version HTTP/1.1 url public set-cookie keep-alive origin
"""
# ... followed by this text.
_TEXT: Final = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    b"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized"
    b"403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    b"Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    b"chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    b"text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(_UINT32.pack(len(word)) + word.replace("_", " ").encode() for word in _WORDS.split()) + _TEXT
)

#: Headers by lower-case name; several values of a name are separated by C{"\\0"}.
Headers = Mapping[str, str]


class SPDYError(Exception):
    """Invalid or unsupported SPDY was received; the connection must be closed."""


@frozen
class SynStream:
    """Opens a stream."""

    stream: int
    headers: Headers
    fin: bool = False
    unidirectional: bool = False
    associated: int = 0
    priority: int = 0


@frozen
class SynReply:
    """Accepts a stream."""

    stream: int
    headers: Headers
    fin: bool = False


@frozen
class RstStream:
    """Ends a stream immediately in both directions."""

    stream: int
    status: int


@frozen
class Settings:
    """Settings of the sender: flags and value by id."""

    values: Mapping[int, tuple[int, int]]
    clear: bool = False


@frozen
class Ping:
    """A ping; the receiver returns it unless the id is one of its pings."""

    number: int


@frozen
class GoAway:
    """The sender accepts no more streams."""

    last_good: int
    status: int = GOAWAY_OK


@frozen
class HeadersFrame:
    """A HEADERS frame: further headers of a stream."""

    stream: int
    headers: Headers
    fin: bool = False


@frozen
class WindowUpdate:
    """Increases the flow control window of a stream."""

    stream: int
    delta: int


@frozen
class Data:
    """
    Data of a stream: a DATA frame, or a piece of one.

    @ivar fin: Whether the sender finishes the stream with this data.
    """

    stream: int
    data: bytes
    fin: bool = False


Frame = SynStream | SynReply | RstStream | Settings | Ping | GoAway | HeadersFrame | WindowUpdate | Data


class FrameReader:
    """Decodes frames from received bytes; buffers at most one control frame."""

    def __init__(self) -> None:
        self._buffer = b""
        self._offset = 0
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        # State of the DATA frame that is being read.
        self._stream = 0
        self._data_remaining = 0
        self._fin = False

    def feed(self, data: bytes) -> None:
        """Add received bytes."""
        self._buffer = self._buffer[self._offset :] + data if self._offset < len(self._buffer) else data
        self._offset = 0

    def next(self) -> Frame | None:
        """
        Return the next frame, or piece of a DATA frame; L{None} if it is incomplete.

        @raise SPDYError: The received bytes are not a valid frame.
        """
        if self._data_remaining:
            return self._piece()
        available = len(self._buffer) - self._offset
        if available < 8:
            return None
        first, second = _TWO_UINT32.unpack_from(self._buffer, self._offset)
        flags, length = second >> 24, second & MAX_PAYLOAD
        if not first & _CONTROL:
            if not first:
                raise SPDYError("stream id zero is disallowed")
            self._offset += 8
            if not length:
                return Data(first, b"", bool(flags & FLAG_FIN))
            self._stream, self._data_remaining, self._fin = first, length, bool(flags & FLAG_FIN)
            return self._piece()
        kind = first & 0xFFFF
        if (first >> 16) & 0x7FFF != VERSION:
            raise SPDYError("invalid control frame: it is of another version")
        _check_length(kind, length)
        if available < 8 + length:
            return None
        start = self._offset + 8
        self._offset = start + length
        return self._control(kind, flags, self._buffer[start : self._offset])

    def _piece(self) -> Data | None:
        piece = self._buffer[self._offset : self._offset + self._data_remaining]
        if not piece:
            return None
        self._offset += len(piece)
        self._data_remaining -= len(piece)
        return Data(self._stream, piece, self._fin and not self._data_remaining)

    def _control(self, kind: int, flags: int, payload: bytes) -> Frame:
        if kind == _SETTINGS:
            return _settings(flags, payload)
        number = _UINT32.unpack_from(payload)[0]
        if kind == _GOAWAY:
            return GoAway(number & MAX_STREAM_ID, _UINT32.unpack_from(payload, 4)[0])
        if kind == _WINDOW_UPDATE:
            return WindowUpdate(number & MAX_STREAM_ID, _UINT32.unpack_from(payload, 4)[0] & MAX_STREAM_ID)
        if not number:
            raise SPDYError("stream id zero is disallowed")
        if kind == _PING:
            return Ping(number)
        number &= MAX_STREAM_ID
        if not number:
            raise SPDYError("stream id zero is disallowed")
        fin = bool(flags & FLAG_FIN)
        if kind == _RST_STREAM:
            status = _UINT32.unpack_from(payload, 4)[0]
            if not status:
                raise SPDYError("invalid control frame: a reset without a reason")
            return RstStream(number, status)
        if kind == _SYN_STREAM:
            headers = self._headers(payload[10:])
            if "host" in headers:
                raise SPDYError("frame contained invalid header")
            associated = _UINT32.unpack_from(payload, 4)[0] & MAX_STREAM_ID
            return SynStream(number, headers, fin, bool(flags & FLAG_UNIDIRECTIONAL), associated, payload[8] >> 5)
        headers = self._headers(payload[4:])
        return SynReply(number, headers, fin) if kind == _SYN_REPLY else HeadersFrame(number, headers, fin)

    def _headers(self, packed: bytes) -> dict[str, str]:
        inflate = self._inflate
        try:
            block = inflate.decompress(packed, MAX_BLOCK + 1)
        except zlib.error as error:
            raise SPDYError("cannot decompress headers") from error
        if len(block) > MAX_BLOCK or inflate.unconsumed_tail:
            raise SPDYError(f"the headers have more than {MAX_BLOCK} bytes")
        if inflate.unused_data:
            raise SPDYError("compressed payload size was incorrect")
        return _read_block(block)


def _check_length(kind: int, length: int) -> None:
    """Reject an invalid control frame early."""
    if kind in _FIXED_LENGTHS:
        possible = length == _FIXED_LENGTHS[kind]
    elif kind in _MIN_LENGTHS:
        possible = _MIN_LENGTHS[kind] <= length <= MAX_CONTROL
    else:
        raise SPDYError("invalid control frame: unknown type")
    if not possible:
        raise SPDYError("invalid control frame: invalid length for its type")


def _settings(flags: int, payload: bytes) -> Settings:
    count = _UINT32.unpack_from(payload)[0]
    if count > MAX_SETTINGS or len(payload) != 4 + 8 * count:
        raise SPDYError("invalid control frame: invalid length for its type")
    values = {}
    for at in range(4, len(payload), 8):
        number, value = _TWO_UINT32.unpack_from(payload, at)
        values[number & MAX_PAYLOAD] = (number >> 24, value)
    return Settings(values, bool(flags & FLAG_FIN))


def _read_block(block: bytes) -> dict[str, str]:
    """Return the headers of a decompressed block."""
    texts: list[str] = []
    try:
        count = _UINT32.unpack_from(block)[0]
        if count > MAX_HEADERS:
            raise SPDYError(f"more than {MAX_HEADERS} headers")
        at = 4
        for _ in range(2 * count):
            start = at + 4
            at = start + _UINT32.unpack_from(block, at)[0]
            texts.append(block[start:at].decode("utf-8", "surrogateescape"))
    except struct.error:
        raise SPDYError("compressed payload size was incorrect") from None
    if at != len(block):
        raise SPDYError("compressed payload size was incorrect")
    headers = dict(zip(texts[::2], texts[1::2], strict=True))
    if len(headers) != count:
        raise SPDYError("multiple headers with same name")
    for name in headers:
        if name != name.lower():
            raise SPDYError("header was not lowercased")
        if name in _CONNECTION_HEADERS:
            raise SPDYError("frame contained invalid header")
    return headers


class FrameWriter:
    """Encodes frames. They must be sent in the order of encoding, since header compression has state."""

    def __init__(self) -> None:
        # A small window saves memory: connections are many, and have few headers.
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, 11, 4, zlib.Z_DEFAULT_STRATEGY, DICTIONARY)

    def write(self, frame: Frame) -> bytes:
        """Return an encoded frame."""
        match frame:
            case Data(stream, data, fin):
                return data_frame_header(stream, len(data), fin) + data
            case SynStream(stream, headers, fin, unidirectional, associated, priority):
                flags = fin * FLAG_FIN | unidirectional * FLAG_UNIDIRECTIONAL
                fixed = _TWO_UINT32.pack(stream, associated) + bytes((priority << 5, 0))
                return _control_frame(_SYN_STREAM, flags, fixed + self._block(headers))
            case SynReply(stream, headers, fin):
                return _control_frame(_SYN_REPLY, fin * FLAG_FIN, _UINT32.pack(stream) + self._block(headers))
            case HeadersFrame(stream, headers, fin):
                return _control_frame(_HEADERS, fin * FLAG_FIN, _UINT32.pack(stream) + self._block(headers))
            case RstStream(stream, status):
                return _control_frame(_RST_STREAM, 0, _TWO_UINT32.pack(stream, status))
            case Ping(number):
                return _control_frame(_PING, 0, _UINT32.pack(number))
            case GoAway(last_good, status):
                return _control_frame(_GOAWAY, 0, _TWO_UINT32.pack(last_good, status))
            case WindowUpdate(stream, delta):
                return _control_frame(_WINDOW_UPDATE, 0, _TWO_UINT32.pack(stream, delta))
            case Settings(values, clear):
                entries = [_TWO_UINT32.pack(flags << 24 | number, value) for number, (flags, value) in values.items()]
                return _control_frame(_SETTINGS, clear * FLAG_FIN, _UINT32.pack(len(entries)) + b"".join(entries))

    def _block(self, headers: Headers) -> bytes:
        parts = [_UINT32.pack(len(headers))]
        for name, value in headers.items():
            for text in (name.lower(), value):
                encoded = text.encode("utf-8", "surrogateescape")
                parts += (_UINT32.pack(len(encoded)), encoded)
        return self._deflate.compress(b"".join(parts)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def data_frame_header(stream: int, length: int, fin: bool = False) -> bytes:
    """Return the header of a DATA frame with C{length} bytes, at most L{MAX_PAYLOAD}."""
    return _TWO_UINT32.pack(stream, fin << 24 | length)


def _control_frame(kind: int, flags: int, payload: bytes) -> bytes:
    return _TWO_UINT32.pack(_CONTROL | VERSION << 16 | kind, flags << 24 | len(payload)) + payload
