"""Tests for L{kubetwist.registry.core.configmap.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, problems


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of ConfigMaps."""

    def test_immutable(self) -> None:
        """Data that are immutable stay, and are compared as they are."""
        strategy = strategy_for("", "ConfigMap")
        self.assertTrue(strategy.compares_empties({"immutable": True}))
        self.assertFalse(strategy.compares_empties({}))
        found = change_problems("", "ConfigMap", {"immutable": True, "data": {"a": "1"}}, {"immutable": True})
        self.assertEqual([text.partition(":")[0] for text in found], ["data"])

    def test_keys(self) -> None:
        """A key is the name of a file."""
        self.assertEqual(problems("", "ConfigMap", data={"a.b-c_d": ""}), [])
        self.assertEqual(len(problems("", "ConfigMap", data={"a/b": ""})), 1)
