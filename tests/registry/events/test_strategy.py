"""Tests for L{kubetwist.registry.events.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of events of events.k8s.io."""

    def test_name(self) -> None:
        """A name is a DNS subdomain, unlike in the core group."""
        new, old = strategy_for("events.k8s.io", "Event"), strategy_for("", "Event")
        self.assertEqual(len(new.validate_name("A_b", False)), 1)
        self.assertEqual(list(old.validate_name("A_b", False)), [])
