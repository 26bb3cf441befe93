"""Tests of L{kubetwist.registry.core.persistentvolumeclaim.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class ClaimTests(SynchronousTestCase):
    """Tests of rows of PersistentVolumeClaims."""

    def test_claim(self) -> None:
        """Capacity and access modes are shown once the claim is bound."""
        status = {"phase": "Pending", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"]}
        old_class = {"volume.beta.kubernetes.io/storage-class": "slow"}
        obj = made({"spec": {}, "status": status}, annotations=old_class)
        self.assertEqual(cells("", "PersistentVolumeClaim", obj, NOW)[1:6], ["Pending", "", "", "", "slow"])
        obj["spec"]["volumeName"] = "v"
        self.assertEqual(cells("", "PersistentVolumeClaim", obj, NOW)[1:6], ["Pending", "v", "5Gi", "RWO", "slow"])
