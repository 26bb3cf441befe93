"""Tests for L{kubetwist.registry.batch.validation.cronjob}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import CONTAINER, problems


class CronJobTests(SynchronousTestCase):
    """Tests for the validation of CronJobs."""

    def test_cron_job(self) -> None:
        """A CronJob has a schedule and an existing time zone."""
        template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}}
        spec = {"schedule": "*/5 * * * mon-fri", "timeZone": "Europe/Berlin", "jobTemplate": template}
        self.assertEqual(problems("batch", "CronJob", spec=spec), [])
        self.assertEqual(
            problems("batch", "CronJob", spec={**spec, "schedule": "every day", "timeZone": "Mars/Base"}),
            [
                'spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2: [every day]',
                'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base',
            ],
        )
