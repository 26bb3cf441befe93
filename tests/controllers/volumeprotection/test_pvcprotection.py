"""Tests for L{kubetwist.controllers.volumeprotection.pvcprotection}."""

from __future__ import annotations

from typing import Any

from kubetwist.controllers.volumeprotection.pvcprotection import ClaimProtection
from tests.controllers.harness import ControllerTestCase

PVC = "kubernetes.io/pvc-protection"


class ClaimProtectionTests(ControllerTestCase):
    """PersistentVolumeClaims in use."""

    resources = ("namespaces", "pods", "persistentvolumeclaims")

    def setUp(self) -> None:
        """Create a namespace."""
        super().setUp()
        self.make("namespaces", "default")

    def claim(self, name: str, **meta: Any) -> None:
        """Create a claim."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        self.make("persistentvolumeclaims", name, "default", metadata=meta, spec=spec)

    def pod(self, name: str, claim: str, node: str = "n1") -> None:
        """Create a pod that uses a claim."""
        volume = {"name": "v", "persistentVolumeClaim": {"claimName": claim}}
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
        self.make("pods", name, "default", spec={**spec, **({"nodeName": node} if node else {})})

    def test_unused(self) -> None:
        """Claims get the finalizer. An unused claim is deleted immediately."""
        self.claim("a")
        self.start(ClaimProtection)
        self.assertEqual(self.find("persistentvolumeclaims", "a", "default")["metadata"]["finalizers"], [PVC])
        self.pod("p", "a", node="")
        self.remove("persistentvolumeclaims", "a", "default")
        self.settle()
        self.assertEqual(self.names("persistentvolumeclaims"), [])

    def test_used(self) -> None:
        """A claim is kept while a running pod uses it. Other finalizers are kept."""
        self.start(ClaimProtection)
        self.claim("a", finalizers=["example.com/mine"])
        self.pod("p", "a")
        self.pod("q", "a")
        self.settle()
        self.remove("persistentvolumeclaims", "a", "default")
        self.remove("pods", "p", "default", grace=0)
        self.settle()
        found = self.find("persistentvolumeclaims", "a", "default")
        self.assertEqual(found["metadata"]["finalizers"], ["example.com/mine", PVC])
        self.change("pods", "q", lambda pod: pod.update(status={"phase": "Succeeded"}), "default", subresource="status")
        self.settle()
        self.assertEqual(len(self.names("persistentvolumeclaims")), 1, "it is scheduled still")
        self.remove("pods", "q", "default", grace=0)
        self.settle()
        found = self.find("persistentvolumeclaims", "a", "default")
        self.assertEqual(found["metadata"]["finalizers"], ["example.com/mine"])

    def test_ephemeral(self) -> None:
        """An ephemeral claim is in use by its pod, and by no other pod of the same name."""
        self.start(ClaimProtection)
        volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
        spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume], "nodeName": "n1"}
        template = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        volume["ephemeral"] = {"volumeClaimTemplate": {"spec": template}}
        pod = self.make("pods", "p", "default", spec=spec)
        reference = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
        for uid, stays in ((pod["metadata"]["uid"], True), ("another", False)):
            self.claim("p-v", ownerReferences=[{**reference, "uid": uid}])
            self.settle()
            self.remove("persistentvolumeclaims", "p-v", "default")
            self.settle()
            self.assertEqual("p-v" in self.names("persistentvolumeclaims"), stays)
            if stays:
                self.remove("pods", "p", "default", grace=0)
                self.settle()
                self.assertEqual(self.names("persistentvolumeclaims"), [])
                self.make("pods", "p", "default", spec=spec)

    def test_faults_and_restart(self) -> None:
        """With failing writes and after a kill, unused claims are deleted in the end."""
        self.backend.fails = lambda number: False
        for number in range(20):
            self.claim(f"c{number}")
        self.pod("p", "c0")
        self.backend.fails = lambda number: number % 10 == 0
        self.start(ClaimProtection)
        self.settle(60)
        for number in range(20):
            found = self.find("persistentvolumeclaims", f"c{number}", "default")
            self.assertEqual(found["metadata"]["finalizers"], [PVC])
        self.backend.fails = lambda number: False
        for subscription in self.running[0]._registrations:
            subscription.stop()
        for number in range(20):
            self.remove("persistentvolumeclaims", f"c{number}", "default")
        self.backend.fails = lambda number: number % 10 == 0
        self.restart(ClaimProtection)
        self.settle(60)
        self.assertEqual(self.names("persistentvolumeclaims"), ["c0"])
