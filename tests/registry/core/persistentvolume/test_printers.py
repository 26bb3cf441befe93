"""Tests of L{kubetwist.registry.core.persistentvolume.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class VolumeTests(SynchronousTestCase):
    """Tests of rows of PersistentVolumes."""

    def test_volume(self) -> None:
        """Access modes are abbreviated, in a fixed order and without duplicates."""
        spec = {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteMany", "ReadWriteOnce", "ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "claimRef": {"namespace": "ns", "name": "c"},
            "storageClassName": "fast",
            "volumeMode": "Block",
        }
        self.assertEqual(
            cells("", "PersistentVolume", made({"spec": spec, "status": {"phase": "Bound"}}), NOW),
            ["x", "5Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "fast", "<unset>", "", "3m", "Block"],
        )
