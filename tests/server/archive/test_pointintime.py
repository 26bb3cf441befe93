# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.archive.pointintime}."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.archive.pointintime import ArchivedBackup, plan_revision, revision_at
from kubetwist.server.errors import StartError
from kubetwist.storage.sqlite.segments import Segment


def backup(revision: int, minute: int, history: int = 1) -> ArchivedBackup:
    """Return a backup."""
    return ArchivedBackup(Path(f"backup-{revision}-{history}"), f"2026-11-29T08:{minute:02}:00Z", revision, history)


def segment(after: int, until: int, minute: int = 0, history: int = 1) -> Segment:
    """Return a segment."""
    return Segment(Path(f"{after}-{until}"), history, after, until, f"2026-11-29T08:{minute:02}:00Z")


class PlanTests(SynchronousTestCase):
    """Plans for revisions."""

    backups = (backup(10, 1), backup(30, 3))
    segments = (segment(10, 20), segment(20, 25), segment(25, 40), segment(40, 50))

    def plan(self, revision: int) -> tuple[int, list[str]]:
        """Return the revision of the backup, and the names of the segments."""
        plan = plan_revision(self.backups, self.segments, revision)
        self.assertEqual(plan.revision, revision)
        return plan.backup.revision, [str(one.path) for one in plan.segments]

    def error(self, revision: int) -> str:
        """Return the error of a plan."""
        return str(self.assertRaises(StartError, plan_revision, self.backups, self.segments, revision))

    def test_plan(self) -> None:
        """The newest backup at or before the revision is used, with the segments up to it."""
        self.assertEqual(self.plan(10), (10, []))
        self.assertEqual(self.plan(21), (10, ["10-20", "20-25"]))
        self.assertEqual(self.plan(30), (30, []))
        self.assertEqual(self.plan(31), (30, ["25-40"]))
        self.assertEqual(self.plan(50), (30, ["25-40", "40-50"]))

    def test_outside(self) -> None:
        """Revisions before the first backup and after the last segment are errors."""
        self.assertEqual(
            self.error(9), "the archive has no backup of revision 9 or earlier: its oldest backup is of revision 10"
        )
        self.assertEqual(self.error(51), "revision 51 is not in the archive: its newest revision is 50")
        self.assertRaises(StartError, plan_revision, (), (), 1)

    def test_gap(self) -> None:
        """A gap is an error, which names it; an earlier backup with all changes is used instead."""
        self.segments = (segment(10, 20), segment(45, 50))
        self.assertEqual(
            self.error(48), "revision 48 cannot be restored: the archive has no changes between the revisions 30 and 45"
        )
        self.backups = (backup(10, 1), backup(30, 3, history=2))
        self.segments = (segment(10, 40), segment(32, 50, history=2))
        self.assertEqual(self.plan(35), (10, ["10-40"]))

    def test_histories(self) -> None:
        """Changes are only applied to a backup of the same history; the history of the newest backup is preferred."""
        self.backups = (backup(10, 1), backup(5, 9, history=2))
        self.segments = (segment(10, 40), segment(5, 40, history=2))
        plan = plan_revision(self.backups, self.segments, 20)
        self.assertEqual((plan.backup.history, plan.segments), (2, (self.segments[1],)))

    def test_overlap(self) -> None:
        """Overlapping and repeated segments are used at most once each, and those that reach furthest."""
        self.segments = (segment(10, 20), segment(10, 15), segment(12, 29), segment(12, 29), segment(18, 22))
        self.assertEqual(self.plan(29), (10, ["10-20", "12-29"]))

    def test_time(self) -> None:
        """A time is the newest revision that was archived by then."""
        segments = (segment(10, 20, 2), segment(20, 25, 3), segment(25, 40, 5))
        for time, revision in (
            ("08:01:00", 10),
            ("08:02:30", 20),
            ("08:03:00", 30),
            ("08:04:59", 30),
            ("09:00:00", 40),
        ):
            self.assertEqual(revision_at(self.backups, segments, f"2026-11-29T{time}Z"), revision)
        error = self.assertRaises(StartError, revision_at, self.backups, segments, "2026-11-29T08:00:59Z")
        self.assertEqual(str(error), "the archive begins after 2026-11-29T08:00:59Z")
