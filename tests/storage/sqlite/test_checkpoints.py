"""Tests for L{kubetwist.storage.sqlite._checkpoints}; F{test_kill.py} kills a store that runs checkpoints."""

from __future__ import annotations

import os
import sqlite3
from threading import Semaphore
from unittest import mock

from twisted.internet.defer import Deferred, gatherResults

from kubetwist.api.storage import Write
from kubetwist.storage.errors import StorageUnwritable
from kubetwist.storage.sqlite import SQLiteStorage, _checkpoints, _storage
from kubetwist.storage.sqlite.logfile import PAGE_SIZE, LogFile
from tests.storage.sqlite.test_storage import FileCase, held

#: The pages after which the stores of these tests begin a checkpoint.
PAGES = 40


class CheckpointTests(FileCase):
    """Checkpoints of a store with constant writes."""

    def setUp(self) -> None:
        """Open a store that begins checkpoints early."""
        super().setUp()
        self.patch(_checkpoints, "CHECKPOINT_PAGES", PAGES)
        self.storage = self.open()
        self.written: dict[str, bytes] = {}

    def fill(self, count: int) -> None:
        """Write some values of about a page, one after the other."""
        for _ in range(count):
            key, value = f"/r/{len(self.written):05}", b"%d" % len(self.written) * 1000
            self.write(self.storage, key, value)
            self.written[key] = value

    def log_pages(self) -> int:
        """Return the size of the write-ahead log in pages."""
        return os.path.getsize(f"{self.path}-wal") // PAGE_SIZE

    def finish(self) -> None:
        """Wait for a checkpoint that runs."""
        running = self.storage._checkpoints._running
        if running is not None:
            self.reactor.run(running)

    def check(self, storage: SQLiteStorage) -> None:
        """Assert that a store has all written values."""
        self.assertEqual({key: value for key, value, _ in self.page(storage)}, self.written)

    def begun_again(self) -> bool:
        """Return whether further writes do not extend the log."""
        pages = self.log_pages()
        self.fill(PAGES // 4)
        return self.log_pages() == pages

    def test_bounded_log(self) -> None:
        """The log is begun again after each checkpoint, and its size is bounded."""
        for _ in range(8):
            self.fill(PAGES)
            self.finish()
            # Each commit writes at least two pages.
            self.assertLess(self.log_pages(), 6 * PAGES)
        self.check(self.reopen(self.storage))

    def test_constant_writes(self) -> None:
        """Writes are finished while a checkpoint runs, and it copies all of the log although they go on."""
        copied, copies = Semaphore(0), []

        def copy_log(file: LogFile) -> int:
            result = original(file)
            copies.append(file)
            if file is not self.storage._file:
                copied.acquire()
            return result

        original = LogFile.copy_log
        with mock.patch.object(LogFile, "copy_log", copy_log):
            self.fill(PAGES)
            self.assertIsNotNone(self.storage._checkpoints._running)
            while self.storage._checkpoints._running is not None:
                # There are new pages after each pass of the thread.
                self.fill(1)
                copied.release()
        self.assertIs(copies[-1], self.storage._file)
        self.assertTrue(self.begun_again())
        self.check(self.storage)

    def test_reader(self) -> None:
        """A reader of an old state keeps the log, and writers do not wait for it; it is begun again later."""
        reading = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(reading.close)
        reading.execute("BEGIN")
        (before,) = reading.execute("SELECT count(*) FROM log").fetchone()
        self.fill(4 * PAGES)
        self.finish()
        self.assertEqual(reading.execute("SELECT count(*) FROM log").fetchone(), (before,))
        self.assertFalse(self.begun_again())
        reading.execute("COMMIT")
        self.fill(PAGES)
        self.finish()
        self.assertTrue(self.begun_again())
        self.check(self.reopen(self.storage))

    def test_not_in_commits(self) -> None:
        """No commit copies the log, even if it is long because the thread does not copy it."""
        before = os.path.getsize(self.path)
        with held(self.storage._checkpoints._worker):
            for number in range(6):
                # More pages than SQLite lets the log have by default.
                self.write(self.storage, f"/r/{number}", bytes(1 << 20))
            self.assertEqual(os.path.getsize(self.path), before)
            self.assertGreater(self.log_pages(), 1500)

    def test_compaction(self) -> None:
        """A compaction begins checkpoints, and waits for each before it goes on."""
        self.patch(_storage, "SLICE_ROWS", PAGES)
        for _ in range(2 * PAGES):
            self.write(self.storage, "/r/a", b"value")
        self.finish()
        with held(self.storage._checkpoints._worker):
            compaction = Deferred.fromCoroutine(self.storage.compact(self.storage.revision))
            while self.storage._checkpoints._running is None:
                self.reactor.turn()
            self.reactor.run(self.storage._writer.run(lambda: None))
            self.assertGreater(self.rows(), PAGES - 1)
            self.assertNoResult(compaction)
        self.reactor.run(compaction)
        self.assertEqual(self.rows(), 1)
        self.finish()
        pages = self.log_pages()
        self.write(self.storage, "/r/a", b"value")
        self.assertEqual(self.log_pages(), pages)

    def test_idle(self) -> None:
        """The thread copies the log of an idle store, before the writer empties it."""
        self.fill(1)
        with held(self.storage._checkpoints._worker):
            self.reactor.advance(_storage.IDLE)
            self.reactor.run(self.storage._writer.run(lambda: None))
            self.assertGreater(self.log_pages(), 0)
        while self.log_pages():
            self.reactor.turn()
        self.check(self.reopen(self.storage))

    def test_closed(self) -> None:
        """A store that is closed during a checkpoint finishes it, and loses nothing."""
        with held(self.storage._checkpoints._worker):
            self.fill(2 * PAGES)
            closing = Deferred.fromCoroutine(self.storage.close())
            self.assertFalse(closing.called)
        self.reactor.run(closing)
        self.check(self.open())

    def test_failure(self) -> None:
        """A checkpoint that cannot write fails no write, and is tried again after further writes."""
        attempts = []

        def copy_log(file: LogFile) -> int:
            attempts.append(file)
            raise StorageUnwritable(self.path, "disk full")

        with mock.patch.object(LogFile, "copy_log", copy_log):
            self.fill(2 * PAGES)
            self.finish()
            count = len(attempts)
            self.fill(2 * PAGES)
            self.finish()
        self.assertGreaterEqual(count, 1)
        self.assertGreater(len(attempts), count)
        self.fill(2 * PAGES)
        self.finish()
        self.assertTrue(self.begun_again())
        self.check(self.storage)

    def test_together(self) -> None:
        """Jobs of the writer come after the writes that were submitted before them, even if these are collected."""
        answers = [self.storage.commit([Write(f"/r/{number}", b"1", None)]) for number in range(5)]
        contents = self.reactor.run(self.storage._writer.run(self.storage._file.load))
        self.assertEqual(len(contents.latest_revisions), 5)
        self.reactor.run(gatherResults(answers))
