"""Tests for L{kubetwist.registry.authentication.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import defaulted


class TokenRequestTests(SynchronousTestCase):
    """Tests for the strategy of token requests."""

    def test_default_expiration(self) -> None:
        """Tokens expire after an hour by default."""
        self.assertEqual(defaulted("authentication.k8s.io", "TokenRequest")["spec"], {"expirationSeconds": 3600})
        spec = {"expirationSeconds": 600, "audiences": ["a"]}
        self.assertEqual(defaulted("authentication.k8s.io", "TokenRequest", spec=spec)["spec"], spec)
