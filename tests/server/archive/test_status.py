# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.archive.status}."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.archive.status import BackupStatus


class StatusTests(SynchronousTestCase):
    """The status file and the metrics."""

    def setUp(self) -> None:
        """Choose paths."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.path, self.metrics = self.folder / "status.json", self.folder / "kubetwist.prom"

    def test_round(self) -> None:
        """A status is read as it was written."""
        status = BackupStatus(last_success_timestamp_seconds=1.5, last_revision=7, last_error="é")
        status.write(self.path, None)
        self.assertEqual(BackupStatus.read(self.path), status)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["status.json"])

    def test_metrics(self) -> None:
        """The metrics can be parsed, and another user can read their file."""
        BackupStatus(last_size_bytes=123456789, failures_total=2).write(self.path, self.metrics)
        families = {one.name: one for one in text_string_to_metric_families(self.metrics.read_text())}
        self.assertEqual(families["kubetwist_backup_last_size_bytes"].samples[0].value, 123456789)
        self.assertEqual(families["kubetwist_backup_failures"].type, "counter")
        self.assertEqual(families["kubetwist_backup_failures"].samples[0].value, 2)
        self.assertEqual(self.metrics.stat().st_mode & 0o777, 0o644)

    def test_unreadable(self) -> None:
        """A missing or damaged status is a new one, and values of other types are ignored."""
        self.assertEqual(BackupStatus.read(self.path), BackupStatus())
        for content in ("", "[]", "{", '{"last_revision": "x", "last_error": 3, "backups": null}'):
            self.path.write_text(content)
            self.assertEqual(BackupStatus.read(self.path), BackupStatus())
