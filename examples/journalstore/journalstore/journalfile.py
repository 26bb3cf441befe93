"""
The file of a journal: a header, then frames. Synchronous, for one thread.

A frame has a length, a checksum of its content, and a checksum of these two; then entries. An entry is one change of
one key. An entry without key records a compaction. A frame is written as a whole and synchronized before its changes
are acknowledged, so only the last frame of a file can be incomplete.
"""

from __future__ import annotations

import fcntl
import math
import os
import struct
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import BinaryIO, Final
from zlib import crc32

from attrs import frozen

from kubetwist.storage.errors import OutcomeUnknown, StorageCorrupt, StorageUnavailable, StorageUnwritable

HEADER: Final = b"kubetwist journal 1\n"
#: Bytes that one step of a compaction reads.
SLICE_SIZE: Final = 1 << 20
#: A file below this size in bytes is not compacted.
MIN_COMPACTED_SIZE: Final = 1 << 16

_FRAME: Final = struct.Struct("<II")
_CHECKSUM: Final = struct.Struct("<I")
_FRAME_SIZE: Final = _FRAME.size + _CHECKSUM.size
#: Revision, length of the key, length of the value or -1 for a deletion, and the time of expiry or NaN.
_ENTRY: Final = struct.Struct("<QIid")


@frozen
class Entry:
    """
    A change of a key.

    @ivar key: The key; C{""} for a compaction.
    @ivar value: The new value; L{None} for a deletion.
    @ivar revision: The revision of the change, or of the compaction.
    @ivar expires: The time of expiry, in seconds since the epoch; L{None} for never.
    """

    key: str
    value: bytes | None
    revision: int
    expires: float | None = None

    def encode(self) -> bytes:
        """Return the bytes of the entry."""
        key, value = self.key.encode(), self.value
        expires = math.nan if self.expires is None else self.expires
        return _ENTRY.pack(self.revision, len(key), -1 if value is None else len(value), expires) + key + (value or b"")


def encode_frame(entries: Iterable[Entry]) -> bytes:
    """Return the frame of some entries."""
    content = b"".join(entry.encode() for entry in entries)
    head = _FRAME.pack(len(content), crc32(content))
    return head + _CHECKSUM.pack(crc32(head)) + content


def decode_entries(content: bytes) -> Iterator[Entry]:
    """Return the entries of a frame whose checksum is correct."""
    offset = 0
    while offset < len(content):
        revision, key_length, length, expires = _ENTRY.unpack_from(content, offset)
        start = offset + _ENTRY.size
        offset = start + key_length + max(length, 0)
        value = None if length < 0 else content[start + key_length : offset]
        key = content[start : start + key_length].decode()
        yield Entry(key, value, revision, None if math.isnan(expires) else expires)


class JournalFile:
    """
    A journal that one process uses.

    @ivar size: The bytes of the header and of the complete frames.
    @ivar dropped: The bytes of an incomplete last frame, which L{open} has removed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.dropped = 0
        self._file: FileIO | None = None
        self._lock: BinaryIO | None = None
        self._damaged = False
        #: The size of the file after the last compaction.
        self._compacted_size = 0

    # --- start and stop

    def open(self) -> list[Entry]:
        """
        Open the file, which is created if it does not exist, and return all entries.

        @raise StorageCorrupt: The file is damaged, or is no journal.
        @raise StorageUnavailable: The file cannot be read or written, or another process uses it.
        """
        try:
            # The lock is another file, as a compaction replaces the journal.
            self._lock = self.path.with_name(f"{self.path.name}.lock").open("ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._temporary.unlink(missing_ok=True)
            if not self.path.exists():
                with self._create() as new:
                    new.write(HEADER)
                    _synchronize(new)
                self._temporary.replace(self.path)
                self._synchronize_directory()
            self._file = FileIO(self.path, "r+b")
            self.size = os.stat(self.path).st_size
            entries: list[Entry] = []
            complete = len(HEADER)
            for complete, frame in self._frames(may_be_incomplete=True):  # noqa: B007 # used after the loop
                entries += frame
            self.dropped = self.size - complete
            if self.dropped:
                self.size = complete
                self._truncate()
        except BlockingIOError as error:
            raise StorageUnavailable(f"another process uses {self.path}") from error
        except OSError as error:
            raise StorageUnavailable(f"cannot open {self.path}: {error.strerror}") from error
        self._compacted_size = self.size
        return entries

    def close(self) -> None:
        """Close the file. Idempotent."""
        for file in (self._file, self._lock):
            if file is not None:
                file.close()
        self._file = self._lock = None

    @property
    def _opened(self) -> FileIO:
        assert self._file is not None, "the file is not open"
        return self._file

    @property
    def _temporary(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    # --- reading

    def _frames(self, *, may_be_incomplete: bool = False) -> Iterator[tuple[int, list[Entry]]]:
        """
        Return the entries of each frame, with the offset behind it, up to L{size}.

        @param may_be_incomplete: Whether the last frame may be incomplete. It is not returned then.
        @raise StorageCorrupt: A frame is damaged or incomplete.
        """
        offset = len(HEADER)
        with self.path.open("rb") as file:
            if file.read(offset) != HEADER:
                raise StorageCorrupt(f"{self.path} is no journal of version 1")
            while offset < self.size:
                end, content = self._read_content(file, offset)
                if content is None:
                    if may_be_incomplete:
                        return
                    raise StorageCorrupt(f"{self.path} is damaged at byte {offset}")
                yield end, list(decode_entries(content))
                offset = end

    def _read_content(self, file: BinaryIO, offset: int) -> tuple[int, bytes | None]:
        """
        Read the frame at C{offset}.

        @return: The offset behind it, and its content; L{None} for an incomplete last frame.
        @raise StorageCorrupt: The frame is damaged, and is not an incomplete last one.
        """
        head = file.read(_FRAME_SIZE)
        if len(head) < _FRAME_SIZE:
            return offset, None
        length, checksum = _FRAME.unpack_from(head)
        if _CHECKSUM.unpack_from(head, _FRAME.size)[0] == crc32(head[: _FRAME.size]):
            end = offset + _FRAME_SIZE + length
            if end > self.size:
                return end, None
            content = file.read(length)
            if crc32(content) == checksum:
                return end, content
            if end == self.size:
                return end, None
        elif not any(head) and not any(file.read()):
            # After a power failure the end of a file can have its size and not its content.
            return offset, None
        raise StorageCorrupt(f"{self.path} is damaged at byte {offset}")

    # --- writing

    def append(self, entries: Iterable[Entry]) -> None:
        """
        Write a frame and synchronize the file.

        @raise StorageUnwritable: Nothing was written, and nothing will be written later.
        @raise OutcomeUnknown: The frame may be in the file. Nothing can be written until the file is opened again.
        """
        if self._damaged:
            raise StorageUnwritable(str(self.path), "it must be opened again after an error")
        frame = encode_frame(entries)
        try:
            self._write(frame)
        except OSError as error:
            try:
                self._truncate()
            except OSError:
                self._damaged = True
                raise OutcomeUnknown(f"{self.path}: {error.strerror}") from error
            raise StorageUnwritable(str(self.path), error.strerror or "an input/output error") from error
        self.size += len(frame)

    def _write(self, frame: bytes) -> None:
        rest, offset = memoryview(frame), self.size
        descriptor = self._opened.fileno()
        while rest:
            written = os.pwrite(descriptor, rest, offset)
            rest, offset = rest[written:], offset + written
        os.fsync(descriptor)

    def _truncate(self) -> None:
        """Remove what follows the last complete frame."""
        self._opened.truncate(self.size)
        os.fsync(self._opened.fileno())

    # --- compaction

    @property
    def is_worth_compacting(self) -> bool:
        """Return whether the file is twice as large as after the last compaction."""
        return self.size > max(2 * self._compacted_size, MIN_COMPACTED_SIZE)

    def compact(self, revision: int) -> Iterator[None]:
        """
        Write a file without the entries that were superseded at or before C{revision}, and replace the journal by it.

        Frames can be appended between two steps.

        @raise StorageUnwritable: The new file cannot be written, and the journal is unchanged; or it is in use, and
            nothing can be written until it is opened again.
        @raise StorageCorrupt: The journal is damaged.
        """
        try:
            #: The revision of the state of a key at the revision of the compaction; 0 for a deleted key.
            latest: dict[str, int] = {}
            for entry in self._entries_in_slices():
                if entry is None:
                    yield
                elif entry.revision <= revision:
                    latest[entry.key] = 0 if entry.value is None else entry.revision
            with self._create() as new:
                new.write(HEADER)
                kept = [Entry("", None, revision)]
                for entry in self._entries_in_slices():
                    if entry is None:
                        new.write(encode_frame(kept))
                        kept.clear()
                        yield
                    elif entry.revision > revision or entry.revision == latest[entry.key]:
                        kept.append(entry)
                new.write(encode_frame(kept))
                _synchronize(new)
            self._use_compacted()
        except OSError as error:
            raise StorageUnwritable(str(self.path), error.strerror or "an input/output error") from error

    def _use_compacted(self) -> None:
        file = FileIO(self._temporary, "r+b")
        try:
            self._temporary.replace(self.path)
        except OSError:
            file.close()
            raise
        self._opened.close()
        self._file = file
        self.size = self._compacted_size = os.stat(self.path).st_size
        try:
            self._synchronize_directory()
        except OSError:
            # After a power failure the directory could have the previous file, without the writes that follow.
            self._damaged = True
            raise

    def _entries_in_slices(self) -> Iterator[Entry | None]:
        """Return all entries, and L{None} after about L{SLICE_SIZE} bytes."""
        pause = len(HEADER) + SLICE_SIZE
        for end, entries in self._frames():
            yield from entries
            if end >= pause:
                pause = end + SLICE_SIZE
                yield None

    def _create(self) -> BinaryIO:
        """Create the file that is going to replace the journal. It contains secrets: only the owner may read it."""
        descriptor = os.open(self._temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        return os.fdopen(descriptor, "wb")

    def _synchronize_directory(self) -> None:
        directory = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _synchronize(file: BinaryIO) -> None:
    """Write the buffer of a file to the disk."""
    file.flush()
    os.fsync(file.fileno())
