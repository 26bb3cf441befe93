"""
A directory of backups of one data directory, with the changes between them. Blocking.

Each backup is a directory F{backup-<time>} as L{kubetwist.server.backups.back_up} creates it, F{changes/} has
segments, F{status.json} the result of the last run. One process writes to an archive at a time.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from attrs import field, frozen

from ...api.times import now, seconds_since_epoch, utc_now
from ...storage.errors import StorageError
from ...storage.sqlite.backup import Progress
from ...storage.sqlite.segments import SUFFIX, Position, Segment, read_header, verify_segment, write_segment
from ..backups import STORE, Backup, back_up, read_manifest, verify_backup
from ..errors import StartError
from .pointintime import ArchivedBackup, RestorePlan, plan_revision, revision_at
from .retention import RetentionPolicy, select_kept

BACKUP_PREFIX: Final = "backup-"
CHANGES: Final = "changes"
LOCK: Final = ".lock"
STATUS: Final = "status.json"


@frozen
class Verification:
    """
    The result of a check of a whole archive.

    @ivar problems: One line for each damaged backup or segment.
    """

    backups: int = 0
    segments: int = 0
    problems: list[str] = field(factory=list)


class Archive:
    """
    One archive.

    @ivar path: Absolute.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.changes = self.path / CHANGES

    # --- writing

    @contextmanager
    def locked(self) -> Iterator[None]:
        """
        Create the directory if it does not exist, and lock it for this process.

        @raise StartError: Another process writes to it, or it cannot be written.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(f"cannot write {self.path}: {error.strerror or error}") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
                raise StartError(f"another backup into {self.path} is running (process {holder})") from None
            with suppress(OSError):
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
            try:
                self.changes.mkdir(mode=0o700, exist_ok=True)
                self._remove_leftovers()
            except OSError as error:
                raise StartError(f"cannot write {self.path}: {error.strerror or error}") from error
            yield
        finally:
            os.close(descriptor)

    def _remove_leftovers(self) -> None:
        """Remove incomplete files of a run that was killed."""
        for path in self.path.glob(f".{BACKUP_PREFIX}*"):
            shutil.rmtree(path)
        for path in self.changes.glob(f".*{SUFFIX}.*"):
            path.unlink()

    def add_backup(
        self, source: Path, progress: Progress, *, keys: bool = True, step_pages: int = 0
    ) -> tuple[Path, Backup]:
        """
        Take a backup of a data directory, and verify it.

        @param progress: See L{back_up}.
        @raise StartError: Something cannot be read or written.
        @raise StorageError: The store is damaged or cannot be read.
        """
        stamp = utc_now().strftime("%Y%m%dT%H%M%SZ")
        path, number = self.path / f"{BACKUP_PREFIX}{stamp}", 1
        while os.path.lexists(path):
            number += 1
            path = self.path / f"{BACKUP_PREFIX}{stamp}-{number}"
        return path, back_up(source, path, progress, keys=keys, step_pages=step_pages)

    def add_changes(self, source: Path, position: Position) -> Segment | None:
        """
        Archive the changes of a data directory's store after a position.

        @return: The new segment; L{None} if there are no changes.
        @raise StorageError: See L{write_segment}.
        """
        return write_segment(str(source / STORE), self.changes, position, now())

    def prune(self, policy: RetentionPolicy, keep_changes: float) -> list[Path]:
        """
        Remove the backups that a policy does not keep, and changes that are too old or have no earlier backup.

        @param keep_changes: Seconds for which changes are kept.
        @return: The removed backups.
        @raise StartError: One cannot be removed.
        """
        backups = self.backups()
        times = [(datetime.fromtimestamp(seconds_since_epoch(one.taken), UTC), one) for one in backups]
        kept = select_kept(times, policy)
        removed = [one.path for index, one in enumerate(backups) if index not in kept]
        try:
            for path in removed:
                # Renamed first: an incomplete backup must not have a final name.
                hidden = path.with_name(f".{path.name}")
                path.rename(hidden)
                shutil.rmtree(hidden)
            self._prune_changes(keep_changes)
        except OSError as error:
            raise StartError(f"cannot remove {error.filename}: {error.strerror or error}") from error
        return removed

    def _prune_changes(self, keep_changes: float) -> None:
        oldest: dict[int, int] = {}
        for backup in self.backups():
            oldest[backup.history] = min(oldest.get(backup.history, backup.revision), backup.revision)
        limit = utc_now().timestamp() - keep_changes
        for segment in self.segments():
            useless = segment.until <= oldest.get(segment.history, segment.until)
            if useless or seconds_since_epoch(segment.taken) < limit:
                segment.path.unlink()

    # --- reading

    def backups(self) -> list[ArchivedBackup]:
        """Return the complete backups, oldest first; those that cannot be read are left out."""
        found = []
        for path in self.path.glob(f"{BACKUP_PREFIX}*"):
            backup = read_manifest(path)
            if backup is not None:
                found.append(ArchivedBackup(path, backup.taken, backup.revision, backup.history))
        return sorted(found, key=lambda one: (one.taken, one.revision, one.path.name))

    def segments(self) -> list[Segment]:
        """Return the segments in the order of their names; those whose headers cannot be read are left out."""
        found = []
        for path in sorted(self.changes.glob(f"*{SUFFIX}")):
            with suppress(StorageError):
                found.append(read_header(path))
        return found

    def position(self) -> Position | None:
        """Return the newest archived revision of the history of the newest backup; L{None} without a backup."""
        backups = self.backups()
        if not backups:
            return None
        newest, segments = backups[-1], self.segments()
        # Changes that do not follow the backup without a gap are useless for the next ones.
        reached = newest.revision
        for segment in sorted(segments, key=lambda one: one.after):
            if segment.history == newest.history and segment.after <= reached < segment.until:
                reached = segment.until
        return Position(newest.history, reached)

    def verify(self, report: Callable[[str], object] = lambda line: None) -> Verification:
        """
        Read everything, and compare it with its checksums.

        @param report: Called with a line for each intact backup.
        """
        backups = segments = 0
        problems: list[str] = []
        for path in sorted(self.path.glob(f"{BACKUP_PREFIX}*")):
            try:
                backup = verify_backup(path)
            except (StartError, StorageError) as error:
                problems.append(str(error))
                continue
            backups += 1
            if backup.damaged:
                problems.append(f"{path}: {backup.damaged} objects were unreadable when the backup was taken")
            report(f"{path}: {backup.keys} objects as of revision {backup.revision}")
        for path in sorted(self.changes.glob(f"*{SUFFIX}")):
            try:
                verify_segment(path)
                segments += 1
            except StorageError as error:
                problems.append(str(error))
        if not backups and not problems:
            problems.append(f"there is no backup in {self.path}")
        return Verification(backups, segments, problems)

    def plan(self, *, revision: int | None = None, time: str | None = None) -> RestorePlan:
        """
        Plan the restore of a revision, or of a time; without both, of the newest revision.

        @param time: RFC 3339, in UTC.
        @raise StartError: The archive does not have it.
        """
        backups, segments = self.backups(), self.segments()
        if not backups:
            raise StartError(f"there is no backup in {self.path}")
        if time is not None:
            revision = revision_at(backups, segments, time)
        if revision is None:
            position = self.position()
            assert position is not None
            revision = position.revision
        return plan_revision(backups, segments, revision)
