"""Tests of L{kubetwist.storage.sqlite._metrics}."""

from __future__ import annotations

import sqlite3
from typing import Any

from kubetwist.metrics.registry import Histogram
from kubetwist.storage.errors import StorageUnwritable
from kubetwist.storage.sqlite import SQLiteStorage

from .test_storage import FileCase


class SQLiteMetricsTests(FileCase):
    """Metrics of a store."""

    def metrics(self, storage: SQLiteStorage) -> dict[str, Any]:
        """Return the numbers, and the histograms as their count."""
        found = {}
        for snapshot in storage.collect():
            ((_, value),) = snapshot.values
            name = snapshot.name.removeprefix("kubetwist_sqlite_")
            found[name] = value.count if isinstance(value, Histogram) else value
        return found

    def test_commits(self) -> None:
        """Each commit is counted with its transactions; the write-ahead log grows."""
        storage = self.open()
        before = self.metrics(storage)
        for number in range(3):
            self.write(storage, f"/r/{number}", b"x" * 9000)
        after = self.metrics(storage)
        self.assertEqual(after["commit_duration_seconds"] - before["commit_duration_seconds"], 3)
        self.assertEqual(after["commit_transactions"] - before["commit_transactions"], 3)
        self.assertEqual(storage.metrics.transactions.sum, storage.metrics.transactions.count)
        self.assertGreater(after["wal_size_bytes"], before["wal_size_bytes"])
        self.assertEqual((after["writable"], after["write_failures_total"]), (1, 0))

    def test_checkpoints(self) -> None:
        """A copy of the write-ahead log is timed."""
        storage = self.open()
        self.write(storage, "/r/a", b"1")
        before = self.metrics(storage)["checkpoint_duration_seconds"]
        self.reactor.run(storage._checkpoints.copy())
        self.assertEqual(self.metrics(storage)["checkpoint_duration_seconds"], before + 1)

    def test_not_writable(self) -> None:
        """A full disk is shown until a write succeeds."""
        connections: list[Any] = []

        def connect(*arguments: Any, **options: Any) -> Any:
            connections.append(sqlite3.connect(*arguments, **{**options, "check_same_thread": False}))
            return connections[-1]

        storage = self.open(connect)
        (pages,) = connections[0].execute("PRAGMA page_count").fetchone()
        connections[0].execute(f"PRAGMA max_page_count = {pages}")
        with self.assertRaises(StorageUnwritable):
            self.write(storage, "/r/a", b"x" * 50_000)
        found = self.metrics(storage)
        self.assertEqual((found["writable"], found["write_failures_total"]), (0, 1))
        connections[0].execute("PRAGMA max_page_count = 1000000")
        self.write(storage, "/r/a", b"x" * 50_000)
        found = self.metrics(storage)
        self.assertEqual((found["writable"], found["write_failures_total"]), (1, 1))

    def test_closed(self) -> None:
        """A store without a file has no write-ahead log."""
        storage = SQLiteStorage(self.path, self.reactor)
        self.assertEqual(self.metrics(storage)["wal_size_bytes"], 0)
