"""Tests of L{kubetwist.registry.core.resourcequota.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, defaulted, made


class StrategyTests(SynchronousTestCase):
    """Tests of the strategy of ResourceQuotas."""

    def test_quantities(self) -> None:
        """Quantities are rounded up to thousandths, in the status, too."""
        obj = defaulted("", "ResourceQuota", spec={"hard": {"cpu": "1000100u"}}, status={"used": {"cpu": "100u"}})
        self.assertEqual((obj["spec"]["hard"], obj["status"]["used"]), ({"cpu": "1001m"}, {"cpu": "1m"}))

    def test_status(self) -> None:
        """The status of a new quota is removed."""
        self.assertEqual(made("", "ResourceQuota", status={"used": {"pods": "3"}})["status"], {})

    def test_scopes_stay(self) -> None:
        """The scopes of a quota are immutable."""
        one, other = ({"spec": {"scopes": [scope], "hard": {"pods": "1"}}} for scope in ("BestEffort", "NotBestEffort"))
        found = change_problems("", "ResourceQuota", one, other)
        self.assertEqual([text.partition(":")[0] for text in found], ["spec.scopes"])
