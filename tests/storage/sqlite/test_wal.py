"""Tests for L{kubetwist.storage.sqlite._wal}."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from random import Random

from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.errors import RevisionCompacted, StorageCorrupt
from kubetwist.storage.sqlite._highwater import HighWaterMark
from kubetwist.storage.sqlite._storage import (
    IDLE,
    SQLiteStorage,
)
from kubetwist.storage.sqlite._wal import (
    HEADER,
    find_damage,
)
from kubetwist.storage.sqlite.backup import copy_store
from kubetwist.storage.sqlite.logfile import LOST_WRITES_REVISION_GAP
from tests.storage.sqlite.crashes import LENGTH, CrashedCase
from tests.storage.sqlite.test_storage import FileCase


class LogTests(SynchronousTestCase):
    """Tests for L{kubetwist.storage.sqlite._wal}."""

    def test_leftover(self) -> None:
        """Frames of a failed transaction, after one that replaced it, are not damage."""
        path = os.path.abspath(self.mktemp())
        connection = sqlite3.connect(path, isolation_level=None)
        self.addCleanup(connection.close)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (v BLOB)")
        base = os.path.getsize(f"{path}-wal")
        connection.execute("INSERT INTO t VALUES (zeroblob(200000))")
        failed = Path(f"{path}-wal").read_bytes()
        crashed = os.path.abspath(self.mktemp())
        shutil.copyfile(path, crashed)
        Path(f"{crashed}-wal").write_bytes(failed[:base])
        other = sqlite3.connect(crashed, isolation_level=None)
        self.addCleanup(other.close)
        other.execute("INSERT INTO t VALUES (1)")
        log = Path(f"{crashed}-wal").read_bytes()
        self.assertLess(len(log), len(failed))
        Path(f"{crashed}-wal").write_bytes(log + failed[len(log) :])
        self.assertIsNone(find_damage(f"{crashed}-wal"))

    def test_no_log(self) -> None:
        """A missing log is not damage."""
        self.assertIsNone(find_damage(os.path.abspath(self.mktemp())))


class IdleTests(FileCase):
    """Checkpoints of an idle store."""

    def setUp(self) -> None:
        """Open a store with frames in its log."""
        super().setUp()
        self.storage = self.open()
        self.write(self.storage, "/r/a", b"1")

    def size(self) -> int:
        """Return the size of the log, after the threads have finished their work."""
        self.reactor.run(self.storage._checkpoints.copy())
        self.reactor.run(self.storage._writer.run(lambda: None))
        return os.path.getsize(f"{self.path}-wal")

    def test_idle(self) -> None:
        """A store without writes for a while empties its write-ahead log."""
        self.reactor.advance(IDLE)
        self.assertEqual(self.size(), 0)
        self.reactor.run(self.storage.commit([Write("/r/b", b"2", 0)]))
        self.assertGreater(self.size(), 0)
        self.reactor.advance(IDLE)
        self.assertEqual(self.size(), 0)
        self.assertEqual([key for key, _, _ in self.page(self.storage)], ["/r/a", "/r/b"])

    def test_busy(self) -> None:
        """A store with frequent writes is not checkpointed in between."""
        for number in range(3):
            self.write(self.storage, "/r/a", b"%d" % number)
            self.reactor.advance(IDLE)
            self.assertGreater(self.size(), 0)
        self.reactor.advance(IDLE)
        self.assertEqual(self.size(), 0)

    def test_reader(self) -> None:
        """A backup that reads the log keeps it, and writers do not wait; it is emptied later."""
        reading = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(reading.close)
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM log").fetchone()
        self.write(self.storage, "/r/b", b"2")
        self.reactor.advance(IDLE)
        self.reactor.advance(IDLE)
        self.assertGreater(self.size(), 0)
        reading.execute("COMMIT")
        self.reactor.advance(IDLE)
        self.assertEqual(self.size(), 0)

    def test_closed(self) -> None:
        """A closed store leaves no scheduled call."""
        self.close(self.storage)
        self.assertEqual(self.reactor.getDelayedCalls(), [])


class DamagedLogTests(CrashedCase):
    """Damage to the write-ahead log."""

    def test_kill(self) -> None:
        """A server that was killed has every acknowledged write at its next start."""
        self.put()
        self.assertEqual(self.attempt(), self.now)
        self.assertEqual(self.attempt(), self.now)

    def test_damage_anywhere(self) -> None:
        """If any bytes of the log change, the store has every acknowledged write or does not start."""
        log = self.files["-wal"]
        dice = Random(21)
        places = {0, 4, 8, 12, 16, 24, len(log) - 16, *(dice.randrange(len(log) - 16) for _ in range(80))}
        places |= {HEADER.size + frame * LENGTH + dice.choice((0, 4, 8, 16)) for frame in range(self.frames)}
        refused = 0
        for at in sorted(places):
            self.put(wal=self.changed("-wal", at))
            result = self.attempt()
            self.assertIn(result, (None, self.now), f"changed at {at}")
            refused += result is None
        self.assertGreater(refused, len(places) * 0.9)

    def test_cut_anywhere(self) -> None:
        """A log that was truncated, emptied, zeroed or removed has lost writes, and the store does not start."""
        log = self.files["-wal"]
        for kept in (0, 1, HEADER.size, HEADER.size + LENGTH, len(log) // 2, len(log) - 1):
            for rest in (b"", bytes(len(log) - kept)):
                self.put(wal=log[:kept] + rest)
                self.assertIsNone(self.attempt(), f"cut at {kept}")
        self.put(wal=None)
        self.refused(StorageCorrupt, f"its newest revision is 0, and its high-water mark in {self.path}-mark")

    def test_refusal_changes_nothing(self) -> None:
        """The files of a refused store are unchanged, so that they can be repaired."""
        for mark in (self.files["-mark"], None):
            log = self.changed("-wal", HEADER.size + LENGTH * (self.frames // 2) + 200)
            self.put(wal=log, mark=mark)
            self.refused(StorageCorrupt, "has lost acknowledged writes", "twist kubeapi-restore", "--allow-lost-writes")
            self.assertEqual(Path(f"{self.path}-wal").read_bytes(), log)
            self.assertEqual(Path(self.path).read_bytes(), self.files[""])

    def test_power_cut(self) -> None:
        """A store whose last transaction is incomplete after a power cut starts, since it was not acknowledged."""
        for frames_kept in (1, 0):
            for place in (0, 16, 24, 1000, LENGTH - 16):
                at = HEADER.size + (self.frames - 1) * LENGTH + place
                log = self.changed("-wal", at)[: at + 16 + frames_kept * LENGTH]
                self.put(wal=log, mark=self.older_mark)
                self.assertEqual(self.attempt(), self.now_without_last())

    def now_without_last(self) -> list[tuple[str, bytes, int]]:
        """Return the content before the last write."""
        return [one for one in self.now if one[0] != "/r/last"]

    def test_stale_mark(self) -> None:
        """Damage that is followed by transactions is found without the mark, too."""
        for frame in range(self.frames - 3):
            log = self.changed("-wal", HEADER.size + frame * LENGTH + 600)
            self.put(wal=log, mark=None)
            self.assertIsNone(self.attempt(), f"frame {frame}")

    def test_damaged_mark(self) -> None:
        """An unreadable mark does not prevent an intact store from starting, and is written again."""
        for content in (b"", b"\0" * 30, self.changed("-mark", 18, 1)):
            self.put(mark=content)
            self.assertEqual(self.attempt(), self.now)
            self.assertEqual(HighWaterMark(f"{self.path}-mark").read(), self.newest)

    def test_accepted(self) -> None:
        """With --allow-lost-writes the remaining data is served, at revisions that were never assigned before."""
        self.put(wal=self.changed("-wal", HEADER.size + LENGTH * (self.frames // 2) + 200))
        storage = SQLiteStorage(self.path, self.reactor, allow_lost_writes=True)
        self.addCleanup(self.close, storage)
        with capturedLogs() as logged:
            self.reactor.run(storage.open())
        self.assertGreaterEqual(storage.revision, self.newest + LOST_WRITES_REVISION_GAP)
        remaining = self.page(storage)
        self.assertEqual(remaining, self.now[: len(remaining)])
        self.assertTrue(remaining)
        with self.assertRaises(RevisionCompacted):
            self.page(storage, revision=self.newest - 5)
        self.write(storage, "/r/after", b"")
        self.assertEqual(os.path.getsize(f"{self.path}-wal") % LENGTH, HEADER.size)
        again = self.page(self.reopen(storage))
        self.assertEqual(len(again), len(remaining) + 1)
        self.assertEqual([one["log_level"] for one in logged if "loss" in one], [LogLevel.error])

    def test_backup(self) -> None:
        """A store that has lost writes cannot be backed up."""
        self.put(wal=self.changed("-wal", HEADER.size + LENGTH * (self.frames // 2) + 200))
        target = os.path.abspath(self.mktemp())
        with self.assertRaisesRegex(StorageCorrupt, "has lost acknowledged writes"):
            copy_store(self.path, target, lambda done, total: None)
        self.assertFalse(os.path.exists(target))
