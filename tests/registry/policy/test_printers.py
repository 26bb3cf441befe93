"""Tests for L{kubetwist.registry.policy.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class BudgetTests(SynchronousTestCase):
    """Tests for rows of disruption budgets."""

    def test_disruption_budget(self) -> None:
        """Limits are numbers or percentages."""
        obj = made({"spec": {"maxUnavailable": "25%"}, "status": {"disruptionsAllowed": 1}})
        self.assertEqual(cells("policy", "PodDisruptionBudget", obj, NOW), ["x", "N/A", "25%", 1, "3m"])
