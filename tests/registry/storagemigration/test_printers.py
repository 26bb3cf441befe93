"""Tests for L{kubetwist.registry.storagemigration.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class RowTests(SynchronousTestCase):
    """Tests for rows of StorageVersionMigrations."""

    def test_migration(self) -> None:
        """A row has the resource with its group, and no age."""
        obj = made({"spec": {"resource": {"resource": "deployments", "group": "apps"}}})
        self.assertEqual(
            cells("storagemigration.k8s.io", "StorageVersionMigration", obj, NOW), ["x", "deployments.apps", "Unknown"]
        )
