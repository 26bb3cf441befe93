"""Tests for L{TaintNodesByCondition}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.taintnodesbycondition import TaintNodesByCondition
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.objects import attributes, call_plugin


class TaintTests(SynchronousTestCase):
    """Tests for L{TaintNodesByCondition}."""

    def test_taint(self) -> None:
        """A new node gets the taint not-ready once."""
        node: JSONObject = {"metadata": {"name": "n"}}
        for _ in range(2):
            self.successResultOf(call_plugin(TaintNodesByCondition().admit, attributes(node, "nodes")))
        self.assertEqual(node["spec"]["taints"], [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}])
