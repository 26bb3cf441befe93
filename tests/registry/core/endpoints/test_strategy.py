"""Tests of L{kubetwist.registry.core.endpoints.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import defaulted


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of Endpoints."""

    def test_protocol(self) -> None:
        """The default protocol of ports is TCP."""
        subsets = [{"ports": [{"port": 1}, {"port": 2, "protocol": "UDP"}]}, {}]
        obj = defaulted("", "Endpoints", subsets=subsets)
        self.assertEqual([port["protocol"] for port in obj["subsets"][0]["ports"]], ["TCP", "UDP"])

    def test_created_by_update(self) -> None:
        """A PUT creates missing Endpoints."""
        self.assertTrue(strategy_for("", "Endpoints").allow_create_on_update)
