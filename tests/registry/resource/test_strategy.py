"""Tests for L{kubetwist.registry.resource.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for


class DriverTests(SynchronousTestCase):
    """Tests for the names of drivers."""

    def test_drivers(self) -> None:
        """Driver names with capital letters give a warning."""
        strategy = strategy_for("resource.k8s.io", "ResourceSlice")
        self.assertEqual(strategy.warnings({"spec": {"driver": "d.x"}}, None), ())
        self.assertEqual(
            strategy.warnings({"spec": {"driver": "D.x"}}, None),
            ('spec.driver: driver names should be lowercase; "D.x" contains uppercase characters',),
        )
