"""Texts and numbers in payloads, for the messages and the requests."""

from __future__ import annotations

import struct
from struct import Struct
from typing import Any

from ._frames import ProtocolError


def encode_text(text: str) -> bytes:
    """Encode a text."""
    # Keys with lone surrogates exist in no store, but may be read.
    return text.encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """
    Decode a text.

    @raise ProtocolError: It is not encoded in UTF-8.
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a text is not encoded in UTF-8: {error}") from None


class Cursor:
    """Reads a payload from its start to its end."""

    __slots__ = ("_offset", "payload")

    def __init__(self, payload: bytes, offset: int = 0) -> None:
        self.payload = payload
        self._offset = offset

    def numbers(self, layout: Struct) -> tuple[Any, ...]:
        """
        Read numbers.

        @raise ProtocolError: The payload is too short.
        """
        try:
            found = layout.unpack_from(self.payload, self._offset)
        except struct.error:
            raise ProtocolError("a message is too short") from None
        self._offset += layout.size
        return found

    def data(self, size: int) -> bytes:
        """
        Read bytes.

        @raise ProtocolError: The payload is too short.
        """
        end = self._offset + size
        found = self.payload[self._offset : end]
        if len(found) < size:
            raise ProtocolError("a message is too short")
        self._offset = end
        return found

    def text(self, size: int) -> str:
        """
        Read a text of C{size} bytes.

        @raise ProtocolError: The payload is too short, or this is no text.
        """
        return decode_text(self.data(size))

    @property
    def at_end(self) -> bool:
        """Return whether everything is read."""
        return self._offset >= len(self.payload)

    def finish(self) -> None:
        """
        Check that everything is read.

        @raise ProtocolError: It is not.
        """
        if not self.at_end:
            raise ProtocolError("a message is too long")
