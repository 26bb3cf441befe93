"""Tests of L{kubetwist.registry.core.configmap.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import change_problems, problems


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of ConfigMaps."""

    def test_immutable(self) -> None:
        """Immutable data cannot be changed, and are compared including empty maps."""
        strategy = strategy_for("", "ConfigMap")
        self.assertTrue(strategy.compares_empties({"immutable": True}))
        self.assertFalse(strategy.compares_empties({}))
        found = change_problems("", "ConfigMap", {"immutable": True, "data": {"a": "1"}}, {"immutable": True})
        self.assertEqual([text.partition(":")[0] for text in found], ["data"])

    def test_keys(self) -> None:
        """A key must be a valid file name."""
        self.assertEqual(problems("", "ConfigMap", data={"a.b-c_d": ""}), [])
        self.assertEqual(len(problems("", "ConfigMap", data={"a/b": ""})), 1)
