"""Tests for L{kubetwist.controllers.volumeprotection.pvprotection}."""

from __future__ import annotations

from kubetwist.controllers.volumeprotection.pvprotection import VolumeProtection
from tests.controllers.harness import ControllerTestCase

PV = "kubernetes.io/pv-protection"


class VolumeProtectionTests(ControllerTestCase):
    """PersistentVolumes in use."""

    resources = ("persistentvolumes",)

    def volume(self, name: str, phase: str) -> None:
        """Create a volume."""
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": "1Gi"},
            "hostPath": {"path": "/tmp/x"},
            "persistentVolumeReclaimPolicy": "Retain",
        }
        self.make("persistentvolumes", name, spec=spec, status={"phase": phase})

    def test_bound(self) -> None:
        """A bound volume is kept until it is released. Other volumes are deleted immediately."""
        self.start(VolumeProtection)
        self.volume("free", "Available")
        self.volume("bound", "Bound")
        self.settle()
        self.assertEqual(self.find("persistentvolumes", "free")["metadata"]["finalizers"], [PV])
        self.remove("persistentvolumes", "free")
        self.remove("persistentvolumes", "bound")
        self.settle()
        self.assertEqual(self.names("persistentvolumes"), ["bound"])
        self.change(
            "persistentvolumes", "bound", lambda obj: obj["status"].update(phase="Released"), subresource="status"
        )
        self.settle()
        self.assertEqual(self.names("persistentvolumes"), [])

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, unused volumes are deleted in the end."""
        for number in range(20):
            self.volume(f"v{number}", "Bound" if number < 2 else "Available")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(VolumeProtection)
        self.settle(60)
        self.backend.fails = lambda number: False
        for subscription in self.running[0]._registrations:
            subscription.stop()
        for number in range(20):
            self.assertEqual(self.find("persistentvolumes", f"v{number}")["metadata"]["finalizers"], [PV])
            self.remove("persistentvolumes", f"v{number}")
        self.backend.fails = lambda number: number % 10 == 0
        self.restart(VolumeProtection)
        self.settle(60)
        self.assertEqual(self.names("persistentvolumes"), ["v0", "v1"])
