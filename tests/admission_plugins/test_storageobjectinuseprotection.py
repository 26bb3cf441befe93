"""Tests for L{StorageObjectInUseProtection}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.admission_plugins.storageobjectinuseprotection import StorageObjectInUseProtection
from kubetwist.api.resource import JSONObject
from tests.admission_plugins.objects import attributes, call_plugin


class ProtectionTests(SynchronousTestCase):
    """Tests for L{StorageObjectInUseProtection}."""

    def test_protection(self) -> None:
        """New volumes, claims and volume attributes classes get their finalizer once."""
        for resource, finalizer in (
            ("persistentvolumes", "kubernetes.io/pv-protection"),
            ("persistentvolumeclaims", "kubernetes.io/pvc-protection"),
        ):
            obj: JSONObject = {"metadata": {}}
            self.successResultOf(call_plugin(StorageObjectInUseProtection().admit, attributes(obj, resource)))
            self.assertEqual(obj["metadata"]["finalizers"], [finalizer])
