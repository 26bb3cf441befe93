"""
Checksums of the rows of the SQLite file, which detect changed bytes in keys and values.

SQLite has none for its database. The checksum of a row is two CRC-32 in one integer: the upper one, of 31 bits, covers
all columns except the value; the lower one covers the value. They are separate since a damaged value affects one known
object, and damage to another column makes the object unknown.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

#: The end of a damaged value, which makes it invalid as JSON, as protobuf and as a ciphertext.
MISMATCH: Final = b"\0checksum mismatch"


def head_sum(number: int, key: str, previous: int, expires: float | None, deleted: bool) -> int:
    """
    Return the checksum of all columns of a row except the value.

    @param deleted: Whether there is no value.
    """
    return crc32(f"{number} {previous} {expires!r} {deleted:d} {key}".encode()) & 0x7FFFFFFF


def row_sum(number: int, key: str, previous: int, expires: float | None, value: bytes | None) -> int:
    """
    Return the checksum of a row.

    @param number: The id: the shifted revision with the place in the transaction.
    @param key: The key.
    @param previous: The previous revision of the key; 0 if it did not exist.
    @param expires: The expiration time in seconds since 1970; L{None} for none.
    @param value: The value; L{None} for a deletion.
    """
    return head_sum(number, key, previous, expires, value is None) << 32 | crc32(value or b"")


def checked_value(value: bytes | None, total: int | None) -> bytes | None:
    """
    Return the value of a row, or an invalid value if it was changed, so that only this object is unreadable.

    @param total: The checksum of the row; L{None} if it was written without one.
    """
    if total is None or crc32(value or b"") == total & 0xFFFFFFFF:
        return value
    return (value or b"") + MISMATCH
