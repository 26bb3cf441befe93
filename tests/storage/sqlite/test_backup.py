# mypy: allow-untyped-calls
"""Tests for L{kubetwist.storage.sqlite.backup}."""

from __future__ import annotations

import os
import sqlite3
import stat

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.errors import RevisionCompacted, StorageCorrupt, StorageUnavailable
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.sqlite import backup as sqlitecopy
from kubetwist.storage.sqlite.backup import (
    Summary,
    copy_store,
    restore_copy,
    verify_copy,
)
from kubetwist.testing.storage import RecordingObserver, StorageReactor


def nothing(done: int, total: int) -> None:
    """Ignore progress."""


class CopyCase(SynchronousTestCase):
    """Has an open store, and a path for a copy."""

    def setUp(self) -> None:
        """Open a store with some data."""
        self.reactor = StorageReactor()
        self.path = os.path.abspath(self.mktemp())
        self.target = os.path.abspath(self.mktemp())
        self.storage = self.open(self.path)
        for number in range(100):
            self.write(f"/r/{number:03}", b"x" * 3000)
        self.write("/r/000", None)

    def open(self, path: str) -> SQLiteStorage:
        """Open a store until the end of the test."""
        storage = SQLiteStorage(path, self.reactor)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.reactor.run(storage.open())
        return storage

    def write(self, key: str, value: bytes | None) -> int:
        """Write one key."""
        return self.reactor.run(self.storage.commit([Write(key, value, None)]))

    def contents(self, storage: SQLiteStorage) -> list[tuple[str, bytes, int]]:
        """Return the stored values."""
        return [(item.key, item.value, item.revision) for item in self.reactor.run(storage.read_page("/")).items]


class CopyTests(CopyCase):
    """Copies of a store in use."""

    def test_copy(self) -> None:
        """A copy has all keys with their revisions, is intact, private, and a single file."""
        copy_store(self.path, self.target, nothing)
        self.assertEqual(verify_copy(self.target), Summary(self.storage.revision, 99))
        self.assertEqual(stat.S_IMODE(os.stat(self.target).st_mode), 0o600)
        self.assertFalse(os.path.exists(f"{self.target}-wal"))
        copied = self.open(self.target)
        self.assertEqual(self.contents(copied), self.contents(self.storage))
        self.assertEqual(copied.revision, self.storage.revision)

    def test_beside_writes(self) -> None:
        """Writes during a copy do not wait, are not in the copy, and do not restart it."""
        self.patch(sqlitecopy, "COPY_STEP_PAGES", 10)
        before, revision = self.contents(self.storage), self.storage.revision
        seen: list[tuple[int, int]] = []

        def progress(done: int, total: int) -> None:
            seen.append((done, total))
            self.write("/r/more", b"y" * 5000)

        copy_store(self.path, self.target, progress)
        self.assertGreater(len(seen), 5)
        self.assertEqual([done for done, _ in seen], sorted({done for done, _ in seen}))
        self.assertEqual(len({total for _, total in seen}), 1)
        self.assertEqual(self.storage.revision, revision + len(seen))
        copied = self.open(self.target)
        self.assertEqual((self.contents(copied), copied.revision), (before, revision))

    def test_given_up(self) -> None:
        """A cancelled copy leaves the store unchanged."""

        def progress(done: int, total: int) -> None:
            raise ZeroDivisionError

        self.assertRaises(ZeroDivisionError, copy_store, self.path, self.target, progress)
        self.write("/r/more", b"")

    def test_refused(self) -> None:
        """Sources that are not stores, and existing targets, are rejected and left unchanged."""
        self.assertRaises(StorageUnavailable, copy_store, self.path + "-no", self.target, nothing)
        os.unlink(self.target)
        with open(self.target, "wb") as file:
            file.write(b"precious")
        self.assertRaises(StorageUnavailable, copy_store, self.path, self.target, nothing)
        self.assertRaises(StorageCorrupt, copy_store, self.target, self.mktemp(), nothing)
        self.assertRaises(StorageCorrupt, verify_copy, self.target)
        with open(self.target, "rb") as file:
            self.assertEqual(file.read(), b"precious")
        foreign = self.mktemp()
        connection = sqlite3.connect(foreign)
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        self.assertRaises(StorageCorrupt, copy_store, foreign, self.mktemp(), nothing)

    def test_damaged(self) -> None:
        """A copy with a damaged page is detected."""
        copy_store(self.path, self.target, nothing)
        with open(self.target, "r+b") as file:
            file.seek(4096 * 5)
            file.write(b"\xff" * 4096)
        self.assertRaises(StorageCorrupt, verify_copy, self.target)


class RestoredTests(CopyCase):
    """Restored copies."""

    def test_goes_on(self) -> None:
        """A restored store has all keys, and its revisions continue after those assigned since the copy."""
        copy_store(self.path, self.target, nothing)
        before, revision = self.contents(self.storage), self.storage.revision
        lost = [self.write("/r/lost", b"") for _ in range(10)]
        self.assertEqual(restore_copy(self.target, 1000), Summary(revision + 1000, 99))
        restored = self.open(self.target)
        self.assertEqual(self.contents(restored), before)
        self.assertGreater(self.reactor.run(restored.commit([Write("/r/new", b"", 0)])), max(lost))

    def test_no_mistake(self) -> None:
        """A client with a revision of the lost store gets RevisionCompacted."""
        copy_store(self.path, self.target, nothing)
        revision = self.storage.revision
        self.write("/r/lost", b"")
        restore_copy(self.target, 1000)
        restored = self.open(self.target)
        for known in (revision, revision + 1, revision + 999):
            for reading in (
                restored.read_page("/r/", revision=known),
                restored.watch("/r/", known, RecordingObserver()),
            ):
                with self.assertRaises(RevisionCompacted):
                    self.reactor.run(Deferred.fromCoroutine(reading))
        observer = RecordingObserver()
        self.reactor.run(restored.watch("/r/", restored.revision, observer))
        made = self.reactor.run(restored.commit([Write("/r/001", b"1", None)]))
        self.assertEqual(observer.seen(), [("/r/001", b"1", made, 3)])
        self.reactor.run(restored.compact(made))
        self.assertEqual(len(self.contents(restored)), 99)

    def test_exact(self) -> None:
        """A bump of 0 keeps the revision."""
        copy_store(self.path, self.target, nothing)
        self.assertEqual(restore_copy(self.target, 0).revision, self.storage.revision)
