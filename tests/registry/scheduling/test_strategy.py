"""Tests for L{kubetwist.registry.scheduling.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, defaulted


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of PriorityClasses."""

    def test_defaults(self) -> None:
        """A class has a value, and the preemption policy PreemptLowerPriority."""
        obj = defaulted("scheduling.k8s.io", "PriorityClass")
        self.assertEqual((obj["value"], obj["preemptionPolicy"]), (0, "PreemptLowerPriority"))
        obj = defaulted("scheduling.k8s.io", "PriorityClass", value=7, preemptionPolicy="Never")
        self.assertEqual((obj["value"], obj["preemptionPolicy"]), (7, "Never"))

    def test_generation(self) -> None:
        """The generation never changes."""
        strategy = strategy_for("scheduling.k8s.io", "PriorityClass")
        self.assertFalse(strategy.generation_changes({"value": 1}, {"value": 2}))

    def test_immutable_value(self) -> None:
        """The value of a class is immutable."""
        errors = change_problems("scheduling.k8s.io", "PriorityClass", {"value": 1}, {"value": 2})
        self.assertEqual([one.partition(":")[0] for one in errors], ["value"])
