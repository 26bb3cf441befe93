"""Tests for L{kubetwist.audit.logfile}: rotation on a real disk."""

from __future__ import annotations

import errno
import gzip
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.audit import logfile
from kubetwist.audit.logfile import LogFile, PartlyWritten, Rotation


class LogFileTests(SynchronousTestCase):
    """Tests for L{LogFile}."""

    def setUp(self) -> None:
        """Create a folder and a clock."""
        self.folder = Path(self.mktemp())
        self.time = datetime(2026, 1, 31, 12, 0, 0, 5000, tzinfo=UTC)

    def make(self, **rotation: Any) -> LogFile:
        """Create a log."""
        made = LogFile(self.folder / "deep" / "audit.log", Rotation(**rotation), lambda: self.time)
        made.ensure()
        self.addCleanup(made.close)
        return made

    def names(self) -> list[str]:
        """Return the names of the files."""
        return sorted(path.name for path in (self.folder / "deep").iterdir())

    def settled(self, log: LogFile) -> list[str]:
        """Return the names of the files after all removals and compressions."""
        log.close()
        return self.names()

    def test_private(self) -> None:
        """The file and its folder are created and readable by the owner only."""
        log = self.make()
        self.assertEqual(log.path.stat().st_mode & 0o777, 0o600)
        self.assertEqual(log.path.parent.stat().st_mode & 0o777, 0o700)

    def test_append(self) -> None:
        """Lines are appended to an existing file."""
        log = self.make()
        log.path.write_bytes(b"old\n")
        log.write([b"a\n", b"b\n"])
        log.write([b"c\n"])
        self.assertEqual(log.path.read_bytes(), b"old\na\nb\nc\n")

    def test_rotation(self) -> None:
        """A line that exceeds the size starts a new file; rotated files have unique timestamps."""
        log = self.make(size=10)
        log.write([b"aaaa\n", b"bbbb\n", b"cccc\n", b"dddd\n", b"eeee\n"])
        self.assertEqual(
            self.settled(log),
            ["audit-2026-01-31T12-00-00.005.log", "audit-2026-01-31T12-00-00.006.log", "audit.log"],
        )
        contents = [(log.path.parent / name).read_bytes() for name in self.names()]
        self.assertEqual(contents, [b"aaaa\nbbbb\n", b"cccc\ndddd\n", b"eeee\n"])
        self.assertEqual(log.path.stat().st_mode & 0o777, 0o600)

    def test_size_before(self) -> None:
        """The size of an existing file counts."""
        log = self.make(size=10)
        log.path.write_bytes(b"12345678\n")
        log.write([b"a\n"])
        self.assertEqual(len(self.settled(log)), 2)

    def test_too_long(self) -> None:
        """A line that exceeds the maximum file size is rejected, and other lines are written."""
        log = self.make(size=10)
        error = self.assertRaises(PartlyWritten, log.write, [b"a\n", b"x" * 11, b"b\n"])
        self.assertEqual(
            (error.written, error.alone, str(error)), (1, True, "write length 11 exceeds maximum file size 10")
        )
        self.assertEqual(log.path.read_bytes(), b"a\n")

    def test_backups(self) -> None:
        """A limited number of rotated files is kept, the newest ones; other files are ignored."""
        log = self.make(size=4, backups=2)
        (log.path.parent / "audit-old.log").touch()
        for _ in range(5):
            log.write([b"abc\n"])
            self.time += timedelta(seconds=1)
            log.close()
        self.assertEqual(
            self.names(),
            ["audit-2026-01-31T12-00-03.005.log", "audit-2026-01-31T12-00-04.005.log", "audit-old.log", "audit.log"],
        )

    def test_age(self) -> None:
        """Rotated files are removed after their maximum age, compressed or not."""
        log = self.make(size=4, days=1)
        for name in ("audit-2026-01-30T11-59-59.000.log.gz", "audit-2026-01-30T12-00-01.000.log"):
            (log.path.parent / name).touch()
        log.write([b"abc\n"])
        self.assertEqual(self.settled(log), ["audit-2026-01-30T12-00-01.000.log", "audit.log"])

    def test_compress(self) -> None:
        """Rotated files are compressed, and count once."""
        log = self.make(size=4, compress=True, backups=3)
        log.write([b"abc\n", b"def\n"])
        self.assertEqual(self.settled(log), ["audit-2026-01-31T12-00-00.005.log.gz", "audit.log"])
        with gzip.open(log.path.parent / self.names()[0]) as file:
            self.assertEqual(file.read(), b"abc\n")

    def test_disk_full(self) -> None:
        """On a full disk no partial line remains, and writing continues when there is space."""
        log = self.make()
        log.write([b"a\n"])
        room = [3]

        def write(descriptor: int, data: Any) -> int:
            """Write as on a disk with little space."""
            if not room[0]:
                raise OSError(errno.ENOSPC, "No space left on device")
            length = min(len(data), room[0])
            room[0] -= length
            return real(descriptor, data[:length])

        real = os.write
        self.patch(logfile.os, "write", write)
        error = self.assertRaises(PartlyWritten, log.write, [b"1234567\n"])
        self.assertEqual((error.written, error.alone), (0, False))
        self.assertEqual(log.path.read_bytes(), b"a\n")
        room[0] = 100
        log.write([b"b\n"])
        self.assertEqual(log.path.read_bytes(), b"a\nb\n")


class SharedLogFileTests(SynchronousTestCase):
    """Tests for a L{LogFile} that several processes write; each has one object."""

    def setUp(self) -> None:
        """Create two objects for one file."""
        path = Path(self.mktemp()) / "audit.log"
        time = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
        self.one, self.other = (LogFile(path, Rotation(size=10), lambda: time, shared=True) for _ in range(2))
        for log in (self.one, self.other):
            log.ensure()
            self.addCleanup(log.close)

    def contents(self) -> list[bytes]:
        """Return the contents of all files, the current one last."""
        rotated = sorted(path for path in self.one.path.parent.iterdir() if path != self.one.path)
        return [path.read_bytes() for path in (*rotated, self.one.path)]

    def test_append(self) -> None:
        """Both append to the same file."""
        self.one.write([b"a\n"])
        self.other.write([b"b\n"])
        self.one.write([b"c\n"])
        self.assertEqual(self.contents(), [b"a\nb\nc\n"])

    def test_rotation(self) -> None:
        """The size counts the lines of both, one of them rotates the file, and the other one follows."""
        self.one.write([b"aaaa\n"])
        self.other.write([b"bbbb\n"])
        self.one.write([b"cccc\n"])
        self.other.write([b"dddd\n", b"eeee\n"])
        self.one.write([b"ffff\n"])
        self.assertEqual(self.contents(), [b"aaaa\nbbbb\n", b"cccc\ndddd\n", b"eeee\nffff\n"])

    def test_removed(self) -> None:
        """A file that was removed is created again."""
        self.one.write([b"a\n"])
        self.one.path.unlink()
        self.other.write([b"b\n"])
        self.one.write([b"c\n"])
        self.assertEqual(self.contents(), [b"b\nc\n"])

    def test_partial_write(self) -> None:
        """Only the partial line is removed after an error, and no line of another process."""
        self.one.write([b"a\n"])
        self.other.write([b"b\n"])
        real, calls = os.write, iter(range(2))

        def write(descriptor: int, data: bytes) -> int:
            if next(calls):
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(descriptor, bytes(data)[:1])

        self.patch(logfile.os, "write", write)
        self.assertRaises(PartlyWritten, self.one.write, [b"c\n"])
        self.patch(logfile.os, "write", real)
        self.other.write([b"d\n"])
        self.assertEqual(self.contents(), [b"a\nb\nd\n"])

    def test_compression(self) -> None:
        """Rotated files are compressed by one of them."""
        for log in (self.one, self.other):
            log._rotation = Rotation(size=10, compress=True)
        for number in range(6):
            (self.one, self.other)[number % 2].write([b"%d%d%d%d\n" % ((number,) * 4)])
        for log in (self.one, self.other):
            log.close()
        rotated = sorted(path for path in self.one.path.parent.iterdir() if path != self.one.path)
        self.assertEqual({path.suffix for path in rotated}, {".gz"})
        self.assertEqual([gzip.decompress(path.read_bytes()) for path in rotated], [b"0000\n1111\n", b"2222\n3333\n"])
