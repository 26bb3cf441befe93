"""
A store that has lost acknowledged writes does not start.

Tests for L{kubetwist.storage.sqlite.wal} and L{kubetwist.storage.sqlite.highwater}, through L{SQLiteStorage}.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from pathlib import Path
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

import kubetwist
from kubetwist.api.storage import Write
from kubetwist.storage.errors import RevisionCompacted, StorageCorrupt
from kubetwist.storage.sqlite.backup import copy_store
from kubetwist.storage.sqlite.checksums import MISMATCH
from kubetwist.storage.sqlite.highwater import HighWaterMark
from kubetwist.storage.sqlite.logfile import LOST_REVISIONS
from kubetwist.storage.sqlite.storage import (
    IDLE,
    SQLiteStorage,
)
from kubetwist.storage.sqlite.wal import (
    FRAME,
    HEADER,
    checksum,
    find_damage,
)
from kubetwist.testing.storage import RecordingObserver
from tests.storage.sqlite.test_storage import FileCase

PAGE = 4096
#: Bytes of a frame.
LENGTH = FRAME.size + PAGE

#: A process that writes some keys, prints the last revision, and kills itself.
KILLED = """
import os, signal, sys
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.api.storage import Write
from kubetwist.testing.storage import StorageReactor
reactor = StorageReactor()
storage = SQLiteStorage(sys.argv[1], reactor)
reactor.run(storage.open())
for number in range(60):
    newest = reactor.run(storage.commit([Write(f"/r/{number:02}", b"%d" % number * 400, 0)]))
os.write(1, b"%d" % newest)
os.kill(os.getpid(), signal.SIGKILL)
"""


class CrashedCase(FileCase):
    """Files that a killed server leaves."""

    writes = 40

    def setUp(self) -> None:
        """Write some keys, one transaction each, and copy the files of the open store."""
        super().setUp()
        storage = self.open()
        for number in range(self.writes - 1):
            self.write(storage, f"/r/{number:02}", b"%d" % number * 400)
        #: Possible states of the mark after a power cut.
        self.older_mark = Path(f"{self.path}-mark").read_bytes()
        self.newest = self.write(storage, "/r/last", b"x" * 800)
        self.now = self.page(storage)
        self.files = {suffix: Path(self.path + suffix).read_bytes() for suffix in ("", "-wal", "-mark")}
        self.frames = (len(self.files["-wal"]) - HEADER.size) // LENGTH

    def put(self, **changed: bytes | None) -> None:
        """Put the files at a new path, some of them changed or left out."""
        self.path = os.path.abspath(self.mktemp())
        for suffix, content in self.files.items():
            content = changed.get(suffix.strip("-") or "database", content)  # type: ignore[assignment]
            if content is not None:
                Path(self.path + suffix).write_bytes(content)

    def changed(self, suffix: str, at: int, length: int = 16) -> bytes:
        """Return one of the files with all bits of some bytes inverted."""
        content = bytearray(self.files[suffix])
        content[at : at + length] = bytes(one ^ 0xFF for one in content[at : at + length])
        return bytes(content)

    def attempt(self) -> list[tuple[str, bytes, int]] | None:
        """Return the content of the store; L{None} if it is refused."""
        storage = SQLiteStorage(self.path, self.reactor)
        try:
            self.reactor.run(storage.open())
        except StorageCorrupt:
            return None
        try:
            return self.page(storage)
        finally:
            self.close(storage)


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
            found = self.attempt()
            self.assertIn(found, (None, self.now), f"changed at {at}")
            refused += found is None
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
        """What was stored before the last write."""
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
        storage = SQLiteStorage(self.path, self.reactor, accept_loss=True)
        self.addCleanup(self.close, storage)
        with capturedLogs() as logged:
            self.reactor.run(storage.open())
        self.assertGreaterEqual(storage.revision, self.newest + LOST_REVISIONS)
        left = self.page(storage)
        self.assertEqual(left, self.now[: len(left)])
        self.assertTrue(left)
        with self.assertRaises(RevisionCompacted):
            self.page(storage, revision=self.newest - 5)
        self.write(storage, "/r/after", b"")
        self.assertEqual(os.path.getsize(f"{self.path}-wal") % LENGTH, HEADER.size)
        again = self.page(self.reopen(storage))
        self.assertEqual(len(again), len(left) + 1)
        self.assertEqual([one["log_level"] for one in logged if "loss" in one], [LogLevel.error])

    def test_backup(self) -> None:
        """A store that has lost writes cannot be backed up."""
        self.put(wal=self.changed("-wal", HEADER.size + LENGTH * (self.frames // 2) + 200))
        target = os.path.abspath(self.mktemp())
        with self.assertRaisesRegex(StorageCorrupt, "has lost acknowledged writes"):
            copy_store(self.path, target, lambda done, total: None)
        self.assertFalse(os.path.exists(target))


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
            found = self.page(storage)
            self.assertEqual([(key, then) for key, _, then in found], [(key, then) for key, _, then in self.now])
            wrong = [is_[1] for is_, was in zip(found, self.now, strict=True) if is_ != was]
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
        """A changed value is unreadable in every way of reading; all others are unchanged."""
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


class KilledTests(FileCase):
    """kill -9 of a real process."""

    def test_mark_after_kill(self) -> None:
        """After kill -9 the mark is the last acknowledged revision, and 16 changed bytes in the log stop the start."""
        environment = {**os.environ, "PYTHONPATH": str(Path(kubetwist.__file__).parent.parent)}
        done = subprocess.run(
            [sys.executable, "-c", KILLED, self.path], stdout=subprocess.PIPE, env=environment, check=False
        )
        self.assertEqual(done.returncode, -signal.SIGKILL)
        self.assertEqual(HighWaterMark(f"{self.path}-mark").read(), int(done.stdout))
        whole, damaged = self.path, os.path.abspath(self.mktemp())
        for suffix in ("", "-wal", "-mark"):
            shutil.copyfile(whole + suffix, damaged + suffix)
        with open(f"{damaged}-wal", "r+b") as log:
            log.seek(os.path.getsize(f"{damaged}-wal") // 2)
            log.write(b"\x55" * 16)
        self.path = damaged
        self.refused(StorageCorrupt, "was changed, and transactions follow it")
        self.path = whole
        storage = self.open()
        self.assertEqual((storage.revision, len(self.page(storage))), (int(done.stdout), 60))


class IdleTests(FileCase):
    """Checkpoints of an idle store."""

    def setUp(self) -> None:
        """Open a store with frames in its log."""
        super().setUp()
        self.storage = self.open()
        self.write(self.storage, "/r/a", b"1")

    def size(self) -> int:
        """Return the size of the log, after the writer has finished its work."""
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


class ChecksumTests(SynchronousTestCase):
    """The checksum, and damage that a log shows by itself."""

    @given(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), st.binary(max_size=200), st.booleans())
    def test_checksum(self, before: tuple[int, int], content: bytes, big_endian: bool) -> None:
        """The scalar products equal the loop of SQLite's documentation."""
        content = content[: len(content) // 8 * 8]
        first, second = before
        for one, other in struct.iter_unpack(">II" if big_endian else "<II", content):
            first = (first + one + second) & 0xFFFFFFFF
            second = (second + other + first) & 0xFFFFFFFF
        self.assertEqual(checksum(before, content, big_endian), (first, second))

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
