"""Tests for L{kubetwist.admission_plugins.policies.metrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.policies.metrics import MutatingPolicyMetrics, PolicyMetrics
from tests.metrics.reading import parse_snapshots


class PolicyTallyTests(SynchronousTestCase):
    """Tests for L{PolicyMetrics}."""

    def test_checks(self) -> None:
        """Evaluations are counted by policy, binding, error and action."""
        metrics = PolicyMetrics()
        metrics.observe("p", "b", "no_error", "allow", 0.1)
        metrics.observe("p", "b", "no_error", "allow", 0.2)
        metrics.observe("p", "b", "no_error", "deny", 0.1)
        counts = {
            dict(labels)["enforcement_action"]: count
            for labels, count in parse_snapshots(*metrics.collect())[
                "apiserver_validating_admission_policy_check_total"
            ].items()
        }
        self.assertEqual(counts, {"allow": 2.0, "deny": 1.0})

    def test_bounded_names(self) -> None:
        """CVE-2020-8552: the number of label combinations is limited."""
        metrics = PolicyMetrics()
        for number in range(6000):
            metrics.observe(f"p{number}", "b", "no_error", "allow", 0.1)
        result = parse_snapshots(*metrics.collect())
        self.assertEqual(len(result["apiserver_validating_admission_policy_check_total"]), 5000)

    def test_mutations(self) -> None:
        """Mutations are counted by policy, binding and the type of the error."""
        metrics = MutatingPolicyMetrics()
        budget = "validation failed due to running out of cost budget, no further validation rules will be run"
        for error in ("", "", "compilation error: no", budget, "no such key: a"):
            metrics.observe("p", "b", error, 0.1)
        counts = {
            dict(labels)["error_type"]: count
            for labels, count in parse_snapshots(*metrics.collect())[
                "apiserver_mutating_admission_policy_check_total"
            ].items()
        }
        expected = {"no_error": 2.0, "compile_error": 1.0, "out_of_budget": 1.0, "invalid_error": 1.0}
        self.assertEqual(counts, expected)
