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
from kubetwist.storage._worker import Worker
from kubetwist.storage.errors import (
    InvalidArgument,
    KeyExists,
    KeyNotFound,
    RevisionCompacted,
    StorageCorrupt,
    StorageUnavailable,
    StorageUnwritable,
)
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.sqlite import _storage as sqlite_module
from kubetwist.storage.sqlite._format import FORMAT
from kubetwist.storage.sqlite.logfile import LogFile
from kubetwist.testing.storage import RecordingObserver, StorageReactor, storage_tests


class SQLiteStorageTests(storage_tests(lambda case, reactor: SQLiteStorage(case.mktemp(), reactor))):
    """L{SQLiteStorage} does what every store does."""


@contextmanager
def held(worker: Worker) -> Iterator[None]:
    """Keep a thread from its work meanwhile."""
    gate = Event()
    worker.run(gate.wait)
    try:
        yield
    finally:
        gate.set()


class FileCase(SynchronousTestCase):
    """Has a path, and opens stores there."""

    def setUp(self) -> None:
        """Choose a path where nothing is."""
        self.reactor = StorageReactor()
        self.path = os.path.abspath(self.mktemp())

    def open(self, connect: Callable[..., sqlite3.Connection] = sqlite3.connect) -> SQLiteStorage:
        """Open a store, until the end of the test at most."""
        storage = SQLiteStorage(self.path, self.reactor, connect)
        self.addCleanup(self.close, storage)
        self.reactor.run(storage.open())
        return storage

    def close(self, storage: SQLiteStorage) -> None:
        """Close a store."""
        self.reactor.run(storage.close())

    def reopen(self, storage: SQLiteStorage) -> SQLiteStorage:
        """Close a store and open another one at the same place."""
        self.close(storage)
        return self.open()

    def write(self, storage: SQLiteStorage, key: str, value: bytes | None, **how: Any) -> int:
        """Write one key."""
        return self.reactor.run(storage.commit([Write(key, value, how.pop("expected", None), **how)]))

    def page(self, storage: SQLiteStorage, **how: Any) -> list[tuple[str, bytes, int]]:
        """What is stored."""
        page = self.reactor.run(storage.read_page("/", **how))
        return [(item.key, item.value, item.revision) for item in page.items]

    def rows(self) -> int:
        """How many rows the file has."""
        connection = sqlite3.connect(self.path)
        self.addCleanup(connection.close)
        (count,) = connection.execute("SELECT count(*) FROM log").fetchone()
        return int(count)

    def refused(self, kind: type[Exception], *texts: str) -> None:
        """Opening fails with a single line that has all of C{texts} and the path in it, and leaves nothing locked."""
        with self.assertRaises(kind) as caught:
            self.open()
        message = str(caught.exception)
        for text in (self.path, *texts):
            self.assertIn(text, message)
        self.assertNotIn("\n", message)
        with self.assertRaises(kind):
            self.open()


class PersistenceTests(FileCase):
    """What is in the file, and what comes out of it again."""

    def test_reopen(self) -> None:
        """A store that is opened again is as it was left: values, revisions, and what it remembers of the past."""
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

    def test_revisions_after_compaction(self) -> None:
        """Revisions go on from where they were even when nothing that was written is left."""
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
        """A key's time runs while the store is closed."""
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
        """Nobody else may read the file: there are secrets in it."""
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
        """A program that looks into the file while it is in use can not take the write-ahead log away."""
        storage = self.open()
        self.write(storage, "/r/a", b"1")
        look = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM log').fetchone())"
        said = subprocess.run([sys.executable, "-c", look, self.path], stdout=subprocess.PIPE, check=True).stdout
        self.assertEqual(said.strip(), b"(1,)")
        self.assertTrue(os.path.exists(f"{self.path}-wal"))
        self.write(storage, "/r/b", b"2")
        self.assertEqual([key for key, _, _ in self.page(self.reopen(storage))], ["/r/a", "/r/b"])

    def test_group_commit(self) -> None:
        """What is submitted together is written with few statements, in order, each writer with its own revision."""
        statements: list[str] = []

        def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection = sqlite3.connect(*args, **kwargs)
            connection.set_trace_callback(statements.append)
            return connection

        storage = self.open(connect)
        count = 1000
        # The writer takes what waits when it looks: let all of it wait.
        with held(storage._writer):
            answers = [storage.commit([Write(f"/r/{number:04}", b"%d" % number, 0)]) for number in range(count)]
        self.assertEqual([self.reactor.run(answer) for answer in answers], list(range(2, count + 2)))
        self.assertEqual(len(self.page(storage)), count)
        inserts = [statement for statement in statements if statement.startswith("INSERT INTO log")]
        self.assertLessEqual(len(inserts), 5)

    def test_watch_while_writing(self) -> None:
        """What is written while the past of a watch is being read comes after it."""
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
    """Files that can not be used."""

    def test_locked(self) -> None:
        """A file that is in use is refused; once it is free it is not."""
        storage = self.open()
        with self.assertRaises(StorageUnavailable) as caught:
            self.open()
        self.assertEqual(str(caught.exception), f"{self.path} is in use by another process ({os.getpid()})")
        self.reopen(storage)

    def test_no_directory(self) -> None:
        """Where no file can be made, that is said."""
        self.path = os.path.join(self.path, "missing", "store")
        self.refused(StorageUnavailable, "No such file or directory")

    def test_directory(self) -> None:
        """A directory is no store."""
        os.mkdir(self.path)
        self.refused(StorageUnavailable, "Is a directory")

    def test_garbage(self) -> None:
        """A file that is no database is refused and left alone."""
        for garbage in (b"x", b"hello" * 1000):
            with open(self.path, "wb") as file:
                file.write(garbage)
            self.refused(StorageCorrupt, "no kubetwist store")
            with open(self.path, "rb") as file:
                self.assertEqual(file.read(), garbage)

    def test_foreign(self) -> None:
        """Another program's database is refused and left alone."""
        connection = sqlite3.connect(self.path)
        connection.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, line TEXT)")
        connection.close()
        with open(self.path, "rb") as file:
            before = file.read()
        self.refused(StorageCorrupt, "another program's")
        with open(self.path, "rb") as file:
            self.assertEqual(file.read(), before)

    def test_newer(self) -> None:
        """A store of a later kubetwist is refused."""
        self.close(self.open())
        connection = sqlite3.connect(self.path)
        connection.execute(f"PRAGMA user_version = {FORMAT + 1}")
        connection.close()
        self.refused(StorageCorrupt, f"format {FORMAT + 1}")

    def test_damaged(self) -> None:
        """A store whose pages are overwritten is refused."""
        storage = self.open()
        for number in range(50):
            self.write(storage, f"/r/{number}", b"x" * 1000)
        self.close(storage)
        with open(self.path, "r+b") as file:
            file.seek(8192)
            file.write(b"\xff" * (os.path.getsize(self.path) - 8192))
        self.refused(StorageCorrupt, "is damaged")

    def test_truncated(self) -> None:
        """A store that lost its end is refused."""
        storage = self.open()
        for number in range(50):
            self.write(storage, f"/r/{number}", b"x" * 1000)
        self.close(storage)
        os.truncate(self.path, 16384)
        self.refused(StorageCorrupt, "is damaged")

    def test_emptied(self) -> None:
        """A store that was emptied while its log was not is refused: the log may be all that is left."""
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
        """A store whose creation was cut short is made anew."""
        connection = sqlite3.connect(self.path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
        self.assertGreater(os.path.getsize(self.path), 0)
        storage = self.open()
        self.assertEqual(self.write(storage, "/r/a", b"1"), 2)

    def test_opened_once(self) -> None:
        """A store that was closed stays closed."""
        storage = self.open()
        self.close(storage)
        with self.assertRaises(StorageUnavailable):
            self.reactor.run(storage.open())


class FailingConnection(sqlite3.Connection):
    """
    Fails to write while told to.

    @ivar failing: Everything fails.
    @ivar failures: So many rows, or batches of rows, fail to be written.
    """

    failing = False
    failures = 0

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        """Fail, or do it."""
        writes = sql.startswith(("INSERT", "UPDATE"))
        if writes and FailingConnection.failures and sql.startswith("INSERT"):
            FailingConnection.failures -= 1
            raise sqlite3.OperationalError("disk I/O error")
        if writes and FailingConnection.failing:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *args)


class FailureTests(FileCase):
    """Disks that do not write."""

    def setUp(self) -> None:
        """Open a store whose disk can be made to fail."""
        super().setUp()
        self.connections: list[sqlite3.Connection] = []
        self.addCleanup(setattr, FailingConnection, "failing", False)
        self.addCleanup(setattr, FailingConnection, "failures", 0)
        self.storage = self.open(self.connect)

    def connect(self, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        """Connect, and remember the connection."""
        connection = sqlite3.connect(*args, factory=FailingConnection, check_same_thread=False, **kwargs)
        self.connections.append(connection)
        return connection

    def outcome(self, answer: Deferred[int]) -> Any:
        """The revision, or the kind of the failure."""
        try:
            return self.reactor.run(answer)
        except Exception as error:
            return type(error)

    def test_failed_write(self) -> None:
        """A write that fails, and those that build on it, leave no trace; then writing goes on."""
        kept = self.write(self.storage, "/r/kept", b"1")
        observer = RecordingObserver()
        self.reactor.run(self.storage.watch("/r/", kept, observer))
        FailingConnection.failing = True
        answers = [
            self.storage.commit([Write("/r/new", b"2", 0)]),
            self.storage.commit([Write("/r/new", b"3", kept + 1)]),
            self.storage.commit([Write("/r/kept", None, kept)]),
            self.storage.commit([Write("/r/new", b"4", 0)]),
            self.storage.commit([Write("/r/kept", b"5", kept)]),
        ]
        self.assertEqual([self.outcome(answer) for answer in answers], [StorageUnwritable] * 5)
        FailingConnection.failing = False
        self.assertEqual((self.page(self.storage), observer.events), ([("/r/kept", b"1", kept)], []))
        self.assertEqual(self.storage.revision, kept)
        with self.assertRaises(KeyNotFound):
            self.write(self.storage, "/r/new", None)
        again = self.write(self.storage, "/r/new", b"6", expected=0)
        self.assertGreater(again, kept + 3)
        self.assertEqual(observer.seen(), [("/r/new", b"6", again, 0)])
        storage = self.reopen(self.storage)
        self.assertEqual(self.page(storage), [("/r/kept", b"1", kept), ("/r/new", b"6", again)])

    def test_probe(self) -> None:
        """Whether writes work is asked of the disk when the last one failed, and of nobody when it did not."""
        self.reactor.run(self.storage.probe_writing())
        revision = self.write(self.storage, "/r/a", b"1")
        FailingConnection.failing = True
        self.reactor.run(self.storage.probe_writing())
        with self.assertRaises(StorageUnwritable):
            self.write(self.storage, "/r/a", b"2")
        probes: list[None] = []
        self.patch(self.storage._file, "probe", lambda: probes.append(None) or LogFile.probe(self.storage._file))
        asked = [Deferred.fromCoroutine(self.storage.probe_writing()) for _ in range(5)]
        self.assertEqual([self.outcome(one) for one in asked], [StorageUnwritable] * 5)
        self.assertEqual(len(probes), 1)
        FailingConnection.failing = False
        self.reactor.run(self.storage.probe_writing())
        self.assertEqual(self.page(self.storage), [("/r/a", b"1", revision)])

    def test_too_many_keys(self) -> None:
        """A transaction of more keys than have place in a revision is refused, and writes go on."""
        storage = self.storage
        self.patch(sqlite_module, "PLACES", 2)
        with self.assertRaises(InvalidArgument):
            self.reactor.run(storage.commit([Write(f"/r/{name}", b"", 0) for name in "abc"]))
        self.assertEqual(self.reactor.run(storage.commit([Write(f"/r/{name}", b"", 0) for name in "ab"])), 2)

    def test_closed(self) -> None:
        """A store that was closed is not set forward, nor asked whether it can be written."""
        storage = self.storage
        with self.assertRaises(InvalidArgument):
            self.reactor.run(storage.forward(1))
        storage._unwritable = StorageUnavailable("full")
        self.close(storage)
        for attempt in (storage.forward(9), storage.probe_writing()):
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(attempt)

    def test_told(self) -> None:
        """Clients are told what is wrong, and not where."""
        FailingConnection.failing = True
        with self.assertRaises(StorageUnwritable) as caught:
            self.write(self.storage, "/r/a", b"1")
        self.assertEqual(caught.exception.told, "storage can not be written at present: disk I/O error")

    def test_failure_is_clear(self) -> None:
        """The error names the file and what is wrong with it."""
        FailingConnection.failing = True
        with self.assertRaises(StorageUnwritable) as caught:
            self.write(self.storage, "/r/a", b"1")
        self.assertIn(self.path, str(caught.exception))
        self.assertIn("disk I/O error", str(caught.exception))

    def test_submitted_meanwhile(self) -> None:
        """What is submitted between a failure and its report fails with it."""
        FailingConnection.failing = True
        first = self.storage.commit([Write("/r/a", b"1", 0)])
        report = self.reactor._calls.get(timeout=60)
        FailingConnection.failing = False
        second = self.storage.commit([Write("/r/a", b"2", 2)])
        self.reactor.callFromThread(report[0], *report[1], **report[2])
        self.assertEqual([self.outcome(first), self.outcome(second)], [StorageUnwritable] * 2)
        self.assertEqual(self.write(self.storage, "/r/a", b"3", expected=0), 4)
        self.assertEqual(self.page(self.reopen(self.storage)), [("/r/a", b"3", 4)])
        self.assertEqual(self.rows(), 1)

    def test_revisions_are_not_used_again(self) -> None:
        """The revision of a write that failed goes to no other one, after a restart neither."""
        FailingConnection.failures = 1
        self.assertEqual(self.outcome(self.storage.commit([Write("/r/a", b"1", 0)])), StorageUnwritable)
        storage = self.reopen(self.storage)
        self.assertEqual(self.write(storage, "/r/a", b"2", expected=0), 3)

    def test_more_than_a_batch(self) -> None:
        """What waits behind a batch that fails is not written either, even where the disk works again by then."""
        FailingConnection.failures = 1
        with held(self.storage._writer):
            answers = [self.storage.commit([Write(f"/r/{number}", b"", 0)]) for number in range(1000)]
        self.assertEqual({self.outcome(answer) for answer in answers}, {StorageUnwritable})
        self.assertEqual(self.write(self.storage, "/r/0", b"", expected=0), 1002)
        self.close(self.storage)
        self.assertEqual(self.rows(), 1)

    def test_read_beside_failure(self) -> None:
        """A read that begins while a write is about to fail, and the reads after it, see nothing of that write."""
        self.write(self.storage, "/r/a", b"1")
        FailingConnection.failures = 1
        answer = self.storage.commit([Write("/r/b", b"1", 0)])
        beside = Deferred.fromCoroutine(self.storage.read_page("/"))
        self.assertEqual(self.outcome(answer), StorageUnwritable)
        self.assertEqual(len(self.reactor.run(beside).items), 1)
        self.assertEqual(self.page(self.storage), [("/r/a", b"1", 2)])

    def test_disk_full(self) -> None:
        """When the disk is full writes are refused and reads are not; when there is room again writing goes on."""
        writing = self.connections[0]
        (pages,) = writing.execute("PRAGMA page_count").fetchone()
        writing.execute(f"PRAGMA max_page_count = {pages + 40}")
        written = 0
        with self.assertRaises(StorageUnwritable) as caught:
            for number in range(200):
                self.write(self.storage, f"/r/{number:03}", b"x" * 2000, expected=0)
                written += 1
        self.assertIn("full", str(caught.exception))
        self.assertEqual(len(self.page(self.storage)), written)
        with self.assertRaises(StorageUnwritable):
            self.write(self.storage, "/r/more", b"x" * 9000)
        writing.execute("PRAGMA max_page_count = 1000000")
        self.write(self.storage, "/r/more", b"x" * 9000)
        self.assertEqual(len(self.page(self.storage)), written + 1)

    def test_compaction_fails(self) -> None:
        """A compaction that can not be recorded forgets nothing."""
        revision = self.write(self.storage, "/r/a", b"1")
        self.write(self.storage, "/r/a", b"2")
        FailingConnection.failing = True
        with self.assertRaises(StorageUnwritable):
            self.reactor.run(self.storage.compact(revision + 1))
        FailingConnection.failing = False
        self.assertEqual(self.storage.compacted, 0)
        self.assertEqual(self.page(self.storage, revision=revision), [("/r/a", b"1", revision)])

    def test_expiry_is_tried_again(self) -> None:
        """A key that is due while the disk fails is deleted when the disk works again."""
        self.write(self.storage, "/r/a", b"1", ttl=10)
        FailingConnection.failing = True
        self.reactor.advance(10)
        self.reactor.turn()
        FailingConnection.failing = False
        self.assertEqual(len(self.page(self.storage)), 1)
        self.reactor.advance(10)
        self.write(self.storage, "/after/a", b"")
        self.assertEqual([key for key, _, _ in self.page(self.storage)], ["/after/a"])


class CompactionTests(FileCase):
    """What compaction removes, and how."""

    def setUp(self) -> None:
        """Open a store with a past, and make slices small."""
        super().setUp()
        self.patch(sqlite_module, "SLICE_ROWS", 10)
        self.storage = self.open()
        for number in range(100):
            self.write(self.storage, f"/r/{number % 10}", b"%d" % number)
        self.write(self.storage, "/r/0", None)
        self.now = self.page(self.storage)

    def test_removed(self) -> None:
        """Only what can still be read is left in the file."""
        self.reactor.run(self.storage.compact(self.storage.revision))
        self.assertEqual((self.rows(), self.page(self.storage)), (9, self.now))

    def test_partly(self) -> None:
        """What was superseded later than the compacted revision is kept."""
        compacted = self.storage.revision - 30
        past = {revision: self.page(self.storage, revision=revision) for revision in range(compacted, compacted + 31)}
        self.reactor.run(self.storage.compact(compacted))
        self.assertEqual(self.rows(), 10 + 30)
        for revision, then in past.items():
            self.assertEqual(self.page(self.storage, revision=revision), then)

    def test_slices(self) -> None:
        """Writes get through between the slices of a compaction."""
        compaction = Deferred.fromCoroutine(self.storage.compact(self.storage.revision))
        self.reactor.run(self.storage.commit([Write("/s/a", b"", 0)]))
        self.assertNoResult(compaction)
        self.reactor.run(self.storage.commit([Write("/s/b", b"", 0)]))
        self.assertNoResult(compaction)
        self.reactor.run(compaction)
        self.assertEqual(self.rows(), 9 + 2)

    def test_interrupted(self) -> None:
        """A compaction that was cut short is completed by the next one, after a restart too."""
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
        """A read of the newest state that compaction overtakes reads what is newest by then."""
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
