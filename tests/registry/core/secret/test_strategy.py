"""Tests of L{kubetwist.registry.core.secret.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests of the defaults of Secrets."""

    def test_secret(self) -> None:
        """C{stringData} is merged into C{data}, which it overrides."""
        secret = defaulted("", "Secret", data={"a": "b2xk", "b": "Yg=="}, stringData={"a": "new"})
        self.assertEqual(secret["data"], {"a": "bmV3", "b": "Yg=="})
        self.assertEqual(secret["type"], "Opaque")
        self.assertNotIn("stringData", secret)
