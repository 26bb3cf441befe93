"""Tests for L{kubetwist.registry.batch.validation.jobstatus}."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for

SPEC = {"completions": 2, "parallelism": 1, "completionMode": "Indexed"}
BEGUN = "2026-02-03T04:05:06Z"
LATER = "2026-02-03T05:00:00Z"
DONE = [{"type": "SuccessCriteriaMet", "status": "True"}, {"type": "Complete", "status": "True"}]


def problems(status: Any, before: Any = None, **spec: Any) -> list[str]:
    """Return the messages of the errors of an update."""
    obj, old = ({"spec": {**SPEC, **spec}, "status": one or {}} for one in (status, before))
    return [str(cause) for cause in strategy_for("batch", "Job").validate_status_update(obj, old)]


class JobStatusTests(SynchronousTestCase):
    """Tests for L{kubetwist.registry.batch.validation.jobstatus}."""

    def test_lifecycle(self) -> None:
        """A Job starts, runs and completes."""
        running = {"startTime": BEGUN, "active": 1, "ready": 1, "uncountedTerminatedPods": {"succeeded": ["a"]}}
        self.assertEqual(problems(running), [])
        done = {"startTime": BEGUN, "completionTime": LATER, "succeeded": 2, "conditions": DONE}
        self.assertEqual(problems(done, running), [])
        self.assertEqual(problems(done, done), [])

    def test_counts(self) -> None:
        """Counts are not negative, and do not decrease; ready pods do not exceed active ones."""
        self.assertEqual(
            problems({"active": -1, "ready": 3}),
            [
                "status.active: Invalid value: -1: must be greater than or equal to 0",
                "status.ready: Invalid value: 3: cannot set more ready pods than active",
            ],
        )
        before = {"succeeded": 2, "failed": 2}
        self.assertEqual(len(problems({"succeeded": 1, "failed": 1}, before)), 2)
        # An indexed job whose completions equal its parallelism can be scaled down.
        self.assertEqual(len(problems({"succeeded": 1, "failed": 2}, before, parallelism=2)), 0)

    def test_completion(self) -> None:
        """A complete Job has met its success criteria, and has start and completion times in order."""
        self.assertEqual(
            problems({"conditions": DONE[1:]}),
            [
                "status.completionTime: Required value: completionTime is required for Complete jobs",
                "status.conditions: Invalid value: cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true condition",
                "status.startTime: Required value: startTime is required for finished job",
            ],
        )
        late = {"startTime": LATER, "completionTime": BEGUN, "conditions": DONE}
        self.assertIn("must be equal to or after `startTime`", problems(late)[0])
        both = [*DONE, {"type": "Failed", "status": "True"}, {"type": "FailureTarget", "status": "True"}]
        self.assertIn("cannot set Complete=True and Failed=true", problems({"conditions": both})[0])
        self.assertIn("no Complete=True condition", problems({"completionTime": LATER})[0])

    def test_failure(self) -> None:
        """A failed Job had the condition FailureTarget before."""
        failed = [{"type": "Failed", "status": "True"}]
        self.assertIn("FailureTarget=true", problems({"startTime": BEGUN, "conditions": failed})[0])

    def test_finished(self) -> None:
        """A finished Job has no active or uncounted pods."""
        done = {"startTime": BEGUN, "completionTime": LATER, "conditions": DONE}
        left = {**done, "active": 1, "terminating": 1, "uncountedTerminatedPods": {"succeeded": ["a"]}}
        self.assertEqual(
            problems(left),
            [
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                'status.uncountedTerminatedPods: Invalid value: {"Succeeded":["a"],"Failed":null}: '
                "must be empty for finished job",
                "status.terminating: Invalid value: 1: terminating>0 is invalid for finished job",
            ],
        )
        self.assertEqual(problems(left, left), [])

    def test_final_state(self) -> None:
        """The final state of a Job is immutable."""
        done = {"startTime": BEGUN, "completionTime": LATER, "conditions": DONE}
        errors = problems({"completionTime": LATER}, done)
        for text in ("terminal Complete=True", "immutable for unsuspended job", "disable the SuccessCriteriaMet"):
            self.assertTrue(any(text in one for one in errors), text)
        self.assertEqual(problems({}, {"startTime": BEGUN}, suspend=True), [])

    def test_uncounted(self) -> None:
        """An uncounted pod is listed once."""
        pods = {"succeeded": ["a"], "failed": ["a", ""]}
        self.assertEqual(
            problems({"uncountedTerminatedPods": pods}),
            [
                'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
                'status.uncountedTerminatedPods.failed[1]: Invalid value: "": must not be empty',
            ],
        )

    def test_indexes(self) -> None:
        """Lists of indexes ascend, are less than the completions, and belong to indexed Jobs."""
        self.assertEqual(problems({"completedIndexes": "0,2-4,6"}, completions=7), [])
        for text in ("2,1", "0-9", "a", "1-1", "0-1-2", "3-2"):
            self.assertEqual(len(problems({"completedIndexes": text}, completions=7)), 1, text)
        self.assertIn("non-indexed", problems({"completedIndexes": "0"}, completionMode="NonIndexed")[0])
        self.assertIn("backoffLimitPerIndex", problems({"failedIndexes": "0"})[0])
        overlapping = {"completedIndexes": "0-3", "failedIndexes": "3,5"}
        self.assertIn("overlap at index: 3", problems(overlapping, completions=7, backoffLimitPerIndex=1)[0])

    @settings(max_examples=40)
    @given(
        st.dictionaries(st.sampled_from(["active", "succeeded", "failed"]), st.integers(0, 3)),
        st.lists(st.sampled_from(["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"]), unique=True),
    )
    def test_unchanged(self, counts: Any, true: Any) -> None:
        """An update with an unchanged status is valid, unless it reports both success and failure."""
        status = {**counts, "conditions": [{"type": kind, "status": "True"} for kind in true]}
        clashes = len({"Failed", "FailureTarget"}.intersection(true)) if "SuccessCriteriaMet" in true else 0
        self.assertEqual(len(problems(status, status)), clashes)

    def test_success(self) -> None:
        """Success criteria are met before a Job with a success policy completes, not after."""
        complete = {"startTime": BEGUN, "completionTime": LATER, "conditions": [{"type": "Complete", "status": "True"}]}
        (error,) = problems(complete, complete, successPolicy={"rules": []})
        self.assertIn("unless SuccessCriteriaMet=True", error)
        done = {**complete, "conditions": DONE}
        self.assertIn("already has Complete=true conditions", problems(done, complete)[0])

    def test_failed_indexes(self) -> None:
        """The condition FailureTarget is required when a Job fails or its failed indexes change."""
        failed = {"startTime": BEGUN, "conditions": [{"type": "Failed", "status": "True"}]}
        self.assertEqual(problems(failed, failed), [])
        errors = problems({**failed, "failedIndexes": ""}, failed, backoffLimitPerIndex=1)
        self.assertIn("without the FailureTarget=true condition", errors[0])

    def test_decreasing_counts(self) -> None:
        """The count of successes decreases with an indexed Job only; a resumed Job starts again."""
        for mode, expected in (("Indexed", 0), ("NonIndexed", 1)):
            errors = problems({"succeeded": 1}, {"succeeded": 2}, completionMode=mode, completions=1, parallelism=1)
            self.assertEqual(len(errors), expected, mode)
        suspended = {"startTime": BEGUN, "conditions": [{"type": "Suspended", "status": "True"}]}
        resumed = {"startTime": LATER, "conditions": [{"type": "Suspended", "status": "False"}]}
        self.assertEqual(problems(resumed, suspended), [])

    def test_ready(self) -> None:
        """The number of ready pods is optional."""
        errors = problems({"active": -1})
        self.assertEqual(errors, ["status.active: Invalid value: -1: must be greater than or equal to 0"])
