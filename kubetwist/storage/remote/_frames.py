"""
Frames of the protocol between a storage process and its front processes: bytes in, frames out, without I/O.

A frame is the length of its payload (4 bytes, little endian), its kind (1 byte) and the payload. Frames are not nested.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

#: Maximum size of a payload in bytes. A transaction is one payload, and so are its events.
MAX_FRAME_SIZE: Final = 64 << 20
#: The size in bytes at which a long message is divided into several frames; a frame with one long value is larger.
PART_SIZE: Final = 256 << 10

_HEADER: Final = Struct("<IB")
_HEADER_SIZE: Final = _HEADER.size

#: The kind of a frame, and its payload.
Frame = tuple[int, bytes]


class ProtocolError(Exception):
    """The peer sent bytes that are not valid in the protocol."""


def encode_frame(kind: int, pieces: Iterable[bytes]) -> bytes:
    """
    Encode a frame.

    @param pieces: The payload, in pieces.
    @raise ValueError: The payload is too large.
    """
    payload = b"".join(pieces)
    if len(payload) > MAX_FRAME_SIZE:
        raise ValueError(f"a frame of {len(payload)} bytes is too large")
    return _HEADER.pack(len(payload), kind) + payload


class FrameReader:
    """Splits a stream of bytes into frames, however it is fragmented."""

    __slots__ = ("_missing", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        #: The number of bytes until the first frame is complete, or until its header is.
        self._missing = 0

    def feed(self, data: bytes) -> list[Frame]:
        """
        Add received bytes.

        @return: The frames that are complete.
        @raise ProtocolError: A frame is too large.
        """
        if self._pieces:
            self._pieces.append(data)
            self._missing -= len(data)
            if self._missing > 0:
                return []
            data = b"".join(self._pieces)
            self._pieces = []
        frames: list[Frame] = []
        start, end = 0, len(data)
        missing = _HEADER_SIZE
        while end - start >= _HEADER_SIZE:
            size, kind = _HEADER.unpack_from(data, start)
            if size > MAX_FRAME_SIZE:
                raise ProtocolError(f"a frame has {size} bytes, which is more than {MAX_FRAME_SIZE}")
            following = start + _HEADER_SIZE + size
            if following > end:
                missing = _HEADER_SIZE + size
                break
            frames.append((kind, data[start + _HEADER_SIZE : following]))
            start = following
        if start < end:
            self._pieces = [data[start:] if start else data]
            self._missing = missing - (end - start)
        return frames
