"""Takes backups on a schedule, and archives the changes between them, until it is cancelled."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, Final, Protocol

from attrs import field, frozen

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from ...api.times import posix_now, seconds_since_epoch
from ...storage.errors import StorageError
from ...storage.sqlite.logfile import PAGE_SIZE
from ...storage.sqlite.segments import HistoryGap, Position
from ..errors import StartError
from .archive import STATUS, Archive
from .retention import RetentionPolicy
from .status import BackupStatus

#: Pages copied at a time if the rate is limited: 1 MiB.
LIMITED_STEP_PAGES: Final = 256
#: Seconds after which a failed backup is tried again, if the schedule is not due before.
RETRY_INTERVAL: Final = 300.0
#: The longest wait in seconds: the system's clock may be set.
_LONGEST_WAIT: Final = 60.0


class BackupSchedule(Protocol):
    """The times of backups; L{kubetwist.controllers.workloads.schedules.CronSchedule} implements it."""

    def next_after(self, since: float, now: float) -> float | None:
        """Return the first time after C{now}. Intervals start at C{since}."""

    def most_recent(self, since: float, now: float) -> tuple[float | None, bool]:
        """Return the last time after C{since} up to C{now}, and whether too many times were missed."""


@frozen
class ArchiveSettings:
    """
    What is archived, and how.

    @ivar source: The data directory.
    @ivar keys: Whether backups include keys and certificates.
    @ivar changes_interval: Seconds between two segments of changes; 0 for no changes.
    @ivar keep_changes: Seconds for which changes are kept.
    @ivar rate_limit: Maximum number of bytes copied per second; 0 for no limit.
    @ivar metrics: The file for node_exporter; L{None} for none.
    """

    source: Path
    policy: RetentionPolicy = field(factory=RetentionPolicy)
    keys: bool = True
    changes_interval: float = 60.0
    keep_changes: float = 7 * 86400.0
    rate_limit: int = 0
    metrics: Path | None = None


class RateLimit:
    """Delays a copy so that it stays below a rate; called by the thread that copies, after each step."""

    def __init__(self, bytes_per_second: int, cancelled: Event, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = bytes_per_second
        self._cancelled = cancelled
        self._clock = clock
        self._begin = clock()

    def __call__(self, done: int, total: int) -> None:
        """
        Wait until C{done} pages are allowed.

        @raise CancelledError: The backup is cancelled.
        """
        if self._rate:
            self._cancelled.wait(max(0.0, self._begin + done * PAGE_SIZE / self._rate - self._clock()))
        if self._cancelled.is_set():
            raise CancelledError


class BackupScheduler:
    """
    Writes to one archive, whose lock the caller holds.

    @ivar status: The results so far.
    """

    _log = Logger()

    def __init__(
        self,
        archive: Archive,
        settings: ArchiveSettings,
        clock: IReactorTime,
        cancelled: Event,
        report: Callable[[str], object],
        in_thread: Callable[..., Deferred[Any]] = deferToThread,
    ) -> None:
        """
        @param cancelled: Set to end a backup that is being taken.
        @param report: Prints a line for each backup.
        @param in_thread: Calls a function with arguments in a thread.
        """
        self.archive = archive
        self.settings = settings
        self.status = BackupStatus.read(archive.path / STATUS)
        self._clock = clock
        self._cancelled = cancelled
        self._report = report
        self._in_thread = in_thread
        self._position: Position | None = None

    async def run(self, schedule: BackupSchedule) -> None:
        """
        Take backups forever. A failure is logged, recorded in the status, and retried.

        A scheduled time that was missed while nothing ran is made up once. The first run takes a backup at once.
        """
        started = posix_now()
        self._position = await self._in_thread(self.archive.position)
        last = await self._in_thread(self._last_backup)
        missed = last is None or schedule.most_recent(last, started)[0] is not None
        due = started if missed else schedule.next_after(last or started, started)
        changes_due = started
        while True:
            now = posix_now()
            if due is not None and due <= now:
                taken = await self._try_backup()
                now = posix_now()
                due = schedule.next_after(now, now)
                if not taken:
                    due = min(due or now + RETRY_INTERVAL, now + RETRY_INTERVAL)
            if self.settings.changes_interval and changes_due <= now and self._position is not None:
                if not await self._try_changes():
                    # No changes until there is a new backup, so that a failing one is not retried without a pause.
                    self._position, due = None, now
                    continue
                changes_due = now + self.settings.changes_interval
            times = [one for one in (due,) if one is not None]
            if self.settings.changes_interval and self._position is not None:
                times.append(changes_due)
            wait = min([_LONGEST_WAIT, *(one - posix_now() for one in times)])
            await deferLater(self._clock, max(0.0, wait), lambda: None)

    async def run_once(self) -> Path:
        """
        Take one backup, and remove those that are not kept.

        @return: The backup.
        @raise StartError: It failed; the status records it.
        @raise StorageError: The store is damaged or cannot be read.
        """
        begin = self._clock.seconds()
        self.status.last_attempt_timestamp_seconds = posix_now()
        try:
            path: Path = await self._in_thread(self._back_up, begin)
            return path
        except (StartError, StorageError, OSError) as error:
            self.status.failures_total += 1
            self.status.last_error = str(error)
            await self._in_thread(self._write_status)
            raise

    def _last_backup(self) -> float | None:
        backups = self.archive.backups()
        return seconds_since_epoch(backups[-1].taken) if backups else None

    async def _try_backup(self) -> bool:
        try:
            await self.run_once()
        except (StartError, StorageError, OSError) as error:
            self._log.error(
                "backup failed: archive={path} error={error}", path=str(self.archive.path), error=str(error)
            )
            return False
        return True

    def _back_up(self, begin: float) -> Path:
        """Take and verify a backup, then prune; in a thread."""
        settings, status = self.settings, self.status
        limit = RateLimit(settings.rate_limit, self._cancelled)
        step = LIMITED_STEP_PAGES if settings.rate_limit else 0
        path, backup = self.archive.add_backup(settings.source, limit, keys=settings.keys, step_pages=step)
        status.last_success_timestamp_seconds = posix_now()
        status.last_duration_seconds = round(self._clock.seconds() - begin, 3)
        status.last_size_bytes = sum(one.stat().st_size for one in path.rglob("*") if one.is_file())
        status.last_revision, status.last_damaged_objects = backup.revision, backup.damaged
        status.last_error = ""
        if backup.damaged:
            self._log.error(
                "objects of the store are unreadable: backup={path} count={count}", path=path, count=backup.damaged
            )
        removed = self.archive.prune(settings.policy, settings.keep_changes)
        self._position = self.archive.position()
        status.backups = len(self.archive.backups())
        if self._position is not None:
            status.archived_revision = self._position.revision
        self._write_status()
        self._report(
            f"backup {path}: {backup.keys} objects as of revision {backup.revision}, {status.last_size_bytes} bytes in"
            f" {status.last_duration_seconds:.1f} s; {status.backups} backups kept, {len(removed)} removed"
        )
        return path

    async def _try_changes(self) -> bool:
        """Archive new changes; return whether the chain of changes is unbroken, otherwise a backup is needed."""
        try:
            await self._in_thread(self._archive_changes)
        except HistoryGap as gap:
            self._log.warn("changes are missing, taking a backup: reason={reason}", reason=str(gap))
            return False
        except (StorageError, OSError) as error:
            self.status.changes_failures_total += 1
            self.status.last_error = str(error)
            self._log.error(
                "archiving changes failed: archive={path} error={error}",
                path=str(self.archive.path),
                error=str(error),
            )
            await self._in_thread(self._write_status)
        return True

    def _archive_changes(self) -> None:
        assert self._position is not None
        segment = self.archive.add_changes(self.settings.source, self._position)
        if segment is not None:
            self._position = Position(segment.history, segment.until)
            self.status.archived_revision = segment.until
        self.status.changes_last_success_timestamp_seconds = posix_now()
        self._write_status()

    def _write_status(self) -> None:
        try:
            self.status.write(self.archive.path / STATUS, self.settings.metrics)
        except OSError as error:
            self._log.error("cannot write the status: path={path} error={error}", path=error.filename, error=error)
