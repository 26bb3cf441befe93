"""
The few protobuf messages of the key management API and of what is stored: a map of texts to bytes is all they have
besides texts and bytes.

@see: kubernetes/kms, C{apis/v2/api.proto}; kubernetes/apiserver,
    C{pkg/storage/value/encrypt/envelope/kmsv2/v2/api.proto}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from .wire import (
    LENGTH,
    VARINT,
    WireError,
    length,
    skip,
    varint,
)

_INVALID: Final = "proto: cannot parse invalid wire-format data"

Annotations = tuple[tuple[str, bytes], ...]


def number(value: int) -> bytes:
    """Return a number on the wire."""
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def octets(tag: int, value: bytes) -> bytes:
    """Encode a field of bytes or text; empty values are left out."""
    return b"%c%b%b" % (tag << 3 | LENGTH, number(len(value)), value) if value else b""


def count(tag: int, value: int) -> bytes:
    """Return a field that is a number; zero is left out."""
    return b"%c%b" % (tag << 3 | VARINT, number(value)) if value else b""


def pairs(tag: int, values: Annotations) -> bytes:
    """Return a map of texts to bytes; in its entries nothing is left out."""

    def field(tag: int, value: bytes) -> bytes:
        return b"%c%b%b" % (tag << 3 | LENGTH, number(len(value)), value)

    return b"".join(field(tag, field(1, key.encode()) + field(2, value)) for key, value in values)


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """
    Return the fields of a message that are bytes or numbers; others are skipped.

    @raise WireError: It is not a message.
    """
    position, end = 0, len(data)
    try:
        while position < end:
            tag, position = varint(data, position)
            if not tag >> 3:
                raise WireError(_INVALID)
            kind = tag & 7
            if kind == LENGTH:
                start, position = length(data, position, end)
                yield tag >> 3, data[start:position]
            elif kind == VARINT:
                value, position = varint(data, position)
                if position > end:
                    raise WireError(_INVALID)
                yield tag >> 3, value
            else:
                position = skip(data, position, end, kind)
    except (IndexError, WireError):
        raise WireError(_INVALID) from None


class Fields:
    """
    A message whose fields are known by their numbers.

    The last of several with one number counts, as everywhere in protobuf.
    """

    def __init__(self, data: bytes) -> None:
        """
        @raise WireError: It is not a message.
        """
        self._found: dict[int, list[bytes | int]] = {}
        for tag, value in fields(data):
            self._found.setdefault(tag, []).append(value)

    def octets(self, tag: int) -> bytes:
        """Return a field of bytes."""
        return next((value for value in reversed(self._found.get(tag, ())) if isinstance(value, bytes)), b"")

    def text(self, tag: int) -> str:
        """
        Return a field of text.

        @raise WireError: It is not UTF-8.
        """
        try:
            return self.octets(tag).decode()
        except UnicodeDecodeError:
            raise WireError("proto: string field contains invalid UTF-8") from None

    def number(self, tag: int) -> int:
        """Return a field that is a number."""
        return next((value for value in reversed(self._found.get(tag, ())) if isinstance(value, int)), 0)

    def annotations(self, tag: int) -> Annotations:
        """
        Return a map of texts to bytes, sorted.

        @raise WireError: The value is invalid.
        """
        entries = [Fields(value) for value in self._found.get(tag, ()) if isinstance(value, bytes)]
        return tuple(sorted({entry.text(1): entry.octets(2) for entry in entries}.items()))
