"""Tests for L{kubetwist.server.diagnosis.disk}."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.disk import DiskFacts, file_system, judge_disk, percentile, read_disk
from kubetwist.server.diagnosis.findings import Severity

GOOD = DiskFacts("/data", "ext4", 10 << 30, 1_000_000, (0.001,) * 50)
MOUNTS = r"""
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /mnt/with\040space rw shared:1 - nfs4 server:/x rw
31 22 0:41 / /mnt rw - tmpfs tmpfs rw
broken
"""


class JudgeTests(SynchronousTestCase):
    """L{judge_disk}."""

    def severities(self, facts: DiskFacts, *, durable: bool = True) -> dict[str, Severity]:
        """Return the severities by identifier."""
        return {one.id: one.severity for one in judge_disk(facts, durable=durable)}

    def test_good(self) -> None:
        """A good disk has no problem; syncs do not matter for a store elsewhere."""
        self.assertEqual(set(self.severities(GOOD).values()), {Severity.OK})
        self.assertEqual(set(self.severities(GOOD, durable=False)), {"disk/space", "disk/inodes"})
        self.assertNotIn("disk/inodes", self.severities(evolve(GOOD, inodes=None)))

    def test_space(self) -> None:
        """Little space is a warning, almost none an error; the same for inodes."""
        for free, expected in ((500 << 20, Severity.WARNING), (1 << 20, Severity.ERROR)):
            self.assertIs(self.severities(evolve(GOOD, free=free))["disk/space"], expected)
        for inodes, expected in ((5000, Severity.WARNING), (0, Severity.ERROR)):
            self.assertIs(self.severities(evolve(GOOD, inodes=inodes))["disk/inodes"], expected)

    def test_file_system(self) -> None:
        """A file system of the network is an error, one in memory a warning."""
        for kind, expected in (("nfs4", Severity.ERROR), ("tmpfs", Severity.WARNING), ("", Severity.OK)):
            self.assertIs(self.severities(evolve(GOOD, kind=kind))["disk/filesystem"], expected)

    def test_fsync(self) -> None:
        """Slow syncs are a note or a warning, impossible ones a note, failed ones a warning."""
        slow = (*[0.001] * 90, *[0.020] * 10)
        for syncs, expected in (
            (slow, Severity.NOTE),
            ((0.1,) * 10, Severity.WARNING),
            ((0.000001,) * 10, Severity.NOTE),
            ((), Severity.WARNING),
        ):
            self.assertIs(self.severities(evolve(GOOD, syncs=syncs))["disk/fsync"], expected, syncs)
        (found,) = [
            one for one in judge_disk(evolve(GOOD, syncs=(), problem="Read-only"), durable=True) if "fsync" in one.id
        ]
        self.assertIn("Read-only", found.message)

    def test_percentile(self) -> None:
        """Percentiles of few values are values."""
        self.assertEqual(percentile((1.0,), 0.99), 1.0)
        self.assertEqual(percentile(tuple(map(float, range(100))), 0.5), 50.0)


class ReadTests(SynchronousTestCase):
    """Reading of facts."""

    def test_read(self) -> None:
        """Facts of a directory are read, and nothing remains in it."""
        folder = Path(self.mktemp())
        folder.mkdir()
        facts = read_disk(folder)
        self.assertGreater(len(facts.syncs), 0)
        self.assertEqual(list(facts.syncs), sorted(facts.syncs))
        self.assertGreater(facts.free, 0)
        self.assertEqual(list(folder.iterdir()), [])
        self.assertEqual(read_disk(folder, measure=False).syncs, ())

    def test_unwritable(self) -> None:
        """A directory that cannot be written is reported."""
        facts = read_disk(Path("/proc"))
        self.assertEqual(facts.syncs, ())
        self.assertNotEqual(facts.problem, "")

    def test_file_system(self) -> None:
        """The mount with the longest path decides."""
        mounts = Path(self.mktemp())
        mounts.write_text(MOUNTS)
        for path, expected in (("/mnt/with space/a", "nfs4"), ("/mnt/a", "tmpfs"), ("/mnt2", "ext4")):
            self.assertEqual(file_system(Path(path), mounts), expected, path)
        self.assertEqual(file_system(Path("/"), Path("/nonexistent")), "")
