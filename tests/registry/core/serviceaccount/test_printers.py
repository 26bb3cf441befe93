"""Tests for L{kubetwist.registry.core.serviceaccount.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Rows of ServiceAccounts."""

    def test_account(self) -> None:
        """A row has name and age only; secrets are not counted."""
        self.assertEqual(cells("", "ServiceAccount", made({"secrets": [{"name": "s"}]}), NOW), ["x", "3m"])
