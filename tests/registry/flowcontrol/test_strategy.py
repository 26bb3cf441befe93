"""Tests for L{kubetwist.registry.flowcontrol.strategy}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.flowcontrol.bootstrap import FLOW_SCHEMAS
from kubetwist.registry.strategies import strategy_for


class FixedFlowSchemaTests(SynchronousTestCase):
    """Tests for immutable flow schemas."""

    def test_fixed(self) -> None:
        """The objects of the server are valid; another precedence is rejected."""
        strategy = strategy_for("flowcontrol.apiserver.k8s.io", "FlowSchema")
        for flow in FLOW_SCHEMAS:
            obj: dict[str, Any] = {"metadata": {"name": flow.name}, "spec": flow.spec()}
            strategy.default(obj)
            self.assertEqual(list(strategy.validate(obj)), [], flow.name)
            obj["spec"]["matchingPrecedence"] = 1234
            errors = [cause.message for cause in strategy.validate(obj)]
            fixed = flow.name in ("exempt", "catch-all")
            self.assertEqual(any("must equal the fixed value" in one for one in errors), fixed, flow.name)
