"""Tests of L{kubetwist.registry.generic.fieldmanager.serverfields}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupVersionKind
from kubetwist.registry.generic.fieldmanager.manager import update_managed_fields
from kubetwist.registry.generic.fieldmanager.serverfields import ServerFields
from tests.resources.server import all_kinds, definitions

GROUP = "networking.k8s.io"


class ServerFieldsTests(SynchronousTestCase):
    """Tests of L{ServerFields}."""

    def setUp(self) -> None:
        """Create a ServiceCIDR without status."""
        self.fields = ServerFields(definitions())
        (self.info,) = (info for info in all_kinds() if info.resource == "servicecidrs")
        self.obj: dict[str, Any] = {"metadata": {"name": "c"}, "spec": {"cidrs": ["10.0.0.0/24"]}}

    def test_manager(self) -> None:
        """A component of the server owns the fields that it sets; each subresource has one field manager."""
        manager = self.fields.manager(self.info, "")
        self.assertIs(self.fields.manager(self.info, ""), manager)
        self.assertIsNot(self.fields.manager(self.info, "status"), manager)
        update_managed_fields(manager, None, self.obj, "kube-apiserver")
        (entry,) = self.obj["metadata"]["managedFields"]
        self.assertEqual((entry["manager"], entry["operation"]), ("kube-apiserver", "Update"))
        self.assertEqual(entry["fieldsV1"], {"f:spec": {"f:cidrs": {}}})

    def test_apply(self) -> None:
        """An applied status replaces the status of other managers, and has an owner."""
        gvk = GroupVersionKind(GROUP, "v1", "ServiceCIDR")
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": None, "message": "m"}
        applied = {"kind": gvk.kind, "apiVersion": gvk.api_version, **self.obj, "status": {"conditions": [condition]}}
        for _ in range(2):
            made = self.fields.apply(self.info, gvk, self.obj, applied, "status", "me")
        (entry,) = made["metadata"]["managedFields"]
        self.assertEqual((entry["manager"], entry["operation"], entry["subresource"]), ("me", "Apply", "status"))
        self.assertEqual(made["status"]["conditions"][0]["reason"], "")
        self.assertEqual(made["spec"], self.obj["spec"])
