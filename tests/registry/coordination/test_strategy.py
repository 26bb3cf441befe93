"""Tests for L{kubetwist.registry.coordination.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import made, problems


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of Leases."""

    def test_election(self) -> None:
        """Fields of coordinated leader election are dropped from new Leases; stored ones may be changed."""
        obj = made("coordination.k8s.io", "Lease", spec={"strategy": "OldestEmulationVersion", "holderIdentity": "a"})
        self.assertEqual(obj["spec"], {"holderIdentity": "a"})
        strategy = strategy_for("coordination.k8s.io", "Lease")
        for old, is_kept in (({}, False), ({"strategy": "other.example.com/x"}, True)):
            new = {"spec": {"strategy": "OldestEmulationVersion"}}
            strategy.prepare_for_update(new, {"spec": old})
            self.assertEqual("strategy" in new["spec"], is_kept)

    def test_durations(self) -> None:
        """The duration of a Lease is at least a second."""
        [text] = problems("coordination.k8s.io", "Lease", spec={"leaseDurationSeconds": 0})
        self.assertEqual(text, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0")

    def test_created_by_update(self) -> None:
        """A PUT creates a Lease that does not exist; an update requires a resourceVersion."""
        strategy = strategy_for("coordination.k8s.io", "Lease")
        self.assertTrue(strategy.allow_create_on_update)
        self.assertFalse(strategy.allow_unconditional_update)
