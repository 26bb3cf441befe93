"""Tests for L{kubetwist.registry.storage.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class StorageTests(SynchronousTestCase):
    """Tests for rows of StorageClasses."""

    def test_storage_class(self) -> None:
        """The default class has a mark after its name."""
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.assertEqual(
            cells("storage.k8s.io", "StorageClass", made({"provisioner": "p"}, annotations=default), NOW),
            ["x (default)", "p", "Delete", "Immediate", False, "3m"],
        )
