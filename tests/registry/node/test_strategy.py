"""Tests for L{kubetwist.registry.node.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems, warnings_for


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of RuntimeClasses."""

    def test_handler(self) -> None:
        """The handler is a DNS label, and is immutable."""
        self.assertEqual(len(problems("node.k8s.io", "RuntimeClass", handler="A_b")), 1)
        self.assertEqual(problems("node.k8s.io", "RuntimeClass", handler="gvisor"), [])
        errors = change_problems("node.k8s.io", "RuntimeClass", {"handler": "a"}, {"handler": "b"})
        self.assertEqual([one.partition(":")[0] for one in errors], ["handler"])

    def test_warnings(self) -> None:
        """Deprecated node labels give warnings."""
        selector = {"nodeSelector": {"beta.kubernetes.io/arch": "amd64"}}
        [text] = warnings_for("node.k8s.io", "RuntimeClass", handler="a", scheduling=selector)
        self.assertEqual(text, 'scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/arch" instead')
