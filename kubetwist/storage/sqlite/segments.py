"""
Files with the changes of a SQLite store between two revisions, from which a later state of a backup is restored.

A segment is a line with the format, a line of JSON with the header, frames, and the SHA-256 of everything before. A
frame is the length of its content in 4 bytes, and a compressed CBOR array of rows. Segments are written under another
name, synced and renamed, so that a segment is complete or absent. Blocking; independent of data directories.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

import cbor2
from attrs import frozen

from ..errors import StorageCorrupt, StorageError, StorageUnavailable
from ._checksums import head_sum
from ._format import FORMAT, PLACE_BITS, read_format, read_history
from .logfile import LogFile, Row, corrupt_error, newest_revision, read_state, translate_sqlite_errors

SUFFIX: Final = ".changes"
_MAGIC: Final = b"kubetwist changes 1\n"
_LENGTH: Final = struct.Struct(">I")
_DIGEST_SIZE: Final = hashlib.sha256().digest_size
#: Maximum length of a header in bytes.
_MAX_HEADER: Final = 4096
#: Rows, and approximately bytes of their values, in one frame.
_FRAME_ROWS: Final = 256
_FRAME_BYTES: Final = 1 << 20
#: Maximum size in bytes of a frame's content: a transaction's values, with room for its keys.
_MAX_FRAME: Final = 256 << 20


class HistoryGap(StorageError):
    """The store does not have all changes after a position; the text is the reason. A new backup is needed."""


@frozen
class Position:
    """
    A revision of a store.

    @ivar history: The number of the store's history, see L{kubetwist.storage.sqlite._format.read_history}.
    """

    history: int
    revision: int


@frozen
class Segment:
    """
    The header of a segment: it has all changes after one revision and up to another.

    @ivar taken: RFC 3339 time at which C{until} was the newest revision.
    """

    path: Path
    history: int
    after: int
    until: int
    taken: str


def write_segment(store: str, folder: Path, position: Position, taken: str) -> Segment | None:
    """
    Write the changes of a store after a position to a new segment.

    The store may be in use. The read is one transaction, which blocks no writer.

    @param folder: The directory of the segments, which exists.
    @param taken: The present time, in RFC 3339.
    @return: The segment; L{None} if there are no changes.
    @raise HistoryGap: The store has not all changes after C{position}, or is another one.
    @raise StorageUnavailable: The store cannot be read, or the segment cannot be written.
    @raise StorageCorrupt: The store is damaged.
    """
    with translate_sqlite_errors(store):
        connection = sqlite3.connect(f"file:{quote(os.path.abspath(store))}?mode=rw", uri=True, isolation_level=None)
        try:
            connection.execute("BEGIN")
            if read_format(connection, store) != FORMAT:
                raise StorageCorrupt(f"{store} has another format; start its server once to upgrade it")
            until = _check_position(connection, position)
            if until == position.revision:
                return None
            name = f"{position.revision:020}-{until:020}-{position.history:016x}{SUFFIX}"
            segment = Segment(folder / name, position.history, position.revision, until, taken)
            try:
                _write(segment, _rows(connection, store, segment))
            except OSError as error:
                raise StorageUnavailable(f"{segment.path} cannot be written: {error.strerror or error}") from error
        finally:
            connection.close()
    return segment


def _check_position(connection: sqlite3.Connection, position: Position) -> int:
    """Return the newest revision, if all changes after a position are in the store."""
    history, newest = read_history(connection), newest_revision(connection)
    compacted = read_state(connection, "compacted")
    if history != position.history:
        raise HistoryGap("the store was replaced or restored")
    if newest < position.revision:
        raise HistoryGap(f"the newest revision of the store is {newest}, before {position.revision}")
    if compacted > position.revision:
        raise HistoryGap(f"changes after revision {position.revision} are compacted up to {compacted}")
    return newest


def _rows(connection: sqlite3.Connection, store: str, segment: Segment) -> Iterator[Row]:
    rows = connection.execute(
        "SELECT id, key, previous, expires, value, sum FROM log WHERE id >= ? AND id < ? ORDER BY id",
        ((segment.after + 1) << PLACE_BITS, (segment.until + 1) << PLACE_BITS),
    )
    for row in rows:
        _check_row(row, store)
        yield row


def _check_row(row: Row, path: str) -> None:
    number, key, previous, expires, value, total = row
    if total is not None and total >> 32 != head_sum(number, key, previous, expires, value is None):
        raise corrupt_error(path, f"the row {number} was changed")


def _write(segment: Segment, rows: Iterator[Row]) -> None:
    header = {"history": segment.history, "after": segment.after, "until": segment.until, "taken": segment.taken}
    temporary = segment.path.with_name(f".{segment.path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            digest = hashlib.sha256()

            def write(content: bytes) -> None:
                digest.update(content)
                file.write(content)

            write(_MAGIC)
            write(json.dumps(header).encode() + b"\n")
            for frame in _frames(rows):
                write(_LENGTH.pack(len(frame)))
                write(frame)
            file.write(digest.digest())
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, segment.path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(segment.path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _frames(rows: Iterator[Row]) -> Iterator[bytes]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row[4] or b"")
        if len(batch) == _FRAME_ROWS or size >= _FRAME_BYTES:
            yield zlib.compress(cbor2.dumps(batch), 6)
            batch, size = [], 0
    if batch:
        yield zlib.compress(cbor2.dumps(batch), 6)


def read_header(path: Path) -> Segment:
    """
    Read the header of a segment, without a check of its content.

    @raise StorageCorrupt: It is not a segment.
    @raise StorageUnavailable: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return _read_header(path, file)
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error.strerror}") from error


def _read_header(path: Path, file: BinaryIO) -> Segment:
    try:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError
        line = file.readline(_MAX_HEADER)
        header = json.loads(line)
        segment = Segment(
            path, int(header["history"]), int(header["after"]), int(header["until"]), str(header["taken"])
        )
        if not line.endswith(b"\n") or not 0 <= segment.after < segment.until:
            raise ValueError
    except (ValueError, TypeError, KeyError) as error:
        raise StorageCorrupt(f"{path} is damaged, or not a file of changes") from error
    return segment


def verify_segment(path: Path) -> Segment:
    """
    Read a segment as a whole, and check it for damage.

    @return: Its header.
    @raise StorageCorrupt: It is damaged, or not a segment.
    @raise StorageUnavailable: It cannot be read.
    """
    segment = read_header(path)
    for _ in read_rows(segment):
        pass
    return segment


def read_rows(segment: Segment) -> Iterator[list[Row]]:
    """
    Yield the rows of a segment in batches, in order.

    The checksum of the file is verified before the first batch.

    @raise StorageCorrupt: It is damaged.
    @raise StorageUnavailable: It cannot be read.
    """
    path = segment.path
    try:
        with path.open("rb") as file:
            end = os.fstat(file.fileno()).st_size - _DIGEST_SIZE
            if end < 0 or not _is_intact(file, end):
                raise StorageCorrupt(f"{path} is damaged: its checksum differs")
            file.seek(0)
            if _read_header(path, file) != segment:
                raise StorageCorrupt(f"{path} has changed while it was read")
            last = (segment.after + 1) << PLACE_BITS
            while file.seek(0, os.SEEK_CUR) < end:
                rows = _read_frame(path, file)
                for row in rows:
                    if not last <= row[0] < (segment.until + 1) << PLACE_BITS:
                        raise StorageCorrupt(f"{path} is damaged: the row {row[0]} is not in order")
                    _check_row(row, str(path))
                    last = row[0] + 1
                yield rows
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be read: {error.strerror}") from error


def _is_intact(file: BinaryIO, end: int) -> bool:
    digest = hashlib.sha256()
    left = end
    while left:
        piece = file.read(min(left, 1 << 20))
        if not piece:
            return False
        digest.update(piece)
        left -= len(piece)
    return file.read() == digest.digest()


def _read_frame(path: Path, file: BinaryIO) -> list[Row]:
    try:
        (length,) = _LENGTH.unpack(file.read(_LENGTH.size))
        decompressor = zlib.decompressobj()
        content = decompressor.decompress(file.read(length), _MAX_FRAME)
        if not decompressor.eof:
            raise ValueError("a frame is incomplete or too long")
        return [_row(item) for item in cbor2.loads(content)]
    except (ValueError, TypeError, struct.error, zlib.error, cbor2.CBORDecodeError) as error:
        raise StorageCorrupt(f"{path} is damaged: {error}") from error


def _row(item: Sequence[object]) -> Row:
    number, key, previous, expires, value, total = item
    if (
        not isinstance(number, int)
        or not isinstance(key, str)
        or not isinstance(previous, int)
        or not isinstance(expires, float | None)
        or not isinstance(value, bytes | None)
        or not isinstance(total, int | None)
    ):
        raise ValueError("a row has other columns")
    return number, key, previous, expires, value, total


def apply_segments(path: str, segments: Sequence[Segment], revision: int) -> None:
    """
    Advance a copy of a store to a revision, with the changes of segments.

    @param path: The copy, which no other process uses; it must be of the same history. It is useless after an error.
    @param segments: Adjacent or overlapping segments, in the order of their revisions.
    @param revision: The revision of the result, which has exactly the state of the source at that revision.
    @raise StorageCorrupt: A segment is damaged, or changes are missing.
    @raise StorageUnavailable: A file cannot be read or written.
    """
    # Synced once, at the end.
    file = LogFile(path, synced=False)
    try:
        file.open()
        with translate_sqlite_errors(path):
            history, position = read_history(file.connection), newest_revision(file.connection)
        for segment in segments:
            if position >= revision:
                break
            if segment.history != history:
                raise StorageCorrupt(f"{segment.path} belongs to another store than {path}")
            if segment.after > position:
                raise StorageCorrupt(f"the changes between the revisions {position} and {segment.after} are missing")
            for rows in read_rows(segment):
                wanted = [row for row in rows if position < row[0] >> PLACE_BITS <= revision]
                if wanted:
                    file.append(wanted)
            position = max(position, min(segment.until, revision))
            file.reserve_revision(position)
        if position < revision:
            raise StorageCorrupt(f"the changes between the revisions {position} and {revision} are missing")
    finally:
        file.close()
    try:
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise StorageUnavailable(f"{path} cannot be written: {error.strerror}") from error
