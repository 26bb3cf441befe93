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
