# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.archive.scheduler}."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Event
from typing import Any

from twisted.internet.defer import CancelledError, Deferred, execute
from twisted.internet.task import Clock

from kubetwist.controllers.workloads.schedules import CronSchedule
from kubetwist.server.archive.archive import STATUS
from kubetwist.server.archive.retention import RetentionPolicy
from kubetwist.server.archive.scheduler import ArchiveSettings, BackupScheduler, RateLimit
from kubetwist.server.errors import StartError
from kubetwist.storage.sqlite.logfile import PAGE_SIZE
from tests.server.archive.test_archive import ArchiveCase


class SchedulerCase(ArchiveCase):
    """Runs a scheduler with a clock."""

    def setUp(self) -> None:
        """Prepare an archive, and a clock that moves the time of the process, too."""
        super().setUp()
        self.clock = Clock()
        self.lines: list[str] = []
        self.cancelled = Event()
        self.run_in_thread: Callable[..., Deferred[Any]] = execute

    def scheduler(self, **settings: Any) -> BackupScheduler:
        """Return a scheduler that uses no threads."""
        return BackupScheduler(
            self.archive,
            ArchiveSettings(self.source, **settings),
            self.clock,
            self.cancelled,
            self.lines.append,
            lambda call, *arguments: self.run_in_thread(call, *arguments),
        )

    def start(self, schedule: str = "@every 1h", **settings: Any) -> Deferred[None]:
        """Start a scheduler until the end of the test."""
        lock = self.archive.locked()
        lock.__enter__()
        self.addCleanup(lock.__exit__, None, None, None)
        running = Deferred.fromCoroutine(self.scheduler(**settings).run(CronSchedule(schedule, None)))
        running.addErrback(lambda failure: failure.trap(CancelledError))
        self.addCleanup(running.cancel)
        return running

    def advance(self, seconds: float) -> None:
        """Advance the time in steps of ten seconds."""
        for _ in range(int(seconds // 10)):
            self.now += 10
            self.clock.advance(10)

    def status(self) -> dict[str, Any]:
        """Return the status file."""
        return dict(json.loads((self.archive.path / STATUS).read_text()))


class ScheduleTests(SchedulerCase):
    """Backups and changes by the clock."""

    def test_schedule(self) -> None:
        """The first backup is taken at once, the next ones at their times, and changes are archived in between."""
        self.write(b"1")
        self.start(policy=RetentionPolicy(last=2))
        self.assertEqual(len(self.archive.backups()), 1)
        first = self.write(b"2")
        self.advance(60)
        second = self.write(b"3")
        self.assertEqual(self.restored(first), b"2")
        self.assertRaises(StartError, self.archive.plan, revision=second)
        self.advance(60)
        self.assertEqual(self.restored(second), b"3")
        self.advance(3600)
        self.assertEqual(len(self.archive.backups()), 2)
        self.advance(7200)
        self.assertEqual(len(self.archive.backups()), 2)
        self.assertIn("2 backups kept, 1 removed", self.lines[-1])

    def test_cron(self) -> None:
        """Times of a cron schedule are used; one that was missed while nothing ran is made up once."""
        self.start("30 * * * *", changes_interval=0)
        self.advance(29 * 60)
        self.assertEqual(len(self.archive.backups()), 1)
        self.advance(60)
        self.assertEqual(
            [one.taken for one in self.archive.backups()], ["2026-11-29T08:00:00Z", "2026-11-29T08:30:00Z"]
        )

    def test_restart(self) -> None:
        """A restart takes no backup before its time, but at once if the time was missed, and continues the changes."""
        with self.archive.locked():
            for minutes, backups in ((0, 1), (10, 1), (25, 2), (10, 2)):
                self.now += minutes * 60
                scheduler = self.scheduler()
                running = Deferred.fromCoroutine(scheduler.run(CronSchedule("30 * * * *", None)))
                self.assertEqual(len(self.archive.backups()), backups)
                last = self.write(b"%d" % minutes)
                self.advance(60)
                running.cancel()
                self.failureResultOf(running, CancelledError)
                self.assertEqual(self.restored(last), b"%d" % minutes)

    def test_gap(self) -> None:
        """If the store has compacted changes that were not archived, a new backup is taken at once."""
        self.start()
        for _ in range(3):
            self.write(b"x")
        self.reactor.run(self.storage.compact(self.storage.revision))
        self.advance(60)
        self.assertEqual(len(self.archive.backups()), 2)
        last = self.write(b"y")
        self.advance(60)
        self.assertEqual(self.restored(last), b"y")

    def test_failure(self) -> None:
        """A failure is recorded and retried after five minutes; the archive keeps the earlier backups."""
        self.start(changes_interval=0)
        self.run_in_thread = self.fail_backups
        self.advance(3600)
        status = self.status()
        self.assertEqual((status["failures_total"], status["last_error"]), (1, "no space"))
        self.advance(290)
        self.assertEqual(self.status()["failures_total"], 1)
        self.advance(10)
        self.assertEqual(self.status()["failures_total"], 2)
        self.run_in_thread = execute
        self.advance(300)
        self.assertEqual((self.status()["failures_total"], self.status()["last_error"]), (2, ""))
        self.assertEqual(len(self.archive.backups()), 2)

    def test_gap_and_failure(self) -> None:
        """A failing backup after a gap is retried every five minutes, not all the time."""
        self.start()
        for _ in range(3):
            self.write(b"x")
        self.reactor.run(self.storage.compact(self.storage.revision))
        self.run_in_thread = self.fail_backups
        self.advance(900)
        self.assertEqual(self.status()["failures_total"], 3)

    def fail_backups(self, call: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Fail instead of a backup."""
        if call.__name__ == "_back_up":
            return execute(self.raise_error)
        return execute(call, *arguments)

    def raise_error(self) -> None:
        """Fail."""
        raise StartError("no space")

    def test_status(self) -> None:
        """The status and the metrics have the time, the size and the revision of the last backup."""
        metrics = self.base / "kubetwist.prom"
        self.write(b"x")
        self.start(metrics=metrics)
        status = self.status()
        self.assertEqual(status["last_success_timestamp_seconds"], self.now)
        self.assertGreater(status["last_size_bytes"], 4096)
        self.assertEqual((status["last_revision"], status["backups"]), (self.storage.revision, 1))
        self.assertIn(f"\nkubetwist_backup_last_revision {self.storage.revision}\n", metrics.read_text())
        self.write(b"y")
        self.advance(60)
        self.assertIn(f"\nkubetwist_backup_archived_revision {self.storage.revision}\n", metrics.read_text())
        self.assertEqual(self.status()["changes_last_success_timestamp_seconds"], self.now)


class RateLimitTests(SchedulerCase):
    """The limit of a copy's rate."""

    def test_rate(self) -> None:
        """A step waits until the copied bytes are allowed."""
        waited: list[float] = []
        time = [0.0]

        class Cancelled(Event):
            def wait(self, timeout: float | None = None) -> bool:
                assert timeout is not None
                waited.append(timeout)
                time[0] += timeout
                return False

        limit = RateLimit(PAGE_SIZE * 10, Cancelled(), lambda: time[0])
        limit(20, 100)
        time[0] += 5
        limit(40, 100)
        limit(80, 100)
        self.assertEqual(waited, [2.0, 0.0, 1.0])

    def test_cancelled(self) -> None:
        """A cancelled backup ends at the next step, with and without a limit."""
        self.cancelled.set()
        for rate in (0, 1):
            self.assertRaises(CancelledError, RateLimit(rate, self.cancelled), 1000, 1000)
