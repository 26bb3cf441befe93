"""Tests for L{kubetwist.controllers.workloads.cronjob} and L{kubetwist.controllers.workloads.schedules}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time, seconds_since_epoch, use_clock
from kubetwist.controllers.workloads.cronjob import CronJobController
from tests.controllers.harness import ControllerTestCase


class CronJobTests(ControllerTestCase):
    """CronJobs whose jobs are finished by the tests."""

    resources = ("namespaces", "jobs", "cronjobs", "events")

    def setUp(self) -> None:
        """Create a namespace, at the start of a minute."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.clock.advance(-self.clock.seconds() % 3600)
        self.make("namespaces", "default")

    def cron(self, schedule: str = "*/5 * * * *", **spec: Any) -> Any:
        """Create a CronJob, and let its controller run."""
        pod = {"containers": [{"name": "c", "image": "c"}], "restartPolicy": "Never"}
        job = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": {"spec": pod}}}
        made = self.make("cronjobs", "c", "default", "batch", spec={"schedule": schedule, "jobTemplate": job, **spec})
        self.settle()
        return made

    @property
    def status(self) -> Any:
        """Return the status of the CronJob."""
        return self.find("cronjobs", "c", "default", "batch").get("status", {})

    def jobs(self) -> list[str]:
        """Return the names of the jobs."""
        return self.names("jobs", "default", "batch")

    def finish(self, name: str, kind: str = "Complete") -> None:
        """Finish a job."""
        stamp = format_time(self.clock.seconds())
        reason = {"reason": "r", "message": "", "lastProbeTime": stamp, "lastTransitionTime": stamp}
        first = {"type": "SuccessCriteriaMet" if kind == "Complete" else "FailureTarget", "status": "True", **reason}
        status: dict[str, Any] = {"startTime": stamp, "conditions": [first, {**first, "type": kind}]}
        if kind == "Complete":
            status.update(completionTime=stamp, succeeded=1)
        self.change("jobs", name, lambda job: job.update(status=status), "default", "batch", subresource="status")
        self.settle()

    def events(self) -> list[tuple[str, str]]:
        """Return the types and reasons of the events."""
        self.settle()
        found = [self.find("events", one, "default") for one in self.names("events", "default")]
        return [(one["reason"], one["message"]) for one in found]

    def test_runs(self) -> None:
        """At each time a job is created from the template, named after the minute, and is active until it finishes."""
        self.start(CronJobController)
        made = self.cron()
        self.assertEqual(self.jobs(), [])
        begun = self.clock.seconds()
        self.settle(301)
        name = f"c-{int(begun + 300) // 60}"
        self.assertEqual(self.jobs(), [name])
        job = self.find("jobs", name, "default", "batch")
        meta = job["metadata"]
        self.assertEqual(meta["ownerReferences"][0]["uid"], made["metadata"]["uid"])
        self.assertEqual(meta["labels"]["a"], "b")
        self.assertEqual(
            meta["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"], format_time(begun + 300)
        )
        self.assertEqual([one["name"] for one in self.status["active"]], [name])
        self.assertEqual(self.status["lastScheduleTime"], format_time(begun + 300))
        self.settle(20)
        self.finish(name)
        self.assertNotIn("active", self.status)
        self.assertEqual(self.status["lastSuccessfulTime"], format_time(begun + 321))
        self.assertEqual(
            self.events(),
            [
                ("SuccessfulCreate", f"Created job {name}"),
                ("SawCompletedJob", f"Saw completed job: {name}, condition: Complete"),
            ],
        )
        self.settle(600)
        self.assertEqual(len(self.jobs()), 3)

    def test_zone(self) -> None:
        """The times and the annotation are in the time zone."""
        self.start(CronJobController)
        self.cron("0 9 * * *", timeZone="Asia/Tokyo")
        self.settle(86400)
        (name,) = self.jobs()
        scheduled = self.find("jobs", name, "default", "batch")["metadata"]["annotations"]
        self.assertRegex(scheduled["batch.kubernetes.io/cronjob-scheduled-timestamp"], r"T09:00:00\+09:00$")
        self.assertTrue(self.status["lastScheduleTime"].endswith("T00:00:00Z"))

    def test_suspend(self) -> None:
        """While suspended no job is created. After a resume the last missed time is made up for."""
        self.start(CronJobController)
        self.cron(suspend=True)
        self.settle(3600)
        self.assertEqual(self.jobs(), [])
        self.change("cronjobs", "c", lambda cron: cron["spec"].update(suspend=False), "default", "batch")
        self.settle()
        self.assertEqual(len(self.jobs()), 1)

    def test_missed(self) -> None:
        """
        Times that are missed by more than startingDeadlineSeconds are skipped. Too many missed times record a warning.
        """
        self.start(CronJobController)
        self.cron("* * * * *", suspend=True)
        self.settle(3 * 3600 + 30)

        def on(cron: Any) -> None:
            cron["spec"].update(suspend=False, startingDeadlineSeconds=20)

        self.change("cronjobs", "c", on, "default", "batch")
        self.settle()
        self.assertEqual(self.jobs(), [])
        self.change("cronjobs", "c", lambda cron: cron["spec"].pop("startingDeadlineSeconds"), "default", "batch")
        self.settle()
        self.assertEqual(len(self.jobs()), 1)
        self.assertIn("TooManyMissedTimes", [reason for reason, _ in self.events()])

    def test_forbid(self) -> None:
        """With Forbid there is one active job at a time."""
        self.start(CronJobController)
        self.cron(concurrencyPolicy="Forbid")
        self.settle(610)
        (name,) = self.jobs()
        self.assertIn("JobAlreadyActive", [reason for reason, _ in self.events()])
        self.finish(name)
        self.assertEqual(len(self.jobs()), 2)

    def test_replace(self) -> None:
        """With Replace an active job is deleted before the next one is created."""
        self.start(CronJobController)
        self.cron(concurrencyPolicy="Replace")
        self.settle(310)
        first = self.jobs()
        self.settle(300)
        self.assertEqual(len(self.jobs()), 1)
        self.assertNotEqual(self.jobs(), first)
        self.assertEqual([one["name"] for one in self.status["active"]], self.jobs())

    def test_history(self) -> None:
        """Finished jobs are kept up to the history limits of each kind."""
        self.start(CronJobController)
        self.cron(successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
        self.settle(1)
        seen: list[str] = []
        for number in range(8):
            self.settle(300)
            (name,) = set(self.jobs()) - set(seen)
            seen.append(name)
            self.finish(name, "Complete" if number % 2 else "Failed")
        self.assertEqual(sorted(self.jobs()), sorted([seen[5], seen[6], seen[7]]))

    def test_missing_job(self) -> None:
        """A deleted job is removed from the active jobs."""
        self.start(CronJobController)
        self.cron()
        self.settle(310)
        (name,) = self.jobs()
        self.remove("jobs", name, "default", "batch", propagation="Background")
        self.settle()
        self.assertEqual((self.jobs(), self.status.get("active")), ([], None))
        self.assertIn(("MissingJob", f"Active job went missing: {name}"), self.events())

    def test_faults(self) -> None:
        """With every tenth write failing, there is one job for each time."""
        self.start(CronJobController)
        self.cron(successfulJobsHistoryLimit=100)
        self.backend.fails = lambda number: number % 10 == 0
        begun = self.clock.seconds()
        self.settle(12 * 300 + 60)
        self.backend.fails = lambda number: False
        self.settle(60)
        expected = [f"c-{int(begun + 300 * number) // 60}" for number in range(1, 13)]
        self.assertEqual(self.jobs(), expected)
        self.assertEqual(sorted(one["name"] for one in self.status["active"]), expected)

    def test_restart(self) -> None:
        """After a crash between create and status update, no job is created twice."""
        self.start(CronJobController)
        self.cron()
        start = self.backend.commits
        self.backend.fails = lambda number: number > start + 1
        self.settle(301)
        (name,) = self.jobs()
        self.assertNotIn("lastScheduleTime", self.status)
        self.backend.fails = lambda number: False
        self.restart(CronJobController)
        self.settle(5)
        self.assertEqual(self.jobs(), [name])
        self.assertEqual([one["name"] for one in self.status["active"]], [name])
        self.assertEqual(seconds_since_epoch(self.status["lastScheduleTime"]) % 300, 0)
