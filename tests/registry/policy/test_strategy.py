"""Tests for L{kubetwist.registry.policy.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted, made


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of PodDisruptionBudgets."""

    def test_status(self) -> None:
        """A new budget allows no disruption, and has no counts."""
        obj = made("policy", "PodDisruptionBudget", status={"disruptionsAllowed": 5})
        self.assertEqual(
            obj["status"], {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
        )

    def test_names(self) -> None:
        """A name is any path segment."""
        strategy = strategy_for("policy", "PodDisruptionBudget")
        self.assertEqual(list(strategy.validate_name("A_b c", False)), [])
        self.assertEqual(len(strategy.validate_name("a/b", False)), 1)

    def test_spec(self) -> None:
        """The spec is always encoded."""
        self.assertEqual(defaulted("policy", "PodDisruptionBudget")["spec"], {})
