"""Tests of L{kubetwist.registry.core.secret.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests of rows of Secrets."""

    def test_secret(self) -> None:
        """A row contains the type and the number of keys, but no values."""
        obj = made({"type": "Opaque", "data": {"a": "c2VjcmV0", "b": ""}})
        self.assertEqual(cells("", "Secret", obj, NOW), ["x", "Opaque", 2, "3m"])
