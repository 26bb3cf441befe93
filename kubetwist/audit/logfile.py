"""
The files of an audit log: appended to, and rotated by size as lumberjack does it.

C{audit.log} is written; full files are C{audit-2026-01-31T12-00-00.000.log}, with C{.gz} when they are compressed.
Nothing here is for the reactor's thread: it all may wait for a disk.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock, Thread
from typing import Final

from attrs import frozen

_STAMP: Final = "%Y-%m-%dT%H-%M-%S"
_stamp = re.compile(r"(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d)\.(\d{3})").fullmatch
_GZ: Final = ".gz"


@frozen
class Rotation:
    """
    When a file is full, and what becomes of full ones.

    @ivar size: Bytes that a file may have; 0 for any number.
    @ivar days: After how many days full files are removed; 0 for never.
    @ivar backups: How many full files are kept; 0 for all.
    @ivar compress: Full files are compressed.
    """

    size: int = 0
    days: int = 0
    backups: int = 0
    compress: bool = False


def utc_now() -> datetime:
    """The time."""
    return datetime.now(UTC)


class LogFile:
    """
    A file that lines are appended to.

    A line is there as a whole or not at all, whatever happens to the disk.
    """

    def __init__(self, path: Path, rotation: Rotation, now: Callable[[], datetime] = utc_now) -> None:
        self.path = path
        self._rotation = rotation
        self._now = now
        self._descriptor = -1
        self._size = 0
        self._tidying = Lock()
        self._tidier: Thread | None = None
        self._untidy = False

    def ensure(self) -> None:
        """
        Make the file and its folder, where they are not there.

        @raise OSError: That can not be.
        """
        self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, 0o600))

    def write(self, lines: Sequence[bytes]) -> None:
        """
        Append lines, each with its newline.

        @raise PartlyWritten: Not all could be written.
        """
        limit = self._rotation.size
        begin, size = 0, 0
        try:
            self._open()
            for number, line in enumerate(lines):
                if limit and self._size + size + len(line) > limit:
                    self._append(lines[begin:number])
                    begin, size = number, 0
                    if len(line) > limit:
                        reason = OSError(f"write length {len(line)} exceeds maximum file size {limit}")
                        raise PartlyWritten(number, reason, alone=True)
                    self._rotate()
                size += len(line)
            self._append(lines[begin:])
        except OSError as error:
            raise PartlyWritten(begin, error) from error

    def close(self) -> None:
        """Let go of the file, and wait for what is being compressed."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        tidier = self._tidier
        if tidier is not None:
            tidier.join()

    # Writing.

    def _open(self) -> None:
        if self._descriptor >= 0:
            return
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, 0o600)
        found = os.fstat(self._descriptor)
        self._size = found.st_size if stat.S_ISREG(found.st_mode) else 0
        if self._rotation.size:
            self._tidy()

    def _append(self, lines: Sequence[bytes]) -> None:
        data = b"".join(lines)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            if len(view) < len(data):
                # No half a line for those who read on; what is no file can not be cut.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    # Rotation.

    def _rotate(self) -> None:
        mode = stat.S_IMODE(os.fstat(self._descriptor).st_mode)
        os.close(self._descriptor)
        self._descriptor = -1
        os.rename(self.path, self._backup())
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
        self._descriptor = os.open(self.path, flags, mode)
        self._size = 0
        self._tidy()

    def _backup(self) -> Path:
        """A name for a file that is full now; two within a millisecond have different ones."""
        moment = self._now()
        while True:
            stamp = f"{moment.strftime(_STAMP)}.{moment.microsecond // 1000:03d}"
            path = self.path.with_name(f"{self.path.stem}-{stamp}{self.path.suffix}")
            if not path.exists() and not path.with_name(path.name + _GZ).exists():
                return path
            moment += timedelta(milliseconds=1)

    def _tidy(self) -> None:
        """Remove and compress full files, in a thread: writing must not wait for that."""
        with self._tidying:
            self._untidy = True
            if self._tidier is None:
                self._tidier = Thread(target=self._tidy_up, name="audit log backups", daemon=True)
                self._tidier.start()

    def _tidy_up(self) -> None:
        while True:
            with self._tidying:
                if not self._untidy:
                    self._tidier = None
                    return
                # A file that is full from here on may not be seen any more: then there is another round.
                self._untidy = False
            with suppress(OSError):
                self.tidy()

    def tidy(self) -> None:
        """Remove the full files that are too old or too many, and compress the rest."""
        rotation = self._rotation
        kept: list[Path] = []
        stamps: set[datetime] = set()
        for stamp, path in sorted(self._backups(), reverse=True):
            stamps.add(stamp)
            too_many = rotation.backups and len(stamps) > rotation.backups
            too_old = rotation.days and stamp < self._now() - timedelta(days=rotation.days)
            if too_many or too_old:
                path.unlink(missing_ok=True)
            else:
                kept.append(path)
        if rotation.compress:
            for path in kept:
                if path.suffix != _GZ:
                    _compress(path)

    def _backups(self) -> Iterator[tuple[datetime, Path]]:
        prefix, suffix = f"{self.path.stem}-", self.path.suffix
        for path in self.path.parent.iterdir():
            name = path.name.removesuffix(_GZ)
            if not name.startswith(prefix) or not name.endswith(suffix):
                continue
            match = _stamp(name[len(prefix) : len(name) - len(suffix)])
            if match is not None:
                moment = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
                yield moment + timedelta(milliseconds=int(match[2])), path


class StandardOutput:
    """What the process prints, as a place for lines."""

    def __init__(self) -> None:
        self._descriptor = -1

    def ensure(self) -> None:
        """It is there."""

    def write(self, lines: Sequence[bytes]) -> None:
        """As L{LogFile.write}."""
        if self._descriptor < 0:
            # sys.stdout itself is the log's.
            assert sys.__stdout__ is not None, "a process has an output"
            self._descriptor = os.dup(sys.__stdout__.fileno())
        view = memoryview(b"".join(lines))
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise PartlyWritten(0, error) from error

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class PartlyWritten(Exception):
    """
    Not all of several lines are written.

    @ivar written: How many are, the first ones.
    @ivar alone: It is the next line's own fault; others may do better.
    """

    def __init__(self, written: int, reason: OSError, *, alone: bool = False) -> None:
        super().__init__(str(reason))
        self.written = written
        self.alone = alone


def _compress(path: Path) -> None:
    target = path.with_name(path.name + _GZ)
    try:
        with path.open("rb") as plain, target.open("wb") as file, gzip.GzipFile("", "wb", 6, file) as packed:
            os.chmod(target, stat.S_IMODE(path.stat().st_mode))
            shutil.copyfileobj(plain, packed, 1 << 20)
    except OSError:
        target.unlink(missing_ok=True)
        return
    path.unlink(missing_ok=True)
