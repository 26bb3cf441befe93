"""Tests of L{journalstore.backend}: the suite of kubetwist, and what is particular to a journal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import SynchronousTestCase, TestCase

from journalstore import journalfile
from journalstore.backend import JournalStorage
from journalstore.test.writer import value_of
from kubetwist.api.storage import Write
from kubetwist.storage.errors import OutcomeUnknown, StorageCorrupt, StorageUnavailable, StorageUnwritable
from kubetwist.testing import InProcessServer
from kubetwist.testing.storage import RecordingObserver, StorageReactor, storage_tests


class SuiteTests(storage_tests(lambda test, reactor: JournalStorage(Path(test.mktemp()), reactor))):
    """The backend passes the tests of all backends."""


class JournalTestCase(SynchronousTestCase):
    """Tests of a journal that is opened several times."""

    def setUp(self) -> None:
        """Choose a path."""
        self.reactor = StorageReactor()
        self.path = Path(self.mktemp()).absolute()

    def open(self) -> JournalStorage:
        """Return the store, open until L{close} or the end of the test."""
        storage = JournalStorage(self.path, self.reactor)
        self.addCleanup(self.close, storage)
        self.reactor.run(storage.open())
        return storage

    def close(self, storage: JournalStorage) -> None:
        """Close a store."""
        self.reactor.run(storage.close())

    def commit(self, storage: JournalStorage, *writes: Write) -> int:
        """Write."""
        return self.reactor.run(storage.commit(writes))

    def contents(self, storage: JournalStorage) -> list[tuple[str, bytes, int]]:
        """Return all keys with their values and revisions."""
        page = self.reactor.run(storage.read_page("/"))
        return [(item.key, item.value, item.revision) for item in page.items]


class ReopenedTests(JournalTestCase):
    """Journals that are opened again."""

    def test_reopened(self) -> None:
        """Values, past changes and the revision remain."""
        storage = self.open()
        self.commit(storage, Write("/r/a", b"1", 0), Write("/r/b", b"", 0))
        self.commit(storage, Write("/r/a", b"2", 2))
        self.commit(storage, Write("/r/b", None, 2))
        self.close(storage)
        storage = self.open()
        self.assertEqual((self.contents(storage), storage.revision), ([("/r/a", b"2", 3)], 4))
        observer = RecordingObserver()
        self.reactor.run(storage.watch("/r/", 2, observer))
        self.assertEqual(observer.seen(), [("/r/a", b"2", 3, 2), ("/r/b", None, 4, 2)])
        self.assertEqual(self.commit(storage, Write("/r/b", b"", 0)), 5)

    def test_expiry(self) -> None:
        """A key expires at its time, also if the store is opened again."""
        storage = self.open()
        self.commit(storage, Write("/r/a", b"", 0, ttl=60), Write("/r/b", b"", 0, ttl=60), Write("/r/c", b"", 0))
        self.commit(storage, Write("/r/b", b"", None))
        self.close(storage)
        self.reactor.advance(50)
        storage = self.open()
        self.assertEqual(len(self.contents(storage)), 3)
        self.reactor.advance(11)
        while storage.revision < 4:
            self.reactor.turn()
        self.assertEqual([key for key, _, _ in self.contents(storage)], ["/r/b", "/r/c"])

    def test_used(self) -> None:
        """A journal that is in use cannot be opened, nor can a store be opened twice."""
        storage = self.open()
        for other in (JournalStorage(self.path, self.reactor), storage):
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(other.open())
        self.commit(storage, Write("/r/a", b"", 0))

    def test_private(self) -> None:
        """Only the owner can read the file, which contains secrets."""
        self.open()
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)


class DamagedTests(JournalTestCase):
    """Journals that are incomplete or damaged."""

    def written(self) -> list[int]:
        """Write three values, and return the size of the file before each of them and at the end."""
        storage = self.open()
        sizes = [self.path.stat().st_size]
        for number in range(3):
            self.commit(storage, Write("/r/a", b"%d" % number, None))
            sizes.append(self.path.stat().st_size)
        self.close(storage)
        return sizes

    def test_incomplete(self) -> None:
        """An incomplete write at the end is removed, however long it is; earlier writes remain."""
        sizes = self.written()
        complete = self.path.read_bytes()
        for size in range(sizes[2], sizes[3]):
            self.path.write_bytes(complete[:size])
            storage = self.open()
            self.assertEqual(self.contents(storage), [("/r/a", b"1", 3)])
            self.assertEqual(self.path.stat().st_size, sizes[2])
            self.assertEqual(self.commit(storage, Write("/r/a", b"again", 3)), 4)
            self.close(storage)
        self.assertEqual(self.contents(self.open()), [("/r/a", b"again", 4)])

    def test_zeros(self) -> None:
        """A write at the end of which only the length was stored is removed."""
        sizes = self.written()
        self.path.write_bytes(self.path.read_bytes()[: sizes[2]] + bytes(sizes[3] - sizes[2]))
        self.assertEqual(self.contents(self.open()), [("/r/a", b"1", 3)])

    def test_damaged(self) -> None:
        """A changed byte before the last write is damage: the store is not opened."""
        sizes = self.written()
        complete = self.path.read_bytes()
        for offset in range(sizes[2]):
            damaged = bytearray(complete)
            damaged[offset] ^= 1
            self.path.write_bytes(damaged)
            with self.assertRaises(StorageCorrupt):
                self.open()


class FailingDiskTests(JournalTestCase):
    """Disks that cannot be written."""

    def fail_fsync(self, results: Sequence[OSError | None]) -> None:
        """Let the next calls of C{fsync} fail, except for those whose result is L{None}."""
        calls = iter(results)
        synchronize = os.fsync

        def fsync(descriptor: int) -> None:
            error = next(calls, None)
            if error is not None:
                raise error
            synchronize(descriptor)

        self.patch(os, "fsync", fsync)

    def test_full(self) -> None:
        """A write that fails is not stored, and later writes succeed when there is space again."""
        storage = self.open()
        self.commit(storage, Write("/r/a", b"1", 0))
        self.fail_fsync([OSError(28, "No space left on device")])
        answers = [storage.commit([Write("/r/a", value, None)]) for value in (b"2", b"3")]
        for answer in answers:
            with self.assertRaises(StorageUnwritable):
                self.reactor.run(answer)
        self.commit(storage, Write("/r/b", b"1", 0))
        expected = [("/r/a", b"1", 2), ("/r/b", b"1", 5)]
        self.assertEqual(self.contents(storage), expected)
        self.close(storage)
        self.assertEqual(self.contents(self.open()), expected)

    def test_unknown(self) -> None:
        """If a failed write cannot be removed its outcome is unknown, and nothing is written after it."""
        storage = self.open()
        self.commit(storage, Write("/r/a", b"1", 0))
        self.fail_fsync([OSError(5, "Input/output error")] * 2)
        with self.assertRaises(OutcomeUnknown):
            self.commit(storage, Write("/r/a", b"2", None))
        with self.assertRaises(StorageUnavailable):
            self.commit(storage, Write("/r/a", b"3", None))
        self.assertEqual(self.contents(storage), [("/r/a", b"1", 2)])
        self.close(storage)
        self.assertIn(self.contents(self.open()), ([("/r/a", b"1", 2)], [("/r/a", b"2", 3)]))

    def overwritten(self) -> JournalStorage:
        """Return a store whose compaction makes it smaller."""
        self.patch(journalfile, "MIN_COMPACTED_SIZE", 0)
        storage = self.open()
        for _ in range(10):
            self.commit(storage, Write("/r/a", b"1" * 100, None))
        return storage

    def test_compaction(self) -> None:
        """A compaction that cannot write its file changes nothing."""
        storage = self.overwritten()
        size = self.path.stat().st_size
        self.fail_fsync([OSError(28, "No space left on device")])
        with self.assertRaises(StorageUnwritable):
            self.reactor.run(storage.compact(storage.revision))
        self.assertEqual(self.path.stat().st_size, size)
        self.commit(storage, Write("/r/a", b"2", None))
        self.close(storage)
        self.assertEqual(self.contents(self.open()), [("/r/a", b"2", 12)])

    def test_directory(self) -> None:
        """If the name of a compacted file may not be stored, nothing is written that a power failure could remove."""
        storage = self.overwritten()
        size = self.path.stat().st_size
        self.fail_fsync([None, OSError(5, "Input/output error")])
        with self.assertRaises(StorageUnwritable):
            self.reactor.run(storage.compact(storage.revision))
        self.assertLess(self.path.stat().st_size, size)
        with self.assertRaises(StorageUnwritable):
            self.commit(storage, Write("/r/a", b"2", None))
        self.close(storage)
        storage = self.open()
        self.commit(storage, Write("/r/b", b"", 0))
        self.assertEqual(self.contents(storage), [("/r/a", b"1" * 100, 11), ("/r/b", b"", 12)])

    def test_damaged_later(self) -> None:
        """A compaction of a file that was damaged after it was opened fails, and leaves the file as it is."""
        storage = self.overwritten()
        complete = self.path.read_bytes()
        for offset in (len(complete) - 1, len(complete) // 2):
            damaged = bytearray(complete)
            damaged[offset] ^= 1
            self.path.write_bytes(damaged)
            with self.assertRaises(StorageCorrupt):
                self.reactor.run(storage.compact(storage.revision))
            self.assertEqual(self.path.read_bytes(), damaged)
            self.path.write_bytes(complete)
            self.commit(storage, Write("/r/a", b"1" * 100, None))
            complete = self.path.read_bytes()


class CompactionTests(JournalTestCase):
    """Compactions of the file."""

    def setUp(self) -> None:
        """Compact small files, in steps of one frame."""
        super().setUp()
        self.patch(journalfile, "MIN_COMPACTED_SIZE", 0)
        self.patch(journalfile, "SLICE_SIZE", 1)

    def test_smaller(self) -> None:
        """Superseded values are removed from the file; the state and later changes remain."""
        storage = self.open()
        for number in range(20):
            self.commit(storage, Write("/r/a", b"%d" % number * 100, None))
        self.commit(storage, Write("/r/b", b"", 0))
        compacted = self.commit(storage, Write("/r/b", None, None))
        self.commit(storage, Write("/r/a", b"later", None))
        size = self.path.stat().st_size
        self.reactor.run(storage.compact(compacted))
        self.assertLess(self.path.stat().st_size, size / 5)
        for _ in range(2):
            self.assertEqual(self.contents(storage), [("/r/a", b"later", compacted + 1)])
            self.assertEqual((storage.compacted, storage.revision), (compacted, compacted + 1))
            page = self.reactor.run(storage.read_page("/r/", revision=compacted))
            self.assertEqual([(item.key, item.value) for item in page.items], [("/r/a", b"19" * 100)])
            self.close(storage)
            storage = self.open()

    def test_revision(self) -> None:
        """The revision of a deletion that is compacted is not used again."""
        storage = self.open()
        self.commit(storage, Write("/r/a", b"", 0))
        deleted = self.commit(storage, Write("/r/a", None, None))
        self.reactor.run(storage.compact(deleted))
        self.close(storage)
        self.assertEqual(self.commit(self.open(), Write("/r/a", b"", 0)), deleted + 1)

    def test_beside_writes(self) -> None:
        """Writes during a compaction are in the new file."""
        storage = self.open()
        for number in range(20):
            self.commit(storage, Write(f"/r/{number % 3}", b"%d" % number * 100, None))
        compaction = storage.compact(storage.revision)
        answers = []
        written = iter(range(10))

        def write(events: Sequence[Any]) -> None:
            for number in written:
                answers.append(storage.commit([Write("/r/new", b"%d" % number, None)]))
                return

        self.reactor.run(storage.watch("/r/", storage.revision, RecordingObserver(write)))
        answers.append(storage.commit([Write("/r/new", b"first", None)]))
        self.reactor.run(compaction)
        for answer in answers:
            self.reactor.run(answer)
        self.assertEqual(len(answers), 11)
        before = self.contents(storage)
        self.close(storage)
        self.assertEqual(self.contents(self.open()), before)

    def test_closed(self) -> None:
        """A store can be closed during a compaction; the file is not damaged."""
        storage = self.open()
        for _ in range(20):
            self.commit(storage, Write("/r/a", b"x" * 100, None))
        compaction = Deferred.fromCoroutine(storage.compact(storage.revision))
        self.close(storage)
        self.reactor.run(compaction)
        self.assertEqual(self.contents(self.open()), [("/r/a", b"x" * 100, 21)])


class KillTests(JournalTestCase):
    """kill -9 in the middle of writes."""

    def test_killed(self) -> None:
        """Acknowledged writes are stored and complete, and revisions continue."""
        acknowledged: dict[str, int] = {}
        newest = 1
        for writes in (300, 1100, 2000):
            command = [sys.executable, "-m", "journalstore.test.writer", str(self.path)]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
            assert process.stdout is not None
            with process, process.stdout as lines:
                self.assertGreaterEqual(int(lines.readline().split()[1]), newest)
                for number, line in enumerate(lines):
                    key, text = line.split()
                    acknowledged[key] = newest = int(text)
                    if number == writes:
                        process.kill()
            self.assertEqual(process.returncode, -9)
            storage = self.open()
            self.assertGreaterEqual(storage.revision, newest)
            stored = {key: (value, revision) for key, value, revision in self.contents(storage)}
            for key, revision in acknowledged.items():
                value, found = stored[key]
                self.assertGreaterEqual(found, revision)
                self.assertEqual(value, value_of(key, int(value.split()[1])))
            self.close(storage)


class ServerTests(TestCase):
    """A server that stores its objects in a journal."""

    async def test_restart(self) -> None:
        """Objects are served after a restart, with the same resourceVersion."""
        folder = Path(self.mktemp()).absolute()
        path = "/api/v1/namespaces/default/configmaps"
        made: Any = None
        for start in range(2):
            server = InProcessServer("--storage-backend=journal", data_dir=folder)
            async with server:
                if start == 0:
                    body = {"metadata": {"name": "mine"}, "data": {"k": "v"}}
                    code, made = await deferToThread(server.request, "POST", path, body)
                    self.assertEqual(code, 201, made)
                _, found = await deferToThread(server.request, "GET", f"{path}/mine")
                self.assertEqual(found, made)
        self.assertTrue((folder / "store.journal").stat().st_size)
