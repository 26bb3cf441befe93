"""
Audit log files with rotation by size, as in lumberjack.

C{audit.log} is the current file; rotated files are C{audit-2026-01-31T12-00-00.000.log}, with C{.gz} if compressed.
All functions block on disk I/O and must not be called in the reactor's thread.
"""

from __future__ import annotations

import fcntl
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
    The rotation settings of a log file.

    @ivar size: Maximum size of a file in bytes; 0 for no limit.
    @ivar days: Number of days after which rotated files are removed; 0 for never.
    @ivar backups: Maximum number of rotated files; 0 for no limit.
    @ivar compress: Whether rotated files are compressed with gzip.
    """

    size: int = 0
    days: int = 0
    backups: int = 0
    compress: bool = False


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class LogFile:
    """
    A log file that lines are appended to.

    A line is written completely or not at all: a partial write is truncated.
    """

    def __init__(
        self, path: Path, rotation: Rotation, now: Callable[[], datetime] = utc_now, *, shared: bool = False
    ) -> None:
        """
        @param path: The current file.
        @param rotation: The settings of the rotation.
        @param now: Returns the current time.
        @param shared: Whether other processes write the file, too: then it is locked during each write.
        """
        self.path = path
        self._shared = shared
        self._rotation = rotation
        self._now = now
        self._descriptor = -1
        self._size = 0
        self._tidying = Lock()
        self._tidier: Thread | None = None
        self._untidy = False

    def ensure(self) -> None:
        """
        Create the file and its directory if they do not exist.

        @raise OSError: The file cannot be created.
        """
        self.path.parent.mkdir(0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC, 0o600))

    def write(self, lines: Sequence[bytes]) -> None:
        """
        Append lines, each with its newline.

        @raise PartlyWritten: Not all lines could be written.
        """
        limit = self._rotation.size
        begin, size = 0, 0
        try:
            self._open_locked() if self._shared else self._open()
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
        finally:
            if self._shared and self._descriptor >= 0:
                _lock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close the file and wait for the compression of rotated files."""
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
        status = os.fstat(self._descriptor)
        self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
        if self._rotation.size:
            self._tidy()

    def _open_locked(self) -> None:
        """Open and lock the current file, which another process may have rotated since the last write."""
        while True:
            self._open()
            _lock(self._descriptor, fcntl.LOCK_EX)
            status = os.fstat(self._descriptor)
            try:
                current = os.stat(self.path)
            except FileNotFoundError:
                # Another process is rotating it, or it was removed: create it.
                current = None
            if current is not None and (current.st_dev, current.st_ino) == (status.st_dev, status.st_ino):
                self._size = status.st_size if stat.S_ISREG(status.st_mode) else 0
                return
            os.close(self._descriptor)
            self._descriptor = -1

    def _append(self, lines: Sequence[bytes]) -> None:
        data = b"".join(lines)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            if len(view) < len(data):
                # Remove the partial line. Truncation fails for pipes and devices.
                with suppress(OSError):
                    os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)

    # Rotation.

    def _rotate(self) -> None:
        mode = stat.S_IMODE(os.fstat(self._descriptor).st_mode)
        # The lock ends with the descriptor: other processes find that the path has another file now.
        os.rename(self.path, self._backup())
        os.close(self._descriptor)
        self._descriptor = -1
        if self._shared:
            self._open_locked()
            os.fchmod(self._descriptor, mode)
        else:
            flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC
            self._descriptor = os.open(self.path, flags, mode)
            self._size = 0
        self._tidy()

    def _backup(self) -> Path:
        """Return an unused path for the rotated file; the timestamp is increased until it is unique."""
        time = self._now()
        while True:
            stamp = f"{time.strftime(_STAMP)}.{time.microsecond // 1000:03d}"
            path = self.path.with_name(f"{self.path.stem}-{stamp}{self.path.suffix}")
            if not path.exists() and not path.with_name(path.name + _GZ).exists():
                return path
            time += timedelta(milliseconds=1)

    def _tidy(self) -> None:
        """Remove and compress rotated files in a thread, so that writing does not wait for it."""
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
                # A file that is rotated after this point may be missed: then another pass follows.
                self._untidy = False
            with suppress(OSError):
                self._tidy_alone() if self._shared else self.tidy()

    def _tidy_alone(self) -> None:
        """Remove and compress rotated files while no other process does that."""
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _lock(directory, fcntl.LOCK_EX)
            self.tidy()
        finally:
            os.close(directory)

    def tidy(self) -> None:
        """Remove rotated files beyond the limits of age and number, and compress the remaining files."""
        rotation = self._rotation
        remaining: list[Path] = []
        stamps: set[datetime] = set()
        for stamp, path in sorted(self._backups(), reverse=True):
            stamps.add(stamp)
            too_many = rotation.backups and len(stamps) > rotation.backups
            too_old = rotation.days and stamp < self._now() - timedelta(days=rotation.days)
            if too_many or too_old:
                path.unlink(missing_ok=True)
            else:
                remaining.append(path)
        if rotation.compress:
            for path in remaining:
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
                rotated_at = datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)
                yield rotated_at + timedelta(milliseconds=int(match[2])), path


class StandardOutput:
    """Writes lines to the standard output of the process."""

    def __init__(self) -> None:
        self._descriptor = -1

    def ensure(self) -> None:
        """Do nothing: standard output exists."""

    def write(self, lines: Sequence[bytes]) -> None:
        """As L{LogFile.write}."""
        if self._descriptor < 0:
            # twisted.logger has replaced sys.stdout.
            assert sys.__stdout__ is not None, "the process has a standard output"
            self._descriptor = os.dup(sys.__stdout__.fileno())
        view = memoryview(b"".join(lines))
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError as error:
            raise PartlyWritten(0, error) from error

    def close(self) -> None:
        """Close the duplicated descriptor."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class PartlyWritten(Exception):
    """
    Not all lines were written.

    @ivar written: Number of lines that were written, from the first one.
    @ivar alone: Whether only the next line cannot be written; later lines may succeed.
    """

    def __init__(self, written: int, reason: OSError, *, alone: bool = False) -> None:
        super().__init__(str(reason))
        self.written = written
        self.alone = alone


def _lock(descriptor: int, operation: int) -> None:
    """Lock or unlock a file; pipes and devices on some systems cannot be locked, and are not rotated."""
    with suppress(OSError):
        fcntl.flock(descriptor, operation)


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
