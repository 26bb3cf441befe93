"""Tests for L{kubetwist.registry.flowcontrol.strategy}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.flowcontrol.bootstrap import FLOW_SCHEMAS
from kubetwist.registry.strategies import strategy_for


class FixedFlowSchemaTests(SynchronousTestCase):
    """The flow schemas that nobody changes."""

    def test_fixed(self) -> None:
        """What the server makes is what it demands; another precedence is refused."""
        strategy = strategy_for("flowcontrol.apiserver.k8s.io", "FlowSchema")
        for flow in FLOW_SCHEMAS:
            obj: dict[str, Any] = {"metadata": {"name": flow.name}, "spec": flow.spec()}
            strategy.default(obj)
            self.assertEqual(list(strategy.validate(obj)), [], flow.name)
            obj["spec"]["matchingPrecedence"] = 1234
            found = [cause.message for cause in strategy.validate(obj)]
            fixed = flow.name in ("exempt", "catch-all")
            self.assertEqual(any("must equal the fixed value" in one for one in found), fixed, flow.name)
