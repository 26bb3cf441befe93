"""Tests for L{kubetwist.controllers.workloads.jobindexes}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.workloads.job import JobController
from kubetwist.controllers.workloads.jobindexes import MAX_INDEXES, format_indexes, parse_indexes, success_rule
from tests.controllers.workloads.jobcase import INDEX, JobTestCase


class IndexTests(JobTestCase):
    """Tests for L{kubetwist.controllers.workloads.jobindexes}."""

    def test_indexed(self) -> None:
        """An indexed job needs one success for each index. Pods have their index."""
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
        self.terminate(second)
        self.assertEqual(self.status["completedIndexes"], "1")
        self.assertEqual(sorted(map(self.index, self.pods())), [0, 2])
        self.terminate(*self.pods())
        self.assertEqual((self.status["completedIndexes"], self.status["succeeded"]), ("0-2", 3))
        self.assertIn("Complete", self.conditions())

    def test_format(self) -> None:
        """Three or more consecutive indexes are formatted as a range."""
        for text, indexes in (("", set()), ("0,1", {0, 1}), ("0-2,4", {0, 1, 2, 4}), ("3", {3})):
            self.assertEqual((format_indexes(indexes), parse_indexes(text, 10)), (text, indexes))
        self.assertEqual(parse_indexes("0-99999999999999999,x", 2), {0, 1})

    def test_many_indexes(self) -> None:
        """The number of parsed indexes is bounded."""
        many = 2_000_000_000
        self.assertEqual(len(parse_indexes(f"0-{many - 1}", many)), MAX_INDEXES)
        rule = {"succeededIndexes": f"0-3,7-{many - 1}", "succeededCount": 3}
        policy: Any = {"rules": [rule]}
        self.assertIsNone(success_rule(policy, {1, 4, 6, many - 1}, many))
        self.assertEqual(success_rule(policy, {1, 3, 5, 8}, many), "Matched rules at index 0")
        del rule["succeededCount"]
        self.assertIsNone(success_rule(policy, {1, 3, 5, 8}, many))
        self.assertEqual(success_rule(policy, {0, 1, 2, 3, 5, 7}, 8), "Matched rules at index 0")
