"""Tests for L{kubetwist.registry.node.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests for rows of RuntimeClasses."""

    def test_runtime_class(self) -> None:
        """A row has the handler."""
        self.assertEqual(cells("node.k8s.io", "RuntimeClass", made({"handler": "gvisor"}), NOW), ["x", "gvisor", "3m"])
