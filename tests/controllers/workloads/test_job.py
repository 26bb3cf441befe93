"""Tests for L{kubetwist.controllers.workloads.job}, with what is below it."""

from __future__ import annotations

from typing import Any

from kubetwist.api.times import format_time, use_clock
from kubetwist.controllers.workloads.job import JobController
from kubetwist.controllers.workloads.jobindexes import MOST_INDEXES, format_indexes, parse_indexes, success_rule
from tests.controllers.harness import ControllerTestCase

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


class JobTests(ControllerTestCase):
    """Jobs, whose pods end as the tests say."""

    resources = ("namespaces", "pods", "jobs", "events")

    def setUp(self) -> None:
        """A namespace."""
        super().setUp()
        use_clock(self.clock.seconds)
        self.addCleanup(use_clock)
        self.make("namespaces", "default")

    def job(self, restart: str = "Never", node: str = "", **spec: Any) -> Any:
        """Make a job, and let its controller work."""
        pod = {"containers": [{"name": "c", "image": "c"}], "restartPolicy": restart}
        template = {"spec": {**pod, "nodeName": node} if node else pod}
        made = self.make("jobs", "a", "default", "batch", spec={"template": template, **spec})
        self.settle()
        return made

    def seen(self) -> Any:
        """The job as it is now."""
        return self.find("jobs", "a", "default", "batch")

    @property
    def status(self) -> Any:
        """Its status."""
        return self.seen().get("status", {})

    def conditions(self) -> dict[str, tuple[str, str]]:
        """Its conditions that hold: reason and message."""
        return {
            one["type"]: (one["reason"], one["message"])
            for one in self.status.get("conditions", ())
            if one["status"] == "True"
        }

    def events(self) -> list[str]:
        """The reasons of what was told of it."""
        self.settle()
        found = [self.find("events", one, "default") for one in self.names("events", "default")]
        return [one["reason"] for one in found]

    def pods(self, phase: str = "Pending") -> list[Any]:
        """Pods in a phase that are not on their way out."""
        found = [self.find("pods", name, "default") for name in self.names("pods", "default")]
        return [pod for pod in found if pod["status"]["phase"] == phase and "deletionTimestamp" not in pod["metadata"]]

    def over(self, *pods: Any, code: int = 0, condition: str = "", **status: Any) -> None:
        """Have pods end."""
        stamp = format_time(self.clock.seconds())
        ended = {"name": "c", "state": {"terminated": {"exitCode": code, "finishedAt": stamp}}, "image": "c"}
        ended.update(imageID="c", ready=False, restartCount=0)
        new: dict[str, Any] = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [ended], **status}
        if condition:
            new["conditions"] = [{"type": condition, "status": "True"}]
        for pod in pods:
            name = pod["metadata"]["name"]
            self.change("pods", name, lambda obj: obj.update(status=new), "default", part="status")
        self.settle()

    def index(self, pod: Any) -> int:
        """The index of a pod."""
        return int(pod["metadata"]["annotations"][INDEX])

    # --- ends

    def test_complete(self) -> None:
        """A job makes a pod, counts it when it has ended well, and is complete."""
        self.start(JobController)
        made = self.job()
        (pod,) = self.pods()
        self.assertEqual(pod["metadata"]["finalizers"], [TRACKING])
        self.assertEqual(pod["metadata"]["ownerReferences"][0]["uid"], made["metadata"]["uid"])
        self.assertEqual(pod["metadata"]["labels"]["batch.kubernetes.io/job-name"], "a")
        status = self.status
        self.assertEqual((status["active"], status["ready"], status["terminating"]), (1, 0, 0))
        self.assertEqual(status["uncountedTerminatedPods"], {})
        self.settle(5)
        self.over(pod)
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
        """There are never more pods at a time than parallelism, and as many in all as completions."""
        self.start(JobController)
        self.job(parallelism=2, completions=5)
        total = 0
        while pods := self.pods():
            self.assertLessEqual(len(pods), 2)
            self.over(pods[0])
            total += 1
        self.assertEqual((total, self.status["succeeded"]), (5, 5))
        self.assertIn("Complete", self.conditions())

    def test_work_queue(self) -> None:
        """Without completions no pod is made after the first success, and all that run may end."""
        self.start(JobController)
        self.job(parallelism=3)
        first, *others = self.pods()
        self.over(first)
        self.assertEqual((len(self.pods()), self.conditions()), (2, {}))
        self.over(*others)
        self.assertIn("Complete", self.conditions())

    def test_backoff(self) -> None:
        """A pod that fails is replaced after ten seconds, then twenty; beyond backoffLimit the job fails."""
        self.start(JobController)
        self.job(backoffLimit=2)
        for wait in (10, 20):
            self.over(self.pods()[0], code=1)
            self.assertEqual(self.pods(), [])
            self.settle(wait - 1)
            self.assertEqual(self.pods(), [])
            self.settle(1)
            self.assertEqual(len(self.pods()), 1)
        self.over(self.pods()[0], code=1)
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
        self.change("pods", pod["metadata"]["name"], lambda obj: obj.update(status=status), "default", part="status")
        self.settle()
        self.assertEqual(self.conditions()["Failed"][0], "BackoffLimitExceeded")
        self.assertEqual(self.names("pods", "default"), [])

    def test_deadline(self) -> None:
        """A job that is active for longer than its deadline fails, and its pods go."""
        self.start(JobController)
        self.job(activeDeadlineSeconds=30)
        self.settle(29)
        self.assertEqual(self.conditions(), {})
        self.settle(2)
        why = ("DeadlineExceeded", "Job was active longer than specified deadline")
        self.assertEqual(self.conditions(), {"FailureTarget": why, "Failed": why})
        self.assertEqual(self.names("pods", "default"), [])

    def test_waits_for_terminating(self) -> None:
        """A job is failed when its last pod has ended only; until then it is told that it will be."""
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
        """The ends of very many pods are counted together, soon."""
        controller = self.start(JobController)
        self.job(parallelism=120, completions=120)
        before = controller.queue.metrics.done
        for pod in self.pods()[:30]:
            self.succeed(pod)
            self.settle()
        self.assertEqual(controller.queue.metrics.done, before)
        self.settle(1)
        self.assertEqual((self.status["succeeded"], self.status["active"]), (30, 90))

    # --- changes

    def test_suspend(self) -> None:
        """A suspended job has no pods; when it goes on, its time begins anew, and nothing counts as failed."""
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

    def test_fewer(self) -> None:
        """When parallelism becomes less, pods go, and do not count as failed."""
        self.start(JobController)
        self.job(parallelism=3, completions=3)
        self.change("jobs", "a", lambda job: job["spec"].update(parallelism=1), "default", "batch")
        self.settle()
        self.assertEqual((len(self.pods()), self.status["active"], self.status.get("failed")), (1, 1, None))

    def test_managed_by_others(self) -> None:
        """A job that others manage is left alone."""
        self.start(JobController)
        self.job(managedBy="example.com/mine")
        self.assertEqual((self.pods(), self.status), ([], {}))

    def test_deleted_pod(self) -> None:
        """A pod that is deleted counts as failed, and is replaced."""
        self.start(JobController)
        self.job()
        self.remove("pods", self.pods()[0]["metadata"]["name"], "default")
        self.settle(11)
        self.assertEqual((len(self.pods()), self.status["failed"]), (1, 1))
        self.assertEqual(len(self.names("pods", "default")), 1)

    def test_replacement_policy(self) -> None:
        """With podReplacementPolicy Failed a pod on its way out is replaced when it has ended only."""
        self.start(JobController)
        self.job(node="n", podReplacementPolicy="Failed")
        name = self.pods()[0]["metadata"]["name"]
        self.remove("pods", name, "default", grace=30)
        self.settle(60)
        self.assertEqual((self.pods(), self.status["terminating"]), ([], 1))
        self.over(self.find("pods", name, "default"), code=1)
        self.settle(11)
        self.assertEqual((len(self.pods()), self.status["failed"]), (1, 1))

    def test_deleted_job(self) -> None:
        """The pods of a job that is gone do not wait to be counted."""
        self.start(JobController)
        self.job()
        self.remove("jobs", "a", "default", "batch", propagation="Orphan")
        self.change("jobs", "a", lambda job: job["metadata"].pop("finalizers", None), "default", "batch")
        self.settle()
        self.assertIsNone(self.seen())
        (pod,) = self.pods()
        self.assertNotIn("finalizers", pod["metadata"])

    # --- indexes

    def test_indexed(self) -> None:
        """An indexed job has one success for each index; pods know theirs."""
        self.start(JobController)
        self.job(completionMode="Indexed", completions=3, parallelism=2)
        pods = self.pods()
        self.assertEqual(sorted(map(self.index, pods)), [0, 1])
        (second,) = (pod for pod in pods if self.index(pod) == 1)
        self.assertEqual(second["metadata"]["labels"][INDEX], "1")
        self.assertTrue(second["metadata"]["name"].startswith("a-1-"))
        self.assertEqual(second["spec"]["hostname"], "a-1")
        (variable,) = second["spec"]["containers"][0]["env"]
        self.assertEqual(variable["name"], "JOB_COMPLETION_INDEX")
        self.assertEqual(variable["valueFrom"]["fieldRef"]["fieldPath"], f"metadata.labels['{INDEX}']")
        self.over(second)
        self.assertEqual(self.status["completedIndexes"], "1")
        self.assertEqual(sorted(map(self.index, self.pods())), [0, 2])
        self.over(*self.pods())
        self.assertEqual((self.status["completedIndexes"], self.status["succeeded"]), ("0-2", 3))
        self.assertIn("Complete", self.conditions())

    def test_limit_per_index(self) -> None:
        """Each index may fail so often by itself; the job fails when all are through and one has failed."""
        self.start(JobController)
        self.job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
        first, second = sorted(self.pods(), key=self.index)
        self.over(first, code=1)
        self.assertEqual(self.find("pods", first["metadata"]["name"], "default")["metadata"]["finalizers"], [TRACKING])
        self.settle(10)
        (again,) = (pod for pod in self.pods() if self.index(pod) == 0)
        self.assertEqual(again["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"], "1")
        self.assertNotIn("finalizers", self.find("pods", first["metadata"]["name"], "default")["metadata"])
        self.over(again, code=1)
        self.assertEqual((self.status["failedIndexes"], self.conditions()), ("0", {}))
        self.over(second)
        self.assertEqual(self.conditions()["Failed"], ("FailedIndexes", "Job has failed indexes"))
        self.assertEqual((self.status["completedIndexes"], self.status["failed"]), ("1", 2))

    def test_most_failed_indexes(self) -> None:
        """More failed indexes than maxFailedIndexes end the job."""
        self.start(JobController)
        self.job(completionMode="Indexed", completions=5, parallelism=2, backoffLimitPerIndex=0, maxFailedIndexes=1)
        self.over(*self.pods(), code=1)
        self.assertEqual(self.conditions()["Failed"][0], "MaxFailedIndexesExceeded")
        self.assertEqual(self.pods(), [])

    def test_success_policy(self) -> None:
        """A success policy ends the job before all indexes are done; the others' pods go."""
        self.start(JobController)
        rules = [{"succeededIndexes": "1-2", "succeededCount": 1}]
        self.job(completionMode="Indexed", completions=3, parallelism=3, successPolicy={"rules": rules})
        second = sorted(self.pods(), key=self.index)[1]
        self.over(second)
        why = ("SuccessPolicy", "Matched rules at index 0")
        self.assertEqual(self.conditions(), {"SuccessCriteriaMet": why, "Complete": why})
        self.assertEqual((self.pods(), self.status["succeeded"], self.status.get("failed")), ([], 1, None))

    def test_texts_of_indexes(self) -> None:
        """Indexes are written as ranges where three or more follow each other."""
        for text, indexes in (("", set()), ("0,1", {0, 1}), ("0-2,4", {0, 1, 2, 4}), ("3", {3})):
            self.assertEqual((format_indexes(indexes), parse_indexes(text, 10)), (text, indexes))
        self.assertEqual(parse_indexes("0-99999999999999999,x", 2), {0, 1})

    def test_many_indexes(self) -> None:
        """Of thousands of millions of indexes not each is kept."""
        many = 2_000_000_000
        self.assertEqual(len(parse_indexes(f"0-{many - 1}", many)), MOST_INDEXES)
        rule = {"succeededIndexes": f"0-3,7-{many - 1}", "succeededCount": 3}
        policy: Any = {"rules": [rule]}
        self.assertIsNone(success_rule(policy, {1, 4, 6, many - 1}, many))
        self.assertEqual(success_rule(policy, {1, 3, 5, 8}, many), "Matched rules at index 0")
        del rule["succeededCount"]
        self.assertIsNone(success_rule(policy, {1, 3, 5, 8}, many))
        self.assertEqual(success_rule(policy, {0, 1, 2, 3, 5, 7}, 8), "Matched rules at index 0")

    # --- policies

    def test_failure_policy(self) -> None:
        """The rules of a pod failure policy ignore failures, count them, or fail the job."""
        self.start(JobController)
        rules = [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            {"action": "FailJob", "onExitCodes": {"containerName": "c", "operator": "In", "values": [42]}},
        ]
        self.job(backoffLimit=0, podFailurePolicy={"rules": rules})
        self.over(self.pods()[0], code=137, condition="DisruptionTarget")
        self.settle(10)
        self.assertEqual((len(self.pods()), self.status.get("failed"), self.conditions()), (1, None, {}))
        (pod,) = self.pods()
        self.over(pod, code=42)
        where = f"Container c for pod default/{pod['metadata']['name']}"
        text = f"{where} failed with exit code 42 matching FailJob rule at index 1"
        self.assertEqual(self.conditions()["Failed"], ("PodFailurePolicy", text))
        self.assertEqual(self.status["failed"], 1)

    def test_fail_index(self) -> None:
        """A rule may fail an index whatever its limit."""
        self.start(JobController)
        rules = [{"action": "FailIndex", "onExitCodes": {"operator": "NotIn", "values": [1]}}]
        policy = {"rules": rules}
        self.job(completionMode="Indexed", completions=1, backoffLimitPerIndex=5, podFailurePolicy=policy)
        self.over(self.pods()[0], code=1)
        self.assertEqual(self.conditions(), {})
        self.settle(10)
        self.over(self.pods()[0], code=2)
        self.assertEqual(self.conditions()["Failed"][0], "FailedIndexes")

    # --- adversity

    def succeed(self, pod: Any) -> None:
        """Have a pod succeed."""
        status = {"phase": "Succeeded"}
        self.change("pods", pod["metadata"]["name"], lambda obj: obj.update(status=status), "default", part="status")

    def run_to_the_end(self, rounds: int) -> None:
        """Have all pods end, whenever there are some."""
        for _ in range(rounds):
            fails, self.backend.fails = self.backend.fails, lambda number: False
            for pod in self.pods()[:3]:
                self.succeed(pod)
            self.backend.fails = fails
            self.settle(20)

    def test_faults(self) -> None:
        """With every tenth write failing each pod is counted once."""
        self.start(JobController)
        self.job(parallelism=4, completions=20)
        self.backend.fails = lambda number: number % 10 == 0
        self.run_to_the_end(30)
        self.backend.fails = lambda number: False
        self.settle(60)
        self.assertEqual((self.status["succeeded"], len(self.pods("Succeeded"))), (20, 20))
        self.assertIn("Complete", self.conditions())

    def test_restart(self) -> None:
        """Killed after any write, the job is done in the end, and each pod counted once."""
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
        self.run_to_the_end(6)
        self.assertEqual((self.status["succeeded"], len(self.pods("Succeeded"))), (6, 6))
        self.assertIn("Complete", self.conditions())
