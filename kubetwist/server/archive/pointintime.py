"""Choose the backup and the segments of changes from which a revision is restored. Without I/O."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from ...storage.sqlite.segments import Segment
from ..errors import StartError


@frozen
class ArchivedBackup:
    """
    One backup of an archive, as its manifest describes it.

    @ivar taken: RFC 3339 time of the backup.
    @ivar history: See L{kubetwist.server.backups.Backup}.
    """

    path: Path
    taken: str
    revision: int
    history: int


@frozen
class RestorePlan:
    """
    How a revision is restored.

    @ivar segments: The changes to apply after the backup, in order.
    """

    backup: ArchivedBackup
    segments: tuple[Segment, ...]
    revision: int


def plan_revision(backups: Sequence[ArchivedBackup], segments: Sequence[Segment], revision: int) -> RestorePlan:
    """
    Plan the restore of exactly one revision.

    The newest backup at or before the revision is preferred. After a restore into the same data directory, revisions
    can have several histories; the one of the newest backup is preferred then.

    @raise StartError: No backup is old enough, or changes are missing.
    """
    candidates = [backup for backup in backups if backup.revision <= revision]
    if not candidates:
        oldest = min((backup.revision for backup in backups), default=None)
        known = "it has no backup" if oldest is None else f"its oldest backup is of revision {oldest}"
        raise StartError(f"the archive has no backup of revision {revision} or earlier: {known}")
    newest_history = max(candidates, key=lambda backup: backup.taken).history
    candidates.sort(key=lambda backup: (backup.history == newest_history, backup.revision, backup.taken), reverse=True)
    reached = []
    for backup in candidates:
        chain, position = _chain(backup, segments, revision)
        if position >= revision:
            return RestorePlan(backup, chain, revision)
        reached.append((position, backup))
    position, backup = reached[0]
    later = [one.after for one in segments if one.history == backup.history and one.after > position]
    if later:
        raise StartError(
            f"revision {revision} cannot be restored: the archive has no changes between the revisions {position} and"
            f" {min(later)}"
        )
    raise StartError(f"revision {revision} is not in the archive: its newest revision is {position}")


def _chain(backup: ArchivedBackup, segments: Sequence[Segment], revision: int) -> tuple[tuple[Segment, ...], int]:
    """Return adjacent segments from a backup on, and the revision that they reach."""
    own = sorted((one for one in segments if one.history == backup.history), key=lambda one: one.after)
    position, index = backup.revision, 0
    chain: list[Segment] = []
    best: Segment | None = None
    while position < revision:
        while index < len(own) and own[index].after <= position:
            if best is None or own[index].until > best.until:
                best = own[index]
            index += 1
        if best is None or best.until <= position:
            break
        chain.append(best)
        position = min(best.until, revision)
    return tuple(chain), position


def revision_at(backups: Sequence[ArchivedBackup], segments: Sequence[Segment], time: str) -> int:
    """
    Return the newest revision that the archive knows to have existed at a time.

    @param time: RFC 3339 in UTC, as in manifests and headers: C{"2026-11-29T08:00:00Z"}.
    @raise StartError: The archive begins later.
    """
    known = [(backup.taken, backup.revision) for backup in backups if backup.taken <= time]
    known += [(segment.taken, segment.until) for segment in segments if segment.taken <= time]
    if not known:
        raise StartError(f"the archive begins after {time}")
    return max(known)[1]
