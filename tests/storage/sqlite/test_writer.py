"""Tests for L{kubetwist.storage.sqlite._writer}: group commits and failing writes."""

from __future__ import annotations

import sqlite3
from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.api.storage import Write
from kubetwist.storage.errors import (
    InvalidArgument,
    KeyNotFound,
    StorageUnavailable,
    StorageUnwritable,
)
from kubetwist.storage.sqlite import _storage as sqlite_module
from kubetwist.storage.sqlite.logfile import LogFile
from kubetwist.testing.storage import RecordingObserver
from tests.storage.sqlite.test_storage import FileCase, held


class SharedSyncTests(FileCase):
    """Group commits."""

    def test_group_commit(self) -> None:
        """Transactions that are submitted together are written in order with few statements and separate revisions."""
        statements: list[str] = []

        def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection = sqlite3.connect(*args, **kwargs)
            connection.set_trace_callback(statements.append)
            return connection

        storage = self.open(connect)
        count = 1000
        # The writer takes all waiting transactions at once: block it until all are submitted.
        with held(storage._writer):
            answers = [storage.commit([Write(f"/r/{number:04}", b"%d" % number, 0)]) for number in range(count)]
        self.assertEqual([self.reactor.run(response) for response in answers], list(range(2, count + 2)))
        self.assertEqual(len(self.page(storage)), count)
        inserts = [statement for statement in statements if statement.startswith("INSERT INTO log")]
        self.assertLessEqual(len(inserts), 5)


class FailingConnection(sqlite3.Connection):
    """
    A connection whose writes fail while C{failing} is set.

    @ivar failing: Whether all statements fail.
    @ivar failures: The number of next inserts that fail.
    """

    failing = False
    failures = 0

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        """Execute the statement, or fail."""
        writes = sql.startswith(("INSERT", "UPDATE"))
        if writes and FailingConnection.failures and sql.startswith("INSERT"):
            FailingConnection.failures -= 1
            raise sqlite3.OperationalError("disk I/O error")
        if writes and FailingConnection.failing:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(sql, *args)


class FailureTests(FileCase):
    """Disks that cannot be written."""

    def setUp(self) -> None:
        """Open a store whose disk can be made to fail."""
        super().setUp()
        self.connections: list[sqlite3.Connection] = []
        self.addCleanup(setattr, FailingConnection, "failing", False)
        self.addCleanup(setattr, FailingConnection, "failures", 0)
        self.storage = self.open(self.connect)

    def connect(self, *args: Any, **kwargs: Any) -> sqlite3.Connection:
        """Connect, and record the connection."""
        connection = sqlite3.connect(*args, factory=FailingConnection, check_same_thread=False, **kwargs)
        self.connections.append(connection)
        return connection

    def outcome(self, response: Deferred[int]) -> Any:
        """Return the revision, or the kind of the failure."""
        try:
            return self.reactor.run(response)
        except Exception as error:
            return type(error)

    def test_failed_write(self) -> None:
        """A failed write, and writes that depend on it, leave no trace; later writes succeed."""
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
        self.assertEqual([self.outcome(response) for response in answers], [StorageUnwritable] * 5)
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
        """probe_writing() writes to the disk only if the last write failed."""
        self.reactor.run(self.storage.probe_writing())
        revision = self.write(self.storage, "/r/a", b"1")
        FailingConnection.failing = True
        self.reactor.run(self.storage.probe_writing())
        with self.assertRaises(StorageUnwritable):
            self.write(self.storage, "/r/a", b"2")
        probes: list[None] = []
        self.patch(self.storage._file, "probe", lambda: probes.append(None) or LogFile.probe(self.storage._file))
        request = [Deferred.fromCoroutine(self.storage.probe_writing()) for _ in range(5)]
        self.assertEqual([self.outcome(one) for one in request], [StorageUnwritable] * 5)
        self.assertEqual(len(probes), 1)
        FailingConnection.failing = False
        self.reactor.run(self.storage.probe_writing())
        self.assertEqual(self.page(self.storage), [("/r/a", b"1", revision)])

    def test_too_many_keys(self) -> None:
        """A transaction with too many keys for one revision is rejected, and later writes succeed."""
        storage = self.storage
        self.patch(sqlite_module, "PLACES", 2)
        with self.assertRaises(InvalidArgument):
            self.reactor.run(storage.commit([Write(f"/r/{name}", b"", 0) for name in "abc"]))
        self.assertEqual(self.reactor.run(storage.commit([Write(f"/r/{name}", b"", 0) for name in "ab"])), 2)

    def test_closed(self) -> None:
        """A closed store can neither bump its revision nor be probed."""
        storage = self.storage
        with self.assertRaises(InvalidArgument):
            self.reactor.run(storage.bump_revision(1))
        storage._unwritable = StorageUnavailable("full")
        self.close(storage)
        for attempt in (storage.bump_revision(9), storage.probe_writing()):
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(attempt)

    def test_client_message(self) -> None:
        """The message for clients does not name the file."""
        FailingConnection.failing = True
        with self.assertRaises(StorageUnwritable) as caught:
            self.write(self.storage, "/r/a", b"1")
        self.assertEqual(caught.exception.client_message, "storage cannot be written at present: disk I/O error")

    def test_failure_is_clear(self) -> None:
        """The error names the file and the reason."""
        FailingConnection.failing = True
        with self.assertRaises(StorageUnwritable) as caught:
            self.write(self.storage, "/r/a", b"1")
        self.assertIn(self.path, str(caught.exception))
        self.assertIn("disk I/O error", str(caught.exception))

    def test_submitted_before_report(self) -> None:
        """Writes that are submitted between a failure and its report fail with it."""
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
        """The revision of a failed write is not assigned again, also after a restart."""
        FailingConnection.failures = 1
        self.assertEqual(self.outcome(self.storage.commit([Write("/r/a", b"1", 0)])), StorageUnwritable)
        storage = self.reopen(self.storage)
        self.assertEqual(self.write(storage, "/r/a", b"2", expected=0), 3)

    def test_more_than_a_batch(self) -> None:
        """Writes that wait behind a failed batch are not written, even if the disk works again."""
        FailingConnection.failures = 1
        with held(self.storage._writer):
            answers = [self.storage.commit([Write(f"/r/{number}", b"", 0)]) for number in range(1000)]
        self.assertEqual({self.outcome(response) for response in answers}, {StorageUnwritable})
        self.assertEqual(self.write(self.storage, "/r/0", b"", expected=0), 1002)
        self.close(self.storage)
        self.assertEqual(self.rows(), 1)

    def test_read_beside_failure(self) -> None:
        """A read that begins while a write is about to fail, and later reads, do not return that write."""
        self.write(self.storage, "/r/a", b"1")
        FailingConnection.failures = 1
        response = self.storage.commit([Write("/r/b", b"1", 0)])
        beside = Deferred.fromCoroutine(self.storage.read_page("/"))
        self.assertEqual(self.outcome(response), StorageUnwritable)
        self.assertEqual(len(self.reactor.run(beside).items), 1)
        self.assertEqual(self.page(self.storage), [("/r/a", b"1", 2)])

    def test_disk_full(self) -> None:
        """On a full disk writes fail and reads succeed; writes succeed again when there is space."""
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
        """A compaction that cannot be recorded deletes nothing."""
        revision = self.write(self.storage, "/r/a", b"1")
        self.write(self.storage, "/r/a", b"2")
        FailingConnection.failing = True
        with self.assertRaises(StorageUnwritable):
            self.reactor.run(self.storage.compact(revision + 1))
        FailingConnection.failing = False
        self.assertEqual(self.storage.compacted, 0)
        self.assertEqual(self.page(self.storage, revision=revision), [("/r/a", b"1", revision)])

    def test_expiry_is_tried_again(self) -> None:
        """A key that expires while the disk fails is deleted when the disk works again."""
        self.write(self.storage, "/r/a", b"1", ttl=10)
        FailingConnection.failing = True
        self.reactor.advance(10)
        self.reactor.turn()
        FailingConnection.failing = False
        self.assertEqual(len(self.page(self.storage)), 1)
        self.reactor.advance(10)
        self.write(self.storage, "/after/a", b"")
        self.assertEqual([key for key, _, _ in self.page(self.storage)], ["/after/a"])
