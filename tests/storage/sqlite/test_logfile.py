"""Tests for L{kubetwist.storage.sqlite.logfile}."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from random import Random
from typing import Any

from kubetwist.api.storage import Write
from kubetwist.storage.errors import StorageCorrupt
from kubetwist.storage.sqlite import _storage as sqlite_module
from kubetwist.storage.sqlite._checksums import MISMATCH
from kubetwist.storage.sqlite._storage import SQLiteStorage
from kubetwist.storage.sqlite.logfile import LogFile
from kubetwist.testing.storage import RecordingObserver
from tests.storage.sqlite.crashes import CrashedCase
from tests.storage.sqlite.test_storage import FileCase


class UnsyncedTests(FileCase):
    """A store that does not wait for the disk."""

    def written(self, *, synced: bool) -> int:
        """Write, stop, and read it again with a new store; return how often fsync was called."""
        calls: list[int] = []
        self.patch(os, "fsync", calls.append)
        made: list[sqlite3.Connection] = []

        def connect(*arguments: Any, **keywords: Any) -> sqlite3.Connection:
            made.append(sqlite3.connect(*arguments, **keywords))
            if len(made) == 1:
                self.addCleanup(made[0].close)
            return made[-1]

        self.path = os.path.abspath(self.mktemp())
        file = LogFile(self.path, connect, synced=synced)
        file.open()
        (level,) = made[0].execute("PRAGMA synchronous").fetchone()
        self.assertEqual(level, 2 if synced else 0)
        file.close()
        storage = SQLiteStorage(self.path, self.reactor, synced=synced)
        self.reactor.run(storage.open())
        self.reactor.run(storage.commit([Write("/r/1", b"1", 0)]))
        self.close(storage)
        storage = self.open()
        self.assertEqual([key for key, _, _ in self.page(storage)], ["/r/1"])
        self.close(storage)
        return len(calls)

    def test_no_fsync(self) -> None:
        """Without synchronization a commit is kept by the file, which the next process reads."""
        self.assertLess(self.written(synced=False), self.written(synced=True))


class DamagedDatabaseTests(CrashedCase):
    """Damaged databases, and databases that are not the newest."""

    def setUp(self) -> None:
        """Close the store, so that everything is in the database."""
        super().setUp()
        old = self.files[""]
        self.put()
        self.close(self.open())
        self.assertFalse(os.path.exists(f"{self.path}-wal"))
        self.files = {"": Path(self.path).read_bytes(), "-mark": self.files["-mark"]}
        self.old = old

    def test_older_database(self) -> None:
        """A store does not start if its database was replaced by an older copy or an empty file, or removed."""
        for content in (self.old, b"", None):
            self.put(database=content)
            self.assertIsNone(self.attempt())

    def test_damage_anywhere(self) -> None:
        """If any bytes of the database change, no acknowledged write is lost or different without an error."""
        dice = Random(21)
        size = len(self.files[""])
        refused = unreadable = 0
        for at in [*range(0, 100, 8), *(dice.randrange(size - 16) for _ in range(150))]:
            self.put(database=self.changed("", at))
            storage = SQLiteStorage(self.path, self.reactor)
            try:
                self.reactor.run(storage.open())
            except Exception as error:
                self.assertIn(self.path, str(error), f"changed at {at}")
                refused += 1
                continue
            self.assertGreaterEqual(storage.revision, self.newest, f"changed at {at}")
            result = self.page(storage)
            self.assertEqual([(key, then) for key, _, then in result], [(key, then) for key, _, then in self.now])
            wrong = [is_[1] for is_, was in zip(result, self.now, strict=True) if is_ != was]
            self.assertTrue(all(value.endswith(MISMATCH) for value in wrong), f"changed at {at}")
            unreadable += bool(wrong)
            self.close(storage)
        self.assertGreater(refused, 10)
        self.assertGreater(unreadable, 10)

    def test_damaged_key(self) -> None:
        """A row whose key was changed is found when the store is opened, and the store does not start."""
        self.put(database=self.files[""].replace(b"/r/last", b"/r/lost"))
        self.refused(StorageCorrupt, "was changed")

    def test_damaged_value(self) -> None:
        """A changed value is unreadable in every way of reading; the other values are unchanged."""
        self.put(database=self.files[""].replace(b"x" * 100, b"y" * 100, 1))
        storage = self.open()
        self.assertEqual(self.page(storage)[:-1], self.now[:-1])
        damaged = self.reactor.run(storage.read("/r/last")).value
        self.assertTrue(damaged.endswith(MISMATCH))
        observer = RecordingObserver()
        self.reactor.run(storage.watch("/r/", self.newest - 1, observer))
        self.assertEqual([event.value for event in observer.events], [damaged])
        self.write(storage, "/r/last", b"again")
        self.assertEqual(self.page(self.reopen(storage))[-1][1], b"again")


class InterruptedTests(FileCase):
    """Files of stores that were not closed."""

    def setUp(self) -> None:
        """Create a store with a large checkpointed part, and some data in its log."""
        super().setUp()
        connections: list[sqlite3.Connection] = []

        def connect(*args: Any, **options: Any) -> sqlite3.Connection:
            connections.append(sqlite3.connect(*args, check_same_thread=False, **options))
            return connections[-1]

        storage = self.open(connect)
        self.write(storage, "/r/large", b"x" * 50_000)
        connections[0].execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.write(storage, "/r/small", b"y")
        self.checks: list[str] = []
        checked = LogFile.check

        def check(file: LogFile) -> None:
            self.checks.append(file.path)
            checked(file)

        self.patch(LogFile, "check", check)
        self.whole, self.path = self.path, os.path.abspath(self.mktemp())
        for suffix in ("", "-wal"):
            shutil.copyfile(self.whole + suffix, self.path + suffix)

    def test_checked(self) -> None:
        """After a kill the file is checked when it is opened; after a clean close only if it is small."""
        self.patch(sqlite_module, "ALWAYS_CHECKED", 0)
        storage = self.open()
        self.assertEqual(self.checks, [self.path])
        self.assertEqual([key for key, _, _ in self.page(storage)], ["/r/large", "/r/small"])
        storage = self.reopen(storage)
        self.assertEqual(self.checks, [self.path])
        self.patch(sqlite_module, "ALWAYS_CHECKED", 1 << 20)
        self.reopen(storage)
        self.assertEqual(self.checks, [self.path] * 2)

    def test_damaged(self) -> None:
        """Damage in a large file is detected, and the error names the command that restores a backup."""
        with open(self.path, "r+b") as file:
            content = file.read()
            # A page of the large value begins with the number of the next one.
            (page, *_) = [at for at in range(0, len(content), 4096) if content[at + 4 : at + 4096] == b"x" * 4092]
            file.seek(page)
            file.write((1 << 30).to_bytes(4, "big"))
        self.refused(StorageCorrupt, "is damaged", "twist kubeapi-restore")
