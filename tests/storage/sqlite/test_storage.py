"""Tests for L{kubetwist.storage.sqlite._storage} and L{kubetwist.storage.sqlite.logfile}."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any
from unittest import mock

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.errors import (
    KeyExists,
    RevisionCompacted,
    StorageCorrupt,
    StorageUnavailable,
)
from kubetwist.storage.sqlite import SQLiteStorage, logfile
from kubetwist.storage.sqlite import _storage as sqlite_module
from kubetwist.storage.sqlite._format import FORMAT
from kubetwist.storage.worker import Worker
from kubetwist.testing.storage import RecordingObserver, StorageReactor, storage_tests


class SQLiteStorageTests(storage_tests(lambda case, reactor: SQLiteStorage(case.mktemp(), reactor))):
    """L{SQLiteStorage} passes the tests of all stores."""


@contextmanager
def held(worker: Worker) -> Iterator[None]:
    """Block a thread."""
    gate = Event()
    worker.run(gate.wait)
    try:
        yield
    finally:
        gate.set()


class FileCase(SynchronousTestCase):
    """Has a path, and opens stores there."""

    def setUp(self) -> None:
        """Choose an unused path."""
        self.reactor = StorageReactor()
        self.path = os.path.abspath(self.mktemp())

    def open(self, connect: Callable[..., sqlite3.Connection] = sqlite3.connect) -> SQLiteStorage:
        """Open a store until the end of the test."""
        storage = SQLiteStorage(self.path, self.reactor, connect)
        self.addCleanup(self.close, storage)
        self.reactor.run(storage.open())
        return storage

    def close(self, storage: SQLiteStorage) -> None:
        """Close a store."""
        self.reactor.run(storage.close())

    def reopen(self, storage: SQLiteStorage) -> SQLiteStorage:
        """Close a store and open another one with the same path."""
        self.close(storage)
        return self.open()

    def write(self, storage: SQLiteStorage, key: str, value: bytes | None, **options: Any) -> int:
        """Write one key."""
        return self.reactor.run(storage.commit([Write(key, value, options.pop("expected", None), **options)]))

    def page(self, storage: SQLiteStorage, **options: Any) -> list[tuple[str, bytes, int]]:
        """Return the stored values."""
        page = self.reactor.run(storage.read_page("/", **options))
        return [(item.key, item.value, item.revision) for item in page.items]

    def rows(self) -> int:
        """Return the number of rows in the file."""
        connection = sqlite3.connect(self.path)
        self.addCleanup(connection.close)
        (count,) = connection.execute("SELECT count(*) FROM log").fetchone()
        return int(count)

    def refused(self, kind: type[Exception], *texts: str) -> None:
        """Assert that opening fails with one line that contains C{texts} and the path, and releases the lock."""
        with self.assertRaises(kind) as caught:
            self.open()
        message = str(caught.exception)
        for text in (self.path, *texts):
            self.assertIn(text, message)
        self.assertNotIn("\n", message)
        with self.assertRaises(kind):
            self.open()


class PersistenceTests(FileCase):
    """Persistence."""

    def test_reopen(self) -> None:
        """A reopened store has the same values, revisions and past changes."""
        storage = self.open()
        first = self.write(storage, "/r/a", b"1")
        self.write(storage, "/r/gone", b"1")
        self.write(storage, "/r/a", b"2")
        newest = self.write(storage, "/r/gone", None)
        now, then = self.page(storage), self.page(storage, revision=first)
        storage = self.reopen(storage)
        self.assertEqual((storage.revision, self.page(storage)), (newest, now))
        self.assertEqual(self.page(storage, revision=first), then)
        with self.assertRaises(KeyExists):
            self.write(storage, "/r/a", b"3", expected=0)
        self.assertEqual(self.write(storage, "/r/gone", b"again", expected=0), newest + 1)

    def test_past_pages(self) -> None:
        """The pages of a list at a past revision are exact, also if objects are written between them."""
        storage = self.open()
        for number in range(0, 40, 2):
            self.write(storage, f"/r/{number:02}", b"old")
        then, revision = self.page(storage), storage.revision
        for number in range(1, 40, 2):
            self.write(storage, f"/r/{number:02}", b"new")
        found: list[tuple[str, bytes, int]] = []
        start = ""
        while start is not None:
            page = self.reactor.run(storage.read_page("/r/", start=start, limit=3, revision=revision))
            self.assertEqual(page.revision, revision)
            found += [(item.key, item.value, item.revision) for item in page.items]
            self.write(storage, page.items[0].key, b"changed")
            self.write(storage, page.items[-1].key, None)
            self.write(storage, found[0][0], b"again")
            self.write(storage, "/r/38", b"later")
            start = page.items[-1].key + "\0" if page.more else None
        self.assertEqual(found, then)
        self.assertEqual(self.page(storage, revision=revision), then)

    def test_kept_changes(self) -> None:
        """A list at a past revision is the same without the changes that are kept between its pages."""
        self.patch(logfile, "MAX_KEPT_CHANGES", 0)
        self.test_past_pages()

    def test_revisions_after_compaction(self) -> None:
        """Revisions continue after a restart even if no key is left."""
        storage = self.open()
        self.write(storage, "/r/a", b"1")
        newest = self.write(storage, "/r/a", None)
        self.reactor.run(storage.compact(newest))
        storage = self.reopen(storage)
        self.assertEqual(self.rows(), 0)
        self.assertEqual((storage.revision, storage.compacted), (newest, newest))
        with self.assertRaises(RevisionCompacted):
            self.page(storage, revision=newest - 1)
        self.assertEqual(self.write(storage, "/r/a", b"2"), newest + 1)

    def test_ttl(self) -> None:
        """Times to live run while the store is closed."""
        storage = self.open()
        self.write(storage, "/r/short", b"", ttl=10)
        self.write(storage, "/r/long", b"", ttl=100)
        self.write(storage, "/r/kept", b"", ttl=10)
        self.write(storage, "/r/kept", b"")
        self.close(storage)
        self.reactor.advance(50)
        storage = self.open()
        observer = RecordingObserver()
        self.reactor.run(storage.watch("/r/", storage.revision, observer))
        self.reactor.advance(0)
        self.write(storage, "/after/a", b"")
        self.assertEqual([(event.key, event.value) for event in observer.events], [("/r/short", None)])
        self.reactor.advance(50)
        self.write(storage, "/after/a", b"")
        self.assertEqual([key for key, _, _ in self.page(storage)], ["/after/a", "/r/kept"])

    def test_private(self) -> None:
        """The file is private, since it contains secrets."""
        self.open()
        for suffix in ("", "-wal", ".lock"):
            self.assertEqual(stat.S_IMODE(os.stat(self.path + suffix).st_mode), 0o600)

    def test_durable(self) -> None:
        """SQLite syncs each commit."""
        connections: list[sqlite3.Connection] = []

        def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connections.append(sqlite3.connect(*args, check_same_thread=False, **kwargs))
            return connections[-1]

        self.open(connect)
        writing = connections[0]
        self.assertEqual(writing.execute("PRAGMA synchronous").fetchone(), (2,))
        self.assertEqual(writing.execute("PRAGMA journal_mode").fetchone(), ("wal",))

    def test_other_programs(self) -> None:
        """A process that opens the file while it is in use cannot remove the write-ahead log."""
        storage = self.open()
        self.write(storage, "/r/a", b"1")
        script = (
            "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM log').fetchone())"
        )
        output = subprocess.run([sys.executable, "-c", script, self.path], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(output.strip(), b"(1,)")
        self.assertTrue(os.path.exists(f"{self.path}-wal"))
        self.write(storage, "/r/b", b"2")
        self.assertEqual([key for key, _, _ in self.page(self.reopen(storage))], ["/r/a", "/r/b"])

    def test_watch_while_writing(self) -> None:
        """Writes during the read of a watch's past events are delivered after them."""
        storage = self.open()
        self.write(storage, "/r/a", b"1")
        observer = RecordingObserver()
        with held(storage._reader):
            beginning = Deferred.fromCoroutine(storage.watch("/r/", 1, observer))
            self.write(storage, "/r/a", b"2")
            self.assertEqual((observer.events, observer.progress), ([], 0))
        self.reactor.run(beginning)
        self.assertEqual(observer.seen(), [("/r/a", b"1", 2, 0), ("/r/a", b"2", 3, 2)])
        self.assertEqual(observer.progress, 3)


class RefusalTests(FileCase):
    """Files that cannot be used."""

    def test_locked(self) -> None:
        """A file that is in use is rejected, and accepted when it is released."""
        storage = self.open()
        with self.assertRaises(StorageUnavailable) as caught:
            self.open()
        self.assertEqual(str(caught.exception), f"{self.path} is in use by another process ({os.getpid()})")
        self.reopen(storage)

    def test_no_directory(self) -> None:
        """The error names a path where no file can be created."""
        self.path = os.path.join(self.path, "missing", "store")
        self.refused(StorageUnavailable, "No such file or directory")

    def test_directory(self) -> None:
        """A directory is rejected."""
        os.mkdir(self.path)
        self.refused(StorageUnavailable, "Is a directory")

    def test_garbage(self) -> None:
        """A file that is not a database is rejected and left unchanged."""
        for garbage in (b"x", b"hello" * 1000):
            with open(self.path, "wb") as file:
                file.write(garbage)
            self.refused(StorageCorrupt, "no kubetwist store")
            with open(self.path, "rb") as file:
                self.assertEqual(file.read(), garbage)

    def test_foreign(self) -> None:
        """Another program's database is rejected and left unchanged."""
        connection = sqlite3.connect(self.path)
        connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, line TEXT)")
        connection.close()
        with open(self.path, "rb") as file:
            before = file.read()
        self.refused(StorageCorrupt, "another program's")
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_newer(self) -> None:
        """A store of a newer format is rejected."""
        self.close(self.open())
        connection = sqlite3.connect(self.path)
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
        connection.close()
        self.refused(StorageCorrupt, f"format {FORMAT + 1}")

    def test_damaged(self) -> None:
        """A store with overwritten pages is rejected."""
        storage = self.open()
        for number in range(50):
            self.write(storage, f"/r/{number}", b"x" * 1000)
        self.close(storage)
        with open(self.path, "r+b") as file:
            file.seek(8192)
            file.write(b"\xff" * (os.path.getsize(self.path) - 8192))
        self.refused(StorageCorrupt, "is damaged")

    def test_truncated(self) -> None:
        """A truncated store is rejected."""
        storage = self.open()
        for number in range(50):
            self.write(storage, f"/r/{number}", b"x" * 1000)
        self.close(storage)
        os.truncate(self.path, 16384)
        self.refused(StorageCorrupt, "is damaged")

    def test_emptied(self) -> None:
        """An empty store with a write-ahead log is rejected: the log may have the only copy of the data."""
        storage = self.open()
        self.write(storage, "/r/a", b"1")
        with open(f"{self.path}-wal", "rb") as file:
            log = file.read()
        self.close(storage)
        os.truncate(self.path, 0)
        with open(f"{self.path}-wal", "wb") as file:
            file.write(log)
        self.refused(StorageCorrupt, "is empty, but its log")

    def test_unfinished_creation(self) -> None:
        """A store whose creation was interrupted is created again."""
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        self.assertGreater(os.path.getsize(self.path), 0)
        storage = self.open()
        self.assertEqual(self.write(storage, "/r/a", b"1"), 2)

    def test_opened_once(self) -> None:
        """A closed store cannot be opened again."""
        storage = self.open()
        self.close(storage)
        with self.assertRaises(StorageUnavailable):
            self.reactor.run(storage.open())


class CompactionTests(FileCase):
    """Compaction."""

    def setUp(self) -> None:
        """Open a store with superseded values, and set a small slice size."""
        super().setUp()
        self.patch(sqlite_module, "SLICE_ROWS", 10)
        self.storage = self.open()
        for number in range(100):
            self.write(self.storage, f"/r/{number % 10}", b"%d" % number)
        self.write(self.storage, "/r/0", None)
        self.now = self.page(self.storage)

    def test_removed(self) -> None:
        """Only values that can still be read remain in the file."""
        self.reactor.run(self.storage.compact(self.storage.revision))
        self.assertEqual((self.rows(), self.page(self.storage)), (9, self.now))

    def test_partly(self) -> None:
        """Values that were superseded after the compacted revision are kept."""
        compacted = self.storage.revision - 30
        past = {revision: self.page(self.storage, revision=revision) for revision in range(compacted, compacted + 31)}
        self.reactor.run(self.storage.compact(compacted))
        self.assertEqual(self.rows(), 10 + 30)
        for revision, then in past.items():
            self.assertEqual(self.page(self.storage, revision=revision), then)

    def test_slices(self) -> None:
        """Writes run between the slices of a compaction."""
        compaction = Deferred.fromCoroutine(self.storage.compact(self.storage.revision))
        self.reactor.run(self.storage.commit([Write("/s/a", b"", 0)]))
        self.assertNoResult(compaction)
        self.reactor.run(self.storage.commit([Write("/s/b", b"", 0)]))
        self.assertNoResult(compaction)
        self.reactor.run(compaction)
        self.assertEqual(self.rows(), 9 + 2)

    def test_interrupted(self) -> None:
        """An interrupted compaction is completed by the next one, also after a restart."""
        compacted = self.storage.revision
        compaction = Deferred.fromCoroutine(self.storage.compact(compacted))
        self.reactor.turn()
        storage = self.reopen(self.storage)
        self.successResultOf(compaction)
        self.assertGreater(self.rows(), 9)
        self.assertEqual((storage.compacted, self.page(storage)), (compacted, self.now))
        self.reactor.run(storage.compact(compacted))
        self.assertEqual((self.rows(), self.page(storage)), (9, self.now))

    def test_read_overtaken(self) -> None:
        """A read of the newest state during a compaction returns the newest state at its end."""
        values = mock.Mock(side_effect=self.storage._reading.values)
        self.patch(self.storage._reading, "values", values)
        with held(self.storage._reader):
            read = Deferred.fromCoroutine(self.storage.read("/r/1"))
            page = Deferred.fromCoroutine(self.storage.read_page("/r/"))
            newest = self.write(self.storage, "/r/1", b"newer")
            self.reactor.run(self.storage.compact(newest))
        self.assertEqual(self.reactor.run(read).value, b"newer")
        self.assertEqual(self.reactor.run(page).revision, newest)
        self.assertEqual(values.call_count, 4)
