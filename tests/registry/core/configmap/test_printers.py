"""Tests of L{kubetwist.registry.core.configmap.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests of rows of ConfigMaps."""

    def test_keys(self) -> None:
        """The number of keys includes texts and binary data."""
        obj = made({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}})
        self.assertEqual(cells("", "ConfigMap", obj, NOW), ["x", 3, "3m"])
        self.assertEqual(cells("", "ConfigMap", made(), NOW), ["x", 0, "3m"])
