"""
SQLite's write-ahead log as bytes: finds damage that SQLite would take for the end of the log.

When SQLite opens a log that a process left behind, it reads frames up to the first one whose checksum is wrong, and
ignores the rest. That is right for the end of a crash: the last transaction may be there in part. In the middle of the
log it silently drops transactions that were synced.

The order of writing distinguishes the two. A transaction is written only after the one before it is synced
(C{PRAGMA synchronous = FULL}), so a crash leaves at most one transaction incomplete. Each checksum includes the
checksum before it; a frame that continues a committed frame behind the first bad one proves that the bad one was
synced, and changed later. Format: U{https://www.sqlite.org/fileformat2.html#walformat}.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Iterator
from functools import lru_cache
from operator import mul
from struct import Struct
from typing import BinaryIO, Final

from attrs import frozen

HEADER: Final = Struct(">8I")
FRAME: Final = Struct(">6I")

#: The magic number without its last bit, which is set if checksums use big-endian words.
_MAGIC: Final = 0x377F0682
_VERSION: Final = 3007000
_MASK: Final = 0xFFFFFFFF

Checksum = tuple[int, int]


@lru_cache(maxsize=8)
def _weights(words: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, int, int, int]]:
    """
    Return the weights by which the checksum of C{words} 32-bit words is two scalar products.

    SQLite computes C{s0 += a + s1; s1 += b + s0} for each pair of words. This is linear modulo 2**32, and
    C{sum(map(mul, ...))} is ten times as fast as the loop.

    @return: The weights of the words in C{s0} and in C{s1}, and the matrix for the preceding checksum.
    """
    first: list[int] = []
    second: list[int] = []
    # The matrix [[p, q], [r, s]] is [[1, 1], [1, 2]] to the power of the number of pairs that follow.
    p, q, r, s = 1, 0, 0, 1
    for _ in range(words // 2):
        first += (q, (p + q) & _MASK)
        second += (s, (r + s) & _MASK)
        p, q, r, s = (p + q) & _MASK, (p + 2 * q) & _MASK, (r + s) & _MASK, (r + 2 * s) & _MASK
    return tuple(reversed(first)), tuple(reversed(second)), (p, q, r, s)


def checksum(before: Checksum, content: bytes, big_endian: bool) -> Checksum:
    """
    Return SQLite's checksum of bytes (F{src/wal.c}, C{walChecksumBytes}).

    @param before: The checksum of the preceding bytes; C{(0, 0)} at the beginning.
    @param content: Bytes whose number is a multiple of 8.
    """
    words = array("I", content)
    if big_endian != (sys.byteorder == "big"):
        words.byteswap()
    first, second, (p, q, r, s) = _weights(len(words))
    return (
        (p * before[0] + q * before[1] + sum(map(mul, words, first))) & _MASK,
        (r * before[0] + s * before[1] + sum(map(mul, words, second))) & _MASK,
    )


@frozen
class _Frame:
    """
    A frame as stored.

    @ivar salts: The salts of the log's header when the frame was written.
    @ivar ends: Whether it is the last frame of a transaction.
    @ivar stored: The stored checksum.
    @ivar content: The bytes that the checksum covers.
    """

    salts: tuple[int, int]
    ends: bool
    stored: Checksum
    content: bytes


def _frames(file: BinaryIO, page_size: int) -> Iterator[_Frame]:
    length = FRAME.size + page_size
    while len(found := file.read(length)) == length:
        _, pages, salt, other_salt, first, second = FRAME.unpack_from(found)
        yield _Frame((salt, other_salt), pages > 0, (first, second), found[:8] + found[FRAME.size :])


def find_damage(path: str) -> str | None:
    """
    Search a write-ahead log for transactions that SQLite would drop although they were synced.

    @param path: Path of the log, which need not exist.
    @return: The damage; L{None} if SQLite will read all that was synced, as far as the log shows.
    @raise OSError: It cannot be read.
    """
    try:
        file = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return None
    with file:
        head = file.read(HEADER.size)
        if len(head) < HEADER.size:
            return None
        magic, version, page_size, _, *salts, first, second = HEADER.unpack(head)
        big_endian = bool(magic & 1)
        before = checksum((0, 0), head[:-8], big_endian)
        if (
            magic & ~1 != _MAGIC
            or version != _VERSION
            or not 512 <= page_size <= 65536
            or page_size & (page_size - 1)
            or before != (first, second)
        ):
            # The header is synced before the first frame is written.
            behind = os.fstat(file.fileno()).st_size - len(head)
            return "its header was changed" if behind > FRAME.size else None
        bad = 0
        committed = False
        for number, frame in enumerate(_frames(file, page_size), 1):
            continues = frame.salts == tuple(salts) and checksum(before, frame.content, big_endian) == frame.stored
            if bad and continues and committed:
                return f"frame {bad} was changed, and transactions follow it"
            if not bad and not continues:
                bad = number
            committed = frame.ends
            before = frame.stored
    return None
