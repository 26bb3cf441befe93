"""Tests of L{kubetwist.registry.core.namespace.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests of rows of Namespaces."""

    def test_phase(self) -> None:
        """A row contains the phase."""
        self.assertEqual(cells("", "Namespace", made({"status": {"phase": "Active"}}), NOW), ["x", "Active", "3m"])
        self.assertEqual(cells("", "Namespace", made(), NOW), ["x", "", "3m"])
