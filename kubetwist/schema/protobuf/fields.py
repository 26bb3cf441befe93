"""
Encoding and decoding of simple protobuf messages, as in the KMS API and the envelopes of encrypted values: strings,
bytes, numbers, and maps of strings to bytes.

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
    """Encode a number as a varint."""
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def octets(tag: int, value: bytes) -> bytes:
    """Encode a field of bytes or a string; empty values are omitted."""
    return b"%c%b%b" % (tag << 3 | LENGTH, number(len(value)), value) if value else b""


def count(tag: int, value: int) -> bytes:
    """Encode a field with a number; zero is omitted."""
    return b"%c%b" % (tag << 3 | VARINT, number(value)) if value else b""


def pairs(tag: int, values: Annotations) -> bytes:
    """Encode a map of strings to bytes, whose entries always have both fields."""

    def field(tag: int, value: bytes) -> bytes:
        return b"%c%b%b" % (tag << 3 | LENGTH, number(len(value)), value)

    return b"".join(field(tag, field(1, key.encode()) + field(2, value)) for key, value in values)


def fields(data: bytes) -> Iterator[tuple[int, bytes | int]]:
    """
    Yield the numbers and values of length-delimited and varint fields; other fields are skipped.

    @raise WireError: The data is not a message.
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
    The fields of a message by number.

    If a field occurs several times, the last one counts.
    """

    def __init__(self, data: bytes) -> None:
        """
        Decode a message.

        @raise WireError: The data is not a message.
        """
        self._values: dict[int, list[bytes | int]] = {}
        for tag, value in fields(data):
            self._values.setdefault(tag, []).append(value)

    def octets(self, tag: int) -> bytes:
        """Return the value of a field of bytes; empty if it is missing."""
        return next((value for value in reversed(self._values.get(tag, ())) if isinstance(value, bytes)), b"")

    def text(self, tag: int) -> str:
        """
        Return the value of a string field; empty if it is missing.

        @raise WireError: The value is not UTF-8.
        """
        try:
            return self.octets(tag).decode()
        except UnicodeDecodeError:
            raise WireError("proto: string field contains invalid UTF-8") from None

    def number(self, tag: int) -> int:
        """Return the value of a varint field; 0 if it is missing."""
        return next((value for value in reversed(self._values.get(tag, ())) if isinstance(value, int)), 0)

    def annotations(self, tag: int) -> Annotations:
        """
        Return a map of strings to bytes, sorted by key.

        @raise WireError: The value is invalid.
        """
        entries = [Fields(value) for value in self._values.get(tag, ()) if isinstance(value, bytes)]
        return tuple(sorted({entry.text(1): entry.octets(2) for entry in entries}.items()))
