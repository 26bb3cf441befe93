"""Tests for L{kubetwist.registry.storage.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class StorageTests(SynchronousTestCase):
    """Rows of storage classes."""

    def test_storage_class(self) -> None:
        """The default class says so beside its name."""
        default = {"storageclass.kubernetes.io/is-default-class": "true"}
        self.assertEqual(
            cells("storage.k8s.io", "StorageClass", made({"provisioner": "p"}, annotations=default), NOW),
            ["x (default)", "p", "Delete", "Immediate", False, "3m"],
        )
