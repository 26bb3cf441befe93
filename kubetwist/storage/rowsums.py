"""
Checksums of rows of the SQLite file: changed bytes in a row are found, be they in its key or in its value.

SQLite has none for its database. The checksum of a row is two CRC-32 in one integer: the upper one, of 31 bits, is of
everything but the value; the lower one is of the value. They are apart because a damaged value costs one object, and
anything else the knowledge of which object that is.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

#: The end of a damaged value: with it nothing is JSON or protobuf, and no cipher accepts it.
MISMATCH: Final = b"\0checksum mismatch"


def head_sum(number: int, key: str, previous: int, expires: float | None, gone: bool) -> int:
    """
    The checksum of everything but the value of a row.

    @param gone: Whether there is no value.
    """
    return crc32(f"{number} {previous} {expires!r} {gone:d} {key}".encode()) & 0x7FFFFFFF


def row_sum(number: int, key: str, previous: int, expires: float | None, value: bytes | None) -> int:
    """The checksum of a row."""
    return head_sum(number, key, previous, expires, value is None) << 32 | crc32(value or b"")


def checked_value(value: bytes | None, total: int | None) -> bytes | None:
    """
    Return the value of a row, or what is no value where it was changed: it is unreadable then, and all others are not.

    @param total: The checksum of the row; L{None} where it was written without one.
    """
    if total is None or crc32(value or b"") == total & 0xFFFFFFFF:
        return value
    return (value or b"") + MISMATCH
