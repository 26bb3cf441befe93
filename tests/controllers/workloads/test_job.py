"""Tests for L{kubetwist.controllers.workloads.job} with C{jobindexes} and C{jobpolicies}."""

from __future__ import annotations

from kubetwist.api.times import format_time
from kubetwist.controllers.workloads.job import JobController
from tests.controllers.workloads.jobcase import TRACKING_FINALIZER, JobTestCase


class JobTests(JobTestCase):
    """Jobs whose pods are terminated by the tests."""

    def test_complete(self) -> None:
        """A job creates a pod, counts it when it has succeeded, and completes."""
        self.start(JobController)
        made = self.job()
        (pod,) = self.pods()
        self.assertEqual(pod["metadata"]["finalizers"], [TRACKING_FINALIZER])
        self.assertEqual(pod["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"])
        self.assertEqual(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a")
        status = self.status
        self.assertEqual((status["active"], status["ready"], status["terminating"]), (1, 0, 0))
        self.assertEqual(status["uncountedTerminatedPods"], {})
        self.settle(5)
        self.terminate(pod)
        status = self.status
        self.assertEqual(status["succeeded"], 1)
        self.assertNotIn("active", status)
        reached = ("CompletionsReached", "Reached expected number of succeeded pods")
        self.assertEqual(self.conditions(), {"SuccessCriteriaMet": reached, "Complete": reached})
        self.assertEqual(status["completionTime"], format_time(self.clock.seconds()))
        self.assertEqual(self.events(), ["SuccessfulCreate", "Completed"])
        (pod,) = self.pods("Succeeded")
        self.assertNotIn("finalizers", pod["metadata"])

    def test_parallel(self) -> None:
        """The number of active pods is at most parallelism, and the total number is completions."""
        self.start(JobController)
        self.job(parallelism=2, completions=5)
        total = 0
        while pods := self.pods():
            self.assertLessEqual(len(pods), 2)
            self.terminate(pods[0])
            total += 1
        self.assertEqual((total, self.status["succeeded"]), (5, 5))
        self.assertIn("Complete", self.conditions())

    def test_work_queue(self) -> None:
        """Without completions no pod is created after the first success, and active pods may finish."""
        self.start(JobController)
        self.job(parallelism=3)
        first, *remaining = self.pods()
        self.terminate(first)
        self.assertEqual((len(self.pods()), self.conditions()), (2, {}))
        self.terminate(*remaining)
        self.assertIn("Complete", self.conditions())

    def test_backoff(self) -> None:
        """A failed pod is replaced after ten seconds, then twenty. Beyond backoffLimit the job fails."""
        self.start(JobController)
        self.job(backoffLimit=2)
        for wait in (10, 20):
            self.terminate(self.pods()[0], code=1)
            self.assertEqual(self.pods(), [])
            self.settle(wait - 1)
            self.assertEqual(self.pods(), [])
            self.settle(1)
            self.assertEqual(len(self.pods()), 1)
        self.terminate(self.pods()[0], code=1)
        why = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
        self.assertEqual(self.conditions(), {"FailureTarget": why, "Failed": why})
        self.assertEqual(self.status["failed"], 3)
        self.assertIn("BackoffLimitExceeded", self.events())

    def test_restarts_in_place(self) -> None:
        """With restartPolicy OnFailure restarts of containers count."""
        self.start(JobController)
        self.job("OnFailure", backoffLimit=2)
        (pod,) = self.pods()
        running = {"name": "c", "restartCount": 2, "ready": True, "image": "c", "imageID": "", "state": {}}
        status = {"phase": "Running", "containerStatuses": [running]}
        self.change(
            "pods", pod["metadata"]["name"], lambda obj: obj.update(status=status), "default", subresource="status"
        )
        self.settle()
        self.assertEqual(self.conditions()["Failed"][0], "BackoffLimitExceeded")
        self.assertEqual(self.names("pods", "default"), [])

    def test_deadline(self) -> None:
        """A job that is active longer than its deadline fails, and its pods are deleted."""
        self.start(JobController)
        self.job(activeDeadlineSeconds=30)
        self.settle(29)
        self.assertEqual(self.conditions(), {})
        self.settle(2)
        why = ("DeadlineExceeded", "Job was active longer than specified deadline")
        self.assertEqual(self.conditions(), {"FailureTarget": why, "Failed": why})
        self.assertEqual(self.names("pods", "default"), [])

    def test_waits_for_terminating(self) -> None:
        """A job has FailureTarget until its last pod has terminated, then Failed."""
        self.start(JobController)
        self.job(activeDeadlineSeconds=30)
        name = self.pods()[0]["metadata"]["name"]
        self.change("pods", name, lambda pod: pod["metadata"]["finalizers"].append("x.io/hold"), "default")
        self.settle(31)
        self.assertEqual((list(self.conditions()), self.status["terminating"]), (["FailureTarget"], 1))
        self.change("pods", name, lambda pod: pod["metadata"].pop("finalizers"), "default")
        self.settle(1)
        self.assertEqual((list(self.conditions()), self.status["terminating"]), (["FailureTarget", "Failed"], 0))

    def test_many_pods(self) -> None:
        """Events of many pods are coalesced."""
        controller = self.start(JobController)
        self.job(parallelism=120, completions=120)
        before = controller.queue.metrics.done
        for pod in self.pods()[:30]:
            self.succeed(pod)
            self.settle()
        self.assertEqual(controller.queue.metrics.done, before)
        self.settle(1)
        self.assertEqual((self.status["succeeded"], self.status["active"]), (30, 90))

    def test_suspend(self) -> None:
        """A suspended job has no pods. Resuming resets startTime and counts no failure."""
        self.start(JobController)
        self.job(parallelism=2, completions=2, suspend=True)
        self.assertEqual((self.pods(), self.conditions()["Suspended"]), ([], ("JobSuspended", "Job suspended")))
        self.assertNotIn("startTime", self.status)
        self.settle(60)
        self.change("jobs", "a", lambda job: job["spec"].update(suspend=False), "default", "batch")
        self.settle()
        self.assertEqual((len(self.pods()), self.conditions()), (2, {}))
        self.assertEqual(self.status["startTime"], format_time(self.clock.seconds()))
        self.change("jobs", "a", lambda job: job["spec"].update(suspend=True), "default", "batch")
        self.settle()
        self.assertEqual((self.names("pods", "default"), self.status.get("failed")), ([], None))
        self.assertIn("Resumed", self.events())

    def test_scale_down(self) -> None:
        """When parallelism is decreased, pods are deleted and do not count as failed."""
        self.start(JobController)
        self.job(parallelism=3, completions=3)
        self.change("jobs", "a", lambda job: job["spec"].update(parallelism=1), "default", "batch")
        self.settle()
        self.assertEqual((len(self.pods()), self.status["active"], self.status.get("failed")), (1, 1, None))

    def test_managed_by(self) -> None:
        """A job with another managedBy is ignored."""
        self.start(JobController)
        self.job(managedBy="example.com/mine")
        self.assertEqual((self.pods(), self.status), ([], {}))

    def test_deleted_pod(self) -> None:
        """A deleted pod counts as failed, and is replaced."""
        self.start(JobController)
        self.job()
        self.remove("pods", self.pods()[0]["metadata"]["name"], "default")
        self.settle(11)
        self.assertEqual((len(self.pods()), self.status["failed"]), (1, 1))
        self.assertEqual(len(self.names("pods", "default")), 1)

    def test_replacement_policy(self) -> None:
        """With podReplacementPolicy Failed a terminating pod is replaced after it has terminated."""
        self.start(JobController)
        self.job(node="n", podReplacementPolicy="Failed")
        name = self.pods()[0]["metadata"]["name"]
        self.remove("pods", name, "default", grace=30)
        self.settle(60)
        self.assertEqual((self.pods(), self.status["terminating"]), ([], 1))
        self.terminate(self.find("pods", name, "default"), code=1)
        self.settle(11)
        self.assertEqual((len(self.pods()), self.status["failed"]), (1, 1))

    def test_deleted_job(self) -> None:
        """Pods of a deleted job lose their tracking finalizer."""
        self.start(JobController)
        self.job()
        self.remove("jobs", "a", "default", "batch", propagation="Orphan")
        self.change("jobs", "a", lambda job: job["metadata"].pop("finalizers", None), "default", "batch")
        self.settle()
        self.assertIsNone(self.current())
        (pod,) = self.pods()
        self.assertNotIn("finalizers", pod["metadata"])

    def test_faults(self) -> None:
        """With every tenth write failing, each pod is counted once."""
        self.start(JobController)
        self.job(parallelism=4, completions=20)
        self.backend.fails = lambda number: number % 10 == 0
        self.succeed_all(30)
        self.backend.fails = lambda number: False
        self.settle(60)
        self.assertEqual((self.status["succeeded"], len(self.pods("Succeeded"))), (20, 20))
        self.assertIn("Complete", self.conditions())

    def test_restart(self) -> None:
        """After a kill at any write the job completes, and each pod is counted once."""
        self.start(JobController)
        self.job(parallelism=2, completions=6)
        for count in range(12):
            start = self.backend.commits
            self.backend.fails = lambda number, limit=start + count: number > limit  # type: ignore[misc]
            fails = self.backend.fails
            self.backend.fails = lambda number: False
            for pod in self.pods()[:1]:
                self.succeed(pod)
            self.backend.fails = fails
            self.settle()
            self.backend.fails = lambda number: False
            self.restart(JobController)
        self.succeed_all(6)
        self.assertEqual((self.status["succeeded"], len(self.pods("Succeeded"))), (6, 6))
        self.assertIn("Complete", self.conditions())
