"""Tests of L{kubetwist.registry.core.serviceaccount.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests of rows of ServiceAccounts."""

    def test_account(self) -> None:
        """A row contains name and age only."""
        self.assertEqual(cells("", "ServiceAccount", made({"secrets": [{"name": "s"}]}), NOW), ["x", "3m"])
