"""Tests of L{kubetwist.registry.core.node.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, defaulted, made


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of Nodes."""

    def test_allocatable(self) -> None:
        """The default of allocatable is the capacity."""
        capacity = {"cpu": "2"}
        self.assertEqual(defaulted("", "Node", status={"capacity": capacity})["status"]["allocatable"], capacity)
        status = {"capacity": capacity, "allocatable": {"cpu": "1"}}
        self.assertEqual(defaulted("", "Node", status=status)["status"]["allocatable"], {"cpu": "1"})

    def test_ranges(self) -> None:
        """The fields podCIDR and podCIDRs are synchronized."""
        for given, one, many in (
            ({"podCIDR": "10.0.0.0/24"}, "10.0.0.0/24", ["10.0.0.0/24"]),
            ({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, "10.0.0.0/24", ["10.0.0.0/24", "fd00::/64"]),
            ({"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.0.0.0/24"]}, "10.1.0.0/24", ["10.1.0.0/24"]),
        ):
            spec = defaulted("", "Node", spec=given)["spec"]
            self.assertEqual((spec["podCIDR"], spec["podCIDRs"]), (one, many))

    def test_configuration(self) -> None:
        """The removed field configSource is dropped unless the stored node has it."""
        given = {"spec": {"configSource": {}}, "status": {"config": {}}}
        obj = made("", "Node", **copy(given))
        self.assertNotIn("configSource", obj["spec"])
        self.assertNotIn("config", obj["status"])
        old, new = made("", "Node"), made("", "Node")
        for one in (old, new):
            one["spec"]["configSource"] = {}
        strategy_for("", "Node").prepare_for_update(new, old)
        self.assertIn("configSource", new["spec"])

    def test_status(self) -> None:
        """A client that creates a node can set its status."""
        self.assertEqual(made("", "Node", status={"phase": "Running"})["status"]["phase"], "Running")
