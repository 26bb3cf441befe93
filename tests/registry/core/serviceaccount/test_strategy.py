"""Tests of L{kubetwist.registry.core.serviceaccount.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, made


class AccountTests(SynchronousTestCase):
    """Tests of ServiceAccounts."""

    def test_secrets(self) -> None:
        """References to secrets are reduced to their names."""
        strategy = strategy_for("", "ServiceAccount")
        written = {"secrets": [{"name": "a", "namespace": "other", "kind": "Secret"}, {"kind": "Secret"}]}
        account = made("", "ServiceAccount", **written)
        self.assertEqual(account["secrets"], [{"name": "a"}, {}])
        changed = {**account, **copy(written)}
        strategy.prepare_for_update(changed, account)
        self.assertEqual(changed["secrets"], [{"name": "a"}, {}])
