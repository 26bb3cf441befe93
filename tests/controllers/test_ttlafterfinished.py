"""Tests for L{kubetwist.controllers.ttlafterfinished}."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time
from kubetwist.controllers.ttlafterfinished import TTLAfterFinished
from tests.controllers.harness import START, ControllerTestCase

TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


class TTLAfterFinishedTests(ControllerTestCase):
    """Finished jobs."""

    resources = ("namespaces", "jobs")

    def job(self, name: str, ttl: int | None, finished: float | None = None, kind: str = "Complete") -> None:
        """Create a job that finishes after some seconds, or not."""
        spec: Any = {"template": TEMPLATE, "ttlSecondsAfterFinished": ttl}
        if ttl is None:
            del spec["ttlSecondsAfterFinished"]
        self.make("jobs", name, "default", "batch", spec=spec)
        if finished is not None:
            self.finish(name, finished, kind)

    def finish(self, name: str, seconds: float = 0, kind: str = "Complete") -> None:
        """Finish a job."""
        when = format_time(self.clock.seconds() + seconds)
        before = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}[kind]
        status: Any = {
            "startTime": format_time(START - 100),
            "conditions": [
                {"type": one, "status": "True", "lastTransitionTime": when, "lastProbeTime": when}
                for one in (before, kind)
            ],
        }
        if kind == "Complete":
            status["completionTime"] = when
        self.change("jobs", name, lambda obj: obj.update(status=status), "default", "batch", subresource="status")

    def left(self) -> list[str]:
        """Return the names of jobs that are not being deleted. Deleted ones wait for their pods."""
        found = [self.find("jobs", name, "default", "batch") for name in self.names("jobs", "default", "batch")]
        return [job["metadata"]["name"] for job in found if "deletionTimestamp" not in job["metadata"]]

    def test_deleted(self) -> None:
        """A job is deleted in the foreground when its TTL has expired, not before, and no other job is."""
        self.job("now", 0, 0)
        self.job("failed", 10, 0, "Failed")
        self.job("later", 20)
        self.job("never", None, 0)
        self.start(TTLAfterFinished)
        self.assertEqual(self.left(), ["failed", "later", "never"])
        self.assertEqual(self.find("jobs", "now", "default", "batch")["metadata"]["finalizers"], ["foregroundDeletion"])
        self.settle(9)
        self.assertEqual(self.left(), ["failed", "later", "never"])
        self.settle(1)
        self.assertEqual(self.left(), ["later", "never"])
        self.finish("later")
        self.settle(19)
        self.assertEqual(self.left(), ["later", "never"])
        self.settle(1)
        self.assertEqual(self.left(), ["never"])
        self.settle(100_000)
        self.assertEqual(self.left(), ["never"])

    def test_changed(self) -> None:
        """A changed TTL is effective."""
        self.job("one", 10, 0)
        self.start(TTLAfterFinished)
        self.change("jobs", "one", lambda obj: obj["spec"].update(ttlSecondsAfterFinished=30), "default", "batch")
        self.settle(29)
        self.assertEqual(self.left(), ["one"])
        self.change("jobs", "one", lambda obj: obj["spec"].update(ttlSecondsAfterFinished=1), "default", "batch")
        self.settle()
        self.assertEqual(self.left(), [])

    def test_restart(self) -> None:
        """The TTL expires also while the server is stopped."""
        self.job("one", 10, 0)
        self.start(TTLAfterFinished)
        self.restart()
        self.settle(60)
        self.assertEqual(self.left(), ["one"])
        self.start(TTLAfterFinished)
        self.assertEqual(self.left(), [])

    def test_faults(self) -> None:
        """With every second write failing, all jobs are deleted in the end."""
        for number in range(20):
            self.job(f"j{number}", 5, 0)
        self.backend.fails = lambda number: number % 2 == 0
        self.start(TTLAfterFinished)
        self.settle(15)
        self.assertEqual(self.left(), [])
