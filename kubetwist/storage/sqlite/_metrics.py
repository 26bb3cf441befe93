"""Metrics of the embedded store: its commits, its write-ahead log, and whether it can be written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ...metrics.registry import Histogram, MetricSnapshot, exponential

_SECONDS: Final = exponential(0.0001, 2.0, 16)
_TRANSACTIONS: Final = exponential(1.0, 2.0, 9)
_CHECKPOINTS: Final = exponential(0.001, 2.0, 14)
_PREFIX: Final = "kubetwist_sqlite_"


class SQLiteMetrics:
    """
    The metrics of one store.

    The thread that writes observes commits, the thread that copies the log observes checkpoints; each histogram has one
    writer.

    @ivar writable: Whether the last write has succeeded.
    @ivar failures: The number of writes that have failed; with each, all transactions that waited.
    @ivar commits: Seconds of a commit, with the sync of the disk.
    @ivar transactions: The number of transactions that share a commit.
    @ivar checkpoints: Seconds of copying the write-ahead log to the database.
    """

    def __init__(self) -> None:
        self.writable = True
        self.failures = 0
        self.commits = Histogram(_SECONDS)
        self.transactions = Histogram(_TRANSACTIONS)
        self.checkpoints = Histogram(_CHECKPOINTS)

    def collect(self, log_bytes: int) -> Iterator[MetricSnapshot]:
        """
        Return the metrics.

        @param log_bytes: The size of the write-ahead log in bytes.
        """
        for name, metric_type, text, value in (
            ("writable", "gauge", "Whether the last write to the embedded store has succeeded: 1 or 0.", self.writable),
            ("write_failures_total", "counter", "Number of failed commits of the embedded store.", self.failures),
            ("wal_size_bytes", "gauge", "Size of the write-ahead log of the embedded store in bytes.", log_bytes),
        ):
            yield MetricSnapshot(f"{_PREFIX}{name}", metric_type, text, (), [((), float(value))])
        for name, text, histogram in (
            ("commit_duration_seconds", "Duration in seconds of commits, with the sync of the disk.", self.commits),
            ("commit_transactions", "Number of transactions that share a commit.", self.transactions),
            (
                "checkpoint_duration_seconds",
                "Duration in seconds of copying the write-ahead log to the database.",
                self.checkpoints,
            ),
        ):
            yield MetricSnapshot(f"{_PREFIX}{name}", "histogram", text, (), [((), histogram)])
