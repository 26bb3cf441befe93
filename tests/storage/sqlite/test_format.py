# mypy: allow-untyped-calls
"""Tests for L{kubetwist.storage.sqlite._format}: files of every format."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.errors import StorageCorrupt, StorageUnavailable
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.sqlite import _format as sqliteformat
from kubetwist.testing.storage import RecordingObserver, StorageReactor

FORMATS = Path(__file__).with_name("formats")


class FormatCase(SynchronousTestCase):
    """Has files of older formats."""

    def setUp(self) -> None:
        """Choose a path."""
        self.reactor = StorageReactor()
        self.path = os.path.abspath(self.mktemp())

    def connect(self) -> sqlite3.Connection:
        """Open the file with SQLite."""
        connection = sqlite3.connect(self.path)
        self.addCleanup(connection.close)
        return connection

    def make(self, version: int) -> None:
        """Copy a file of a format."""
        connection = self.connect()
        connection.executescript((FORMATS / f"{version}.sql").read_text())
        connection.close()

    def open(self) -> SQLiteStorage:
        """Open the file as a store."""
        storage = SQLiteStorage(self.path, self.reactor)
        self.addCleanup(lambda: self.reactor.run(storage.close()))
        self.reactor.run(storage.open())
        return storage

    def version(self) -> int:
        """Return the format of the file."""
        (version,) = self.connect().execute("PRAGMA user_version").fetchone()
        return int(version)

    def shape(self) -> list[Any]:
        """Return the tables of the file."""
        tables = self.connect().execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
        return [(name, self.connect().execute(f"PRAGMA table_info({name})").fetchall()) for (name,) in tables]


class OlderFormatTests(FormatCase):
    """Files of older releases."""

    def test_every_format(self) -> None:
        """A file of every former format can be opened, and has the current format then."""
        versions = sorted(int(path.stem) for path in FORMATS.glob("*.sql"))
        self.assertEqual(versions, list(range(1, sqliteformat.FORMAT + 1)))
        fresh = self.open()
        self.reactor.run(fresh.close())
        shape = self.shape()
        for version in versions:
            self.path = os.path.abspath(self.mktemp())
            self.make(version)
            self.check(self.open())
            self.assertEqual((self.version(), self.shape()), (sqliteformat.FORMAT, shape))

    def check(self, storage: SQLiteStorage) -> None:
        """All data of the file is kept: values, revisions, times to live, the revision counter and past changes."""
        page = self.reactor.run(storage.read_page("/registry/"))
        self.assertEqual(
            [(item.key.rpartition("/")[2], item.value, item.revision) for item in page.items],
            [("kept", b'{"data"&', 2), ("e", b"e", 5), ("f", b"ff", 6)],
        )
        self.assertEqual((storage.revision, storage.compacted), (11, 4))
        self.assertEqual(storage.list_expirations(), {"/registry/events/default/e": 1000010.0})
        observer = RecordingObserver()
        self.reactor.run(storage.watch("/registry/events/", 4, observer))
        self.assertEqual(
            [(value, revision) for _, value, revision, _ in observer.seen()], [(b"e", 5), (b"f", 5), (b"ff", 6)]
        )
        self.assertEqual(self.reactor.run(storage.commit([Write("/registry/x", b"1", 0)])), 12)
        self.reactor.run(storage.compact(12))
        (rows,) = self.connect().execute("SELECT count(*) FROM log").fetchone()
        self.assertEqual(rows, 4)


class StepTests(FormatCase):
    """Upgrades to a next format, with formats that only exist in these tests."""

    def patched(self, *steps: str) -> None:
        """Define a next format with one more step."""
        following = sqliteformat.FORMAT + 1
        self.patch(sqliteformat, "STEPS", sqliteformat.STEPS | {following: steps})
        self.patch(sqliteformat, "FORMAT", following)

    def test_step(self) -> None:
        """A step runs once, when a file of the format before is opened, and keeps the data."""
        self.make(1)
        self.patched("ALTER TABLE state ADD COLUMN note TEXT", "UPDATE state SET note = 'old'")
        following = sqliteformat.FORMAT
        for _ in range(2):
            storage = self.open()
            self.assertEqual(self.reactor.run(storage.read("/registry/events/default/f")).value, b"ff")
            self.reactor.run(storage.close())
            self.assertEqual(self.version(), following)
            (count,) = self.connect().execute("SELECT count(*) FROM state WHERE note = 'old'").fetchone()
            self.assertEqual(count, 3)

    def test_several(self) -> None:
        """Several steps run in order."""
        self.make(1)
        self.patched("ALTER TABLE state ADD COLUMN note TEXT")
        self.patched("UPDATE state SET note = 'there'")
        self.reactor.run(self.open().close())
        self.assertEqual(self.version(), sqliteformat.FORMAT)
        (count,) = self.connect().execute("SELECT count(*) FROM state WHERE note = 'there'").fetchone()
        self.assertEqual(count, 3)

    def test_all_or_nothing(self) -> None:
        """A failed step leaves the file unchanged."""
        self.make(1)
        before = self.shape()
        self.patched("ALTER TABLE state ADD COLUMN note TEXT", "INSERT INTO nowhere VALUES (1)")
        with self.assertRaises(StorageUnavailable) as caught:
            self.open()
        self.assertIn(self.path, str(caught.exception))
        self.assertEqual((self.version(), self.shape()), (1, before))

    def test_newer(self) -> None:
        """A file of a newer format is rejected with advice, and left unchanged."""
        self.make(1)
        self.connect().execute(f"PRAGMA user_version = {sqliteformat.FORMAT + 1}")
        with self.assertRaises(StorageCorrupt) as caught:
            self.open()
        self.assertIn(f"has format {sqliteformat.FORMAT + 1}", str(caught.exception))
        self.assertIn("use the newer one", str(caught.exception))
        self.assertEqual(self.version(), sqliteformat.FORMAT + 1)
