"""Tests for L{kubetwist.registry.batch.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import CONTAINER, defaulted


class CreationTests(SynchronousTestCase):
    """Tests for C{prepare_for_create} of jobs."""

    def test_job_selector(self) -> None:
        """A Job selects pods by its uid, and has the same labels."""
        job = defaulted("batch", "Job", spec={"template": {"spec": {"containers": [dict(CONTAINER)]}}})
        job["metadata"]["uid"] = "u"
        strategy_for("batch", "Job").prepare_for_create(job)
        self.assertEqual(job["spec"]["selector"], {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        labels = {
            "controller-uid": "u",
            "batch.kubernetes.io/controller-uid": "u",
            "job-name": "x",
            "batch.kubernetes.io/job-name": "x",
        }
        self.assertEqual(job["spec"]["template"]["metadata"]["labels"], labels)
        self.assertNotIn("labels", job["metadata"])
        strategy_for("batch", "Job").default_on_read(job)
        self.assertEqual(job["metadata"]["labels"], labels)

    def test_job_labels_follow_the_template(self) -> None:
        """A Job whose labels come from its template also has the labels that are generated in it."""
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [dict(CONTAINER)]}}
        job = defaulted("batch", "Job", spec={"template": template})
        job["metadata"]["uid"] = "u"
        strategy_for("batch", "Job").prepare_for_create(job)
        self.assertEqual(job["metadata"]["labels"]["job-name"], "x")
