"""Tests for L{kubetwist.registry.batch.printers}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, TEMPLATE, made


class JobTests(SynchronousTestCase):
    """Tests for rows of Jobs and CronJobs."""

    def test_job(self) -> None:
        """A Job shows its completions and duration."""
        status: dict[str, Any] = {"startTime": "2026-01-01T00:01:00Z", "succeeded": 1}
        obj = made({"spec": {"completions": 2}, "status": status})
        self.assertEqual(cells("batch", "Job", obj, NOW)[1:5], ["Running", "1/2", "2m", "3m"])
        status["completionTime"] = "2026-01-01T00:01:30Z"
        status["conditions"] = [{"type": "Complete", "status": "True"}]
        self.assertEqual(cells("batch", "Job", obj, NOW)[1:5], ["Complete", "1/2", "30s", "3m"])
        queue = made({"spec": {"parallelism": 4}})
        self.assertEqual(cells("batch", "Job", queue, NOW)[1:4], ["Running", "0/1 of 4", ""])

    def test_job_states(self) -> None:
        """A deletion has precedence over a suspension, but not over the end of a Job."""
        deleted = {"deletionTimestamp": "2026-01-01T00:00:01Z"}
        for kind, state in (("Failed", "Failed"), ("Suspended", "Terminating")):
            obj = made({"status": {"conditions": [{"type": kind, "status": "True"}]}}, **deleted)
            self.assertEqual(cells("batch", "Job", obj, NOW)[1], state)

    def test_cron_job(self) -> None:
        """A CronJob shows the time of its last run."""
        obj = made(
            {
                "spec": {"schedule": "@daily", "suspend": False, "jobTemplate": {"spec": {"template": TEMPLATE}}},
                "status": {"active": [{}], "lastScheduleTime": "2026-01-01T00:02:00Z"},
            }
        )
        self.assertEqual(
            cells("batch", "CronJob", obj, NOW)[1:],
            ["@daily", "<none>", "False", 1, "60s", "3m", "a,b", "a:1,b:2", "<none>"],
        )
