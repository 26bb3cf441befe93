"""Tests for L{kubetwist.registry.batch.warnings}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.batch.warnings import job_warnings


class JobWarningTests(SynchronousTestCase):
    """Tests for L{job_warnings}."""

    def texts(self, **spec: Any) -> list[str]:
        """What is told of a job."""
        return job_warnings(spec, "spec")

    def test_many_indexes(self) -> None:
        """Very many indexes of which very many run at a time are warned of, if they are indexes."""
        many = {"completions": 100_001, "parallelism": 10_001}
        [text] = self.texts(completionMode="Indexed", **many)
        self.assertTrue(text.startswith("spec: In Indexed Jobs"), text)
        self.assertEqual(self.texts(completionMode="NonIndexed", **many), [])
        self.assertEqual(self.texts(completionMode="Indexed", completions=100_001, parallelism=10_000), [])
        self.assertEqual(self.texts(completionMode="Indexed", completions=100_000, parallelism=10_001), [])

    def test_template(self) -> None:
        """The template is warned of like a pod."""
        [text] = self.texts(template={"spec": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}})
        self.assertTrue(text.startswith("spec.template.spec.nodeSelector[beta.kubernetes.io/os]"), text)
