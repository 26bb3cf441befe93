"""Tests for L{kubetwist.registry.core.secret.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class DefaultingTests(SynchronousTestCase):
    """Tests for the defaults of secrets."""

    def test_secret(self) -> None:
        """C{stringData} goes into C{data}, over what is there."""
        secret = defaulted("", "Secret", data={"a": "b2xk", "b": "Yg=="}, stringData={"a": "new"})
        self.assertEqual(secret["data"], {"a": "bmV3", "b": "Yg=="})
        self.assertEqual(secret["type"], "Opaque")
        self.assertNotIn("stringData", secret)
