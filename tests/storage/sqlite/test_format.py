# mypy: allow-untyped-calls
"""Tests for L{kubetwist.storage.sqlite._format}: files of every format."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist.api.storage import Write
from kubetwist.storage.errors import StorageCorrupt, StorageUnavailable
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.sqlite import _format as sqliteformat
from kubetwist.storage.sqlite.backup import copy_store, restore_copy
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


class ReleaseTests(FormatCase):
    """Stores that released versions have written, see L{tests.storage.sqlite.oldstores}."""

    def releases(self) -> list[str]:
        """Return the releases, of which there is one for each former format at least."""
        return sorted(path.name.removesuffix(".sqlite.gz") for path in FORMATS.glob("*.sqlite.gz"))

    def restore(self, release: str) -> Any:
        """Put the store of a release at a new path, and return the content that the release has read."""
        self.path = os.path.abspath(self.mktemp())
        Path(self.path).write_bytes(gzip.decompress((FORMATS / f"{release}.sqlite.gz").read_bytes()))
        return json.loads((FORMATS / f"{release}.json").read_text())

    def content(self, storage: SQLiteStorage) -> Any:
        """Return the content in the form of the files of releases."""
        page = self.reactor.run(storage.read_page("/"))
        items = [[item.key, hashlib.sha256(item.value).hexdigest(), item.revision] for item in page.items]
        return {"revision": storage.revision, "compacted": storage.compacted, "items": items}

    def test_every_release(self) -> None:
        """The store of each release is upgraded with its whole content, and a copy in the former format is kept."""
        formats = set()
        for release in self.releases():
            expected = self.restore(release)
            version = self.version()
            formats.add(version)
            storage = self.open()
            self.assertEqual(self.content(storage), expected)
            self.assertEqual(
                storage.list_expirations(), {"/registry/events/a/e": storage.list_expirations().popitem()[1]}
            )
            self.reactor.run(storage.commit([Write("/registry/new", b"", 0)]))
            self.reactor.run(storage.close())
            self.assertEqual(self.version(), sqliteformat.FORMAT)
            kept = f"{self.path}-format{version}"
            self.assertEqual(os.path.exists(kept), version < sqliteformat.FORMAT)
            if version < sqliteformat.FORMAT:
                self.path = kept
                self.assertEqual(self.version(), version)
        self.assertEqual(formats, set(range(1, sqliteformat.FORMAT + 1)))

    def test_no_room(self) -> None:
        """Without room for a copy, the store is upgraded nevertheless."""
        for release in self.releases():
            expected = self.restore(release)
            self.patch(shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
            storage = self.open()
            self.assertEqual(self.content(storage), expected)
            self.assertEqual([name for name in os.listdir(os.path.dirname(self.path)) if "-format" in name], [])

    def test_killed(self) -> None:
        """kill -9 at each statement of an upgrade leaves a store that the next start upgrades."""
        for release in self.releases():
            for number in range(20):
                expected = self.restore(release)
                version = self.version()
                done = subprocess.run(
                    [sys.executable, "-c", _KILLED_UPGRADE, self.path, str(number)],
                    env={**os.environ, "PYTHONPATH": str(Path(kubetwist.__file__).parent.parent)},
                )
                self.assertIn(self.version(), (version, sqliteformat.FORMAT))
                storage = self.open()
                self.assertEqual(self.content(storage), expected)
                if done.returncode == 0:
                    break
                self.assertEqual(done.returncode, -signal.SIGKILL)
            else:
                self.fail("the upgrade has no end")
            self.assertGreater(number, 5)

    def test_downgrade(self) -> None:
        """A copy can be converted to each former format, with the tables and the content of that format."""
        for release in self.releases():
            expected = self.restore(release)
            version, shape, path = self.version(), self.shape(), self.path
            storage = self.open()
            copied = os.path.abspath(self.mktemp())
            copy_store(path, copied, lambda done, total: None)
            self.reactor.run(storage.close())
            restore_copy(copied, 0, version)
            self.path = copied
            self.assertEqual((self.version(), self.shape()), (version, shape))
            self.assertEqual(self.content(self.open()), expected)
        self.assertRaises(StorageCorrupt, restore_copy, copied, 0, sqliteformat.FORMAT + 1)


#: Opens a store, and kills itself before a statement.
_KILLED_UPGRADE = """
import os, signal, sqlite3, sys
from kubetwist.storage.sqlite.logfile import LogFile
left = [int(sys.argv[2])]
def trace(statement):
    left[0] -= 1
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
def connect(*arguments, **options):
    connection = sqlite3.connect(*arguments, **options)
    connection.set_trace_callback(trace)
    return connection
file = LogFile(sys.argv[1], connect)
file.open()
file.close()
"""


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
