"""Tests for L{kubetwist.storage.sqlite._filelock}."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.sqlite._filelock import FileLock, read_holder, write_holder


class FileLockTests(SynchronousTestCase):
    """Tests for L{FileLock}."""

    def setUp(self) -> None:
        """Choose a path, and release locks at the end."""
        self.path = self.mktemp()
        self.lock = FileLock(self.path)
        self.addCleanup(self.lock.release)

    def test_one_holder(self) -> None:
        """A lock has one holder; the error names its process; a released lock can be acquired again."""
        self.lock.acquire()
        other = FileLock(self.path)
        error = self.assertRaises(StorageUnavailable, other.acquire)
        self.assertEqual(str(error), f"{self.path} is in use by another process ({os.getpid()})")
        self.lock.release()
        other.acquire()
        other.release()

    def test_file_stays(self) -> None:
        """The lock file is private, and remains after the release."""
        self.lock.acquire()
        self.lock.release()
        self.lock.release()
        file = Path(f"{self.path}.lock")
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        self.assertEqual(file.read_text(), f"{os.getpid()}\n")

    def test_no_directory(self) -> None:
        """A lock file that cannot be created is an error."""
        lock = FileLock(f"{self.path}/absent/x")
        error = self.assertRaises(StorageUnavailable, lock.acquire)
        self.assertIn("cannot be opened: No such file or directory", str(error))

    def test_unreadable_holder(self) -> None:
        """A lock file without the holder's process, or that cannot be written, does not cause a failure."""
        file = Path(self.path)
        file.write_text("junk")
        descriptor = os.open(file, os.O_RDONLY)
        self.addCleanup(os.close, descriptor)
        self.assertEqual(read_holder(descriptor), "another process")
        write_holder(descriptor)
        self.assertEqual(file.read_text(), "junk")
