"""Tests for L{kubetwist.controllers.workloads.jobpolicies}."""

from __future__ import annotations

from kubetwist.controllers.workloads.job import JobController
from tests.controllers.workloads.jobcase import TRACKING_FINALIZER, JobTestCase


class PolicyTests(JobTestCase):
    """Tests for L{kubetwist.controllers.workloads.jobpolicies}."""

    def test_limit_per_index(self) -> None:
        """
        With backoffLimitPerIndex each index can fail. The job fails when all indexes are finished and one has failed.
        """
        self.start(JobController)
        self.job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
        first, second = sorted(self.pods(), key=self.index)
        self.terminate(first, code=1)
        self.assertEqual(
            self.find("pods", first["metadata"]["name"], "default")["metadata"]["finalizers"], [TRACKING_FINALIZER]
        )
        self.settle(10)
        (again,) = (pod for pod in self.pods() if self.index(pod) == 0)
        self.assertEqual(again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"], "1")
        self.assertNotIn("finalizers", self.find("pods", first["metadata"]["name"], "default")["metadata"])
        self.terminate(again, code=1)
        self.assertEqual((self.status["failedIndexes"], self.conditions()), ("0", {}))
        self.terminate(second)
        self.assertEqual(self.conditions()["Failed"], ("FailedIndexes", "Job has failed indexes"))
        self.assertEqual((self.status["completedIndexes"], self.status["failed"]), ("1", 2))

    def test_max_failed_indexes(self) -> None:
        """More failed indexes than maxFailedIndexes fail the job."""
        self.start(JobController)
        self.job(completionMode="Indexed", completions=5, parallelism=2, backoffLimitPerIndex=0, maxFailedIndexes=1)
        self.terminate(*self.pods(), code=1)
        self.assertEqual(self.conditions()["Failed"][0], "MaxFailedIndexesExceeded")
        self.assertEqual(self.pods(), [])

    def test_success_policy(self) -> None:
        """A success policy finishes the job before all indexes have succeeded. Remaining pods are deleted."""
        self.start(JobController)
        rules = [{"succeededIndexes": "1-2", "succeededCount": 1}]
        self.job(completionMode="Indexed", completions=3, parallelism=3, successPolicy={"rules": rules})
        second = sorted(self.pods(), key=self.index)[1]
        self.terminate(second)
        why = ("SuccessPolicy", "Matched rules at index 0")
        self.assertEqual(self.conditions(), {"SuccessCriteriaMet": why, "Complete": why})
        self.assertEqual((self.pods(), self.status["succeeded"], self.status.get("failed")), ([], 1, None))

    def test_failure_policy(self) -> None:
        """Rules of a pod failure policy ignore failures, count them, or fail the job."""
        self.start(JobController)
        rules = [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}},
        ]
        self.job(backoffLimit=0, podFailurePolicy={"rules": rules})
        self.terminate(self.pods()[0], code=137, condition="DisruptionTarget")
        self.settle(10)
        self.assertEqual((len(self.pods()), self.status.get("failed"), self.conditions()), (1, None, {}))
        (pod,) = self.pods()
        self.terminate(pod, code=42)
        where = f"Container c for pod default/{pod['metadata']['name']}"
        text = f"{where} failed with exit code 42 matching FailJob rule at index 1"
        self.assertEqual(self.conditions()["Failed"], ("PodFailurePolicy", text))
        self.assertEqual(self.status["failed"], 1)

    def test_fail_index(self) -> None:
        """A rule can fail an index regardless of its limit."""
        self.start(JobController)
        rules = [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}]
        policy = {"rules": rules}
        self.job(completionMode="Indexed", completions=1, backoffLimitPerIndex=5, podFailurePolicy=policy)
        self.terminate(self.pods()[0], code=1)
        self.assertEqual(self.conditions(), {})
        self.settle(10)
        self.terminate(self.pods()[0], code=2)
        self.assertEqual(self.conditions()["Failed"][0], "FailedIndexes")
