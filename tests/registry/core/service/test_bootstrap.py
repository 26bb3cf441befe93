"""Tests of L{kubetwist.registry.core.service.bootstrap}."""

from __future__ import annotations

from kubetwist.registry.core.service.bootstrap import kubernetes_service
from tests.registry.generic.bootstrapcase import BootstrapTestCase


class ServiceTests(BootstrapTestCase):
    """Tests of L{kubernetes_service}."""

    def test_fields_of_service(self) -> None:
        """The server owns the fields that it sets in its service, but not the allocated addresses and families."""
        self.successResultOf(self.everything(self.stores))
        service = self.found("", "services", "kubernetes", "default")
        self.assertEqual((service["spec"]["clusterIPs"], service["spec"]["ipFamilies"]), (["10.0.0.1"], ["IPv4"]))
        (entry,) = service["metadata"]["managedFields"]
        owned = entry["fieldsV1"]["f:spec"]
        self.assertIn("f:clusterIP", owned)
        self.assertFalse({"f:clusterIPs", "f:ipFamilies"} & set(owned))

    def test_condition_of_range(self) -> None:
        """The condition of the range has an empty reason, which has no owner."""
        self.successResultOf(self.everything(self.stores))
        cidr = self.found("networking.k8s.io", "servicecidrs", "kubernetes")
        self.assertEqual(cidr["status"]["conditions"][0]["reason"], "")
        (status,) = (entry for entry in cidr["metadata"]["managedFields"] if entry.get("subresource"))
        self.assertNotIn("f:reason", str(status["fieldsV1"]))

    def test_endpoint_reconciler(self) -> None:
        """A server with an endpoint reconciler creates no endpoints with its service."""
        self.successResultOf(kubernetes_service(self.stores, "10.0.0.1", "", 6443))
        self.assertIsNone(self.stores.get_copy("", "endpoints", "default", "kubernetes"))
