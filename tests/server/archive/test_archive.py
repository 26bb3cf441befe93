# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.archive.archive}."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.api.times import temporary_clock
from kubetwist.server.archive.archive import Archive
from kubetwist.server.archive.retention import RetentionPolicy
from kubetwist.server.backups import Backup, restore
from kubetwist.server.datadir import DataDirectory
from kubetwist.server.errors import StartError
from kubetwist.storage.sqlite import SQLiteStorage
from kubetwist.storage.sqlite.segments import Position
from kubetwist.testing.storage import StorageReactor

#: 2026-11-29T08:00:00Z.
NOW = 1795939200.0
LONG = 10**9


class ArchiveCase(SynchronousTestCase):
    """Has a data directory with an open store, and an archive."""

    def setUp(self) -> None:
        """Open a data directory."""
        self.reactor = StorageReactor()
        self.addCleanup(self.reactor.close)
        self.base = Path(self.mktemp()).absolute()
        self.base.mkdir()
        self.source = self.base / "data"
        data = DataDirectory(self.source, durable=False)
        data.open()
        data.close()
        self.storage = SQLiteStorage(self.source / "store.sqlite", self.reactor, synced=False)
        self.reactor.run(self.storage.open())
        self.addCleanup(lambda: self.reactor.run(self.storage.close()))
        self.archive = Archive(self.base / "archive")
        self.now = NOW
        clock = temporary_clock(lambda: self.now)
        clock.__enter__()
        self.addCleanup(clock.__exit__, None, None, None)

    def write(self, value: bytes) -> int:
        """Write the only key."""
        return self.reactor.run(self.storage.commit([Write("/r/a", value, None)]))

    def back_up(self) -> tuple[Path, Backup]:
        """Take a backup."""
        with self.archive.locked():
            return self.archive.add_backup(self.source, lambda done, total: None)

    def archive_changes(self) -> None:
        """Archive the changes since the last time."""
        position = self.archive.position()
        assert position is not None
        with self.archive.locked():
            self.archive.add_changes(self.source, position)

    def restored(self, revision: int | None = None, time: str | None = None) -> bytes:
        """Return the value of the key as of a revision or a time."""
        plan = self.archive.plan(revision=revision, time=time)
        target = self.base / f"restored-{plan.revision}"
        restore(plan.backup.path, target, 0, replace=True, report=str, changes=plan.segments, revision=plan.revision)
        storage = SQLiteStorage(target / "store.sqlite", self.reactor)
        self.reactor.run(storage.open())
        try:
            return self.reactor.run(storage.read("/r/a")).value
        finally:
            self.reactor.run(storage.close())


class BackupTests(ArchiveCase):
    """Backups and changes of an archive."""

    def test_restore(self) -> None:
        """Each revision and each time since the first backup can be restored."""
        self.write(b"one")
        path, backup = self.back_up()
        self.assertEqual((path.name, backup.damaged), ("backup-20261129T080000Z", 0))
        values = {self.write(value): value for value in (b"two", b"three")}
        self.now += 60
        self.archive_changes()
        values[self.write(b"four")] = b"four"
        self.now += 60
        self.archive_changes()
        for revision, value in values.items():
            self.assertEqual(self.restored(revision), value)
        self.assertEqual(self.restored(), b"four")
        self.assertEqual(self.restored(backup.revision), b"one")
        self.assertEqual(self.restored(time="2026-11-29T08:01:30Z"), b"three")
        self.assertRaises(StartError, self.restored, self.storage.revision + 1)
        self.assertEqual(self.archive.position(), Position(backup.history, self.storage.revision))

    def test_same_second(self) -> None:
        """Backups of the same second have different names."""
        names = [self.back_up()[0].name for _ in range(3)]
        self.assertEqual(names, [f"backup-20261129T080000Z{suffix}" for suffix in ("", "-2", "-3")])

    def test_locked(self) -> None:
        """A second process is refused, and named; what a killed one left is removed."""
        with self.archive.locked():
            error = self.assertRaises(StartError, self.back_up)
        self.assertEqual(str(error), f"another backup into {self.archive.path} is running (process {os.getpid()})")
        (self.archive.path / ".backup-x.1").mkdir()
        (self.archive.changes / ".1-2-3.changes.99").touch()
        path, _ = self.back_up()
        self.assertEqual(sorted(one.name for one in self.archive.path.iterdir()), [".lock", path.name, "changes"])
        self.assertEqual(list(self.archive.changes.iterdir()), [])

    def test_unwritable(self) -> None:
        """A place that cannot be written is an error of one line, and so is an archive without backups."""
        (self.base / "file").touch()
        self.archive = Archive(self.base / "file")
        self.assertIn("cannot write", str(self.assertRaises(StartError, self.back_up)))
        error = self.assertRaises(StartError, Archive(self.base / "nothing").plan)
        self.assertEqual(str(error), f"there is no backup in {self.base}/nothing")

    def test_failure(self) -> None:
        """A failed backup leaves nothing with a final name."""

        def fail(done: int, total: int) -> None:
            raise OSError(28, "No space left on device")

        with self.archive.locked():
            self.assertRaises(StartError, self.archive.add_backup, self.source, fail)
        self.assertEqual(sorted(one.name for one in self.archive.path.iterdir()), [".lock", "changes"])
        self.assertIsNone(self.archive.position())


class PruneTests(ArchiveCase):
    """The removal of old backups and changes."""

    def test_prune(self) -> None:
        """Backups are removed by the policy, and the changes before the oldest one with them."""
        for _ in range(4):
            self.now += 3600
            self.write(b"x")
            self.back_up()
            self.write(b"y")
            self.archive_changes()
        before = self.archive.backups()
        with self.archive.locked():
            removed = self.archive.prune(RetentionPolicy(last=2), LONG)
        self.assertEqual(removed, [one.path for one in before[:2]])
        self.assertEqual(self.archive.backups(), before[2:])
        self.assertEqual([one.after for one in self.archive.segments()], [one.revision for one in before[2:]])
        self.assertEqual(self.restored(before[2].revision + 1), b"y")

    def test_old_changes(self) -> None:
        """Changes are removed when they are too old; newer ones stay."""
        self.write(b"x")
        _, backup = self.back_up()
        for _ in range(3):
            self.write(b"y")
            self.now += 60
            self.archive_changes()
        with self.archive.locked():
            self.archive.prune(RetentionPolicy(), 60)
        self.assertEqual(len(self.archive.segments()), 2)
        error = self.assertRaises(StartError, self.archive.plan, revision=backup.revision + 3)
        self.assertIn("no changes between the revisions", str(error))
        self.assertEqual(self.archive.position(), Position(backup.history, backup.revision))


class VerifyTests(ArchiveCase):
    """The check of an archive."""

    def verify(self) -> list[str]:
        """Return the problems."""
        return self.archive.verify().problems

    def test_verify(self) -> None:
        """Damage to a backup, its manifest or a segment is found, and the number of intact ones is returned."""
        self.assertEqual(self.verify(), [f"there is no backup in {self.archive.path}"])
        self.write(b"x")
        first, _ = self.back_up()
        second, _ = self.back_up()
        self.write(b"y")
        self.archive_changes()
        result = self.archive.verify()
        self.assertEqual((result.backups, result.segments, result.problems), (2, 1, []))
        with (first / "store.sqlite").open("r+b") as file:
            file.seek(5000)
            file.write(b"\xff\xff")
        (second / "backup.json").write_text("{}")
        (segment,) = self.archive.segments()
        segment.path.write_bytes(segment.path.read_bytes()[:-1])
        self.assertEqual(
            self.verify(),
            [
                f"the backup {first} is damaged: store.sqlite has changed",
                f"the backup {second} is damaged: backup.json in it cannot be read",
                f"{segment.path} is damaged: its checksum differs",
            ],
        )
        self.assertEqual([one.path for one in self.archive.backups()], [first])
