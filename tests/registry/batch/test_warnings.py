"""Tests for L{kubetwist.registry.batch.warnings}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.batch.warnings import job_warnings


class JobWarningTests(SynchronousTestCase):
    """Tests for L{job_warnings}."""

    def job_warnings_of(self, **spec: Any) -> list[str]:
        """Return the warnings of a Job."""
        return job_warnings(spec, "spec", FeatureGates())

    def test_many_indexes(self) -> None:
        """Many indexes with high parallelism give a warning for indexed Jobs."""
        many = {"completions": 100_001, "parallelism": 10_001}
        [text] = self.job_warnings_of(completionMode="Indexed", **many)
        self.assertTrue(text.startswith("spec: In Indexed Jobs"), text)
        self.assertEqual(self.job_warnings_of(completionMode="NonIndexed", **many), [])
        self.assertEqual(self.job_warnings_of(completionMode="Indexed", completions=100_001, parallelism=10_000), [])
        self.assertEqual(self.job_warnings_of(completionMode="Indexed", completions=100_000, parallelism=10_001), [])

    def test_template(self) -> None:
        """The pod template gives the same warnings as a pod."""
        [text] = self.job_warnings_of(template={"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}})
        self.assertTrue(text.startswith("spec.template.spec.nodeSelector[beta.kubernetes.io/os]"), text)
