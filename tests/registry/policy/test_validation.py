"""Tests for L{kubetwist.registry.policy.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import problems


class BudgetTests(SynchronousTestCase):
    """Tests for the validation of disruption budgets."""

    def test_budget(self) -> None:
        """A budget has one limit."""
        errors = problems("policy", "PodDisruptionBudget", spec={"minAvailable": 1, "maxUnavailable": 1})
        self.assertEqual(len(errors), 1)
        self.assertIn("minAvailable and maxUnavailable cannot be both set", errors[0])
