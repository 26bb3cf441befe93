"""
The state of scheduled backups for monitoring: F{status.json}, and metrics for node_exporter's textfile collector.

@see: prometheus/node_exporter, C{collector/textfile.go}.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from attrs import asdict, define, fields

from ..files import write_file

#: Name, type and help of each metric; the names are fields of L{BackupStatus}.
_METRICS: Final = (
    ("last_attempt_timestamp_seconds", "gauge", "Time of the last attempt to take a backup."),
    ("last_success_timestamp_seconds", "gauge", "Time of the last backup that was taken and verified."),
    ("last_duration_seconds", "gauge", "Duration of the last successful backup with its verification."),
    ("last_size_bytes", "gauge", "Size of the last backup."),
    ("last_revision", "gauge", "Revision of the last backup."),
    ("last_damaged_objects", "gauge", "Objects of the last backup whose values differ from their checksums."),
    ("failures_total", "counter", "Attempts to take a backup that failed."),
    ("backups", "gauge", "Backups that are kept."),
    ("changes_last_success_timestamp_seconds", "gauge", "Time at which changes were last archived."),
    ("changes_failures_total", "counter", "Attempts to archive changes that failed."),
    ("archived_revision", "gauge", "Newest revision that can be restored."),
)
PREFIX: Final = "kubetwist_backup_"


@define
class BackupStatus:
    """
    The results of the last runs. Times are POSIX seconds, 0 for never.

    @ivar last_error: The error of the last attempt; empty after a success.
    """

    last_attempt_timestamp_seconds: float = 0
    last_success_timestamp_seconds: float = 0
    last_duration_seconds: float = 0
    last_size_bytes: int = 0
    last_revision: int = 0
    last_damaged_objects: int = 0
    failures_total: int = 0
    backups: int = 0
    changes_last_success_timestamp_seconds: float = 0
    changes_failures_total: int = 0
    archived_revision: int = 0
    last_error: str = ""

    @classmethod
    def read(cls, path: Path) -> BackupStatus:
        """Return the status of a file; a new one if there is none, or if it cannot be read."""
        try:
            content: Any = json.loads(path.read_bytes())
            status = cls()
            for field in fields(cls):
                value = content.get(field.name, getattr(status, field.name))
                if isinstance(value, str) is (field.name == "last_error") and isinstance(value, str | int | float):
                    setattr(status, field.name, value)
        except (OSError, ValueError, AttributeError):
            return cls()
        return status

    def write(self, path: Path, metrics: Path | None) -> None:
        """
        Write the status and the metrics, each atomically.

        @param path: The status file.
        @param metrics: The file of metrics, whose name must end with C{.prom}; L{None} for none.
        @raise OSError: A file cannot be written.
        """
        write_file(path, json.dumps(asdict(self), indent=2).encode() + b"\n", 0o600, durable=False)
        if metrics is not None:
            # node_exporter runs as another user.
            write_file(metrics, self.as_metrics().encode(), 0o644, durable=False)

    def as_metrics(self) -> str:
        """Return the metrics in Prometheus' text format."""
        lines = []
        for name, kind, text in _METRICS:
            value = getattr(self, name)
            lines += [
                f"# HELP {PREFIX}{name} {text}",
                f"# TYPE {PREFIX}{name} {kind}",
                f"{PREFIX}{name} {value!r}",
            ]
        return "\n".join(lines) + "\n"
