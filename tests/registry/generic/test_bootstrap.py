"""Tests for L{kubetwist.registry.generic.bootstrap}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.core.namespace.bootstrap import SYSTEM_NAMESPACES, system_namespaces
from kubetwist.registry.core.service.bootstrap import kubernetes_service
from kubetwist.registry.flowcontrol.bootstrap import FAIRNESS_TELLER, FLOWS, fairness
from kubetwist.registry.scheduling.bootstrap import priority_classes
from kubetwist.registry.stores import Stores
from tests.resources.server import Server, all_kinds
from tests.schema.release import definitions


class BootstrapTests(SynchronousTestCase):
    """What a server makes for itself."""

    def setUp(self) -> None:
        """A server of everything."""
        self.server = Server(*(info.resource for info in all_kinds()), types=definitions())
        self.stores = self.server.stores

    async def everything(self, stores: Stores) -> None:
        """Make all of it."""
        await system_namespaces(stores)
        await priority_classes(stores)
        await fairness(stores)
        await kubernetes_service(stores, ["10.0.0.0/24"], "10.0.0.1", "192.0.2.7", 6443)

    def found(self, group: str, resource: str, name: str, namespace: str = "") -> Any:
        """An object that is there."""
        obj = self.stores.lookup(group, resource, namespace, name)
        self.assertIsNotNone(obj, name)
        return obj

    def test_made(self) -> None:
        """A fresh server has its namespaces, classes, levels, service and endpoints."""
        self.successResultOf(self.everything(self.stores))
        for name in SYSTEM_NAMESPACES:
            self.assertEqual(self.found("", "namespaces", name)["status"], {"phase": "Active"})
        critical = self.found("scheduling.k8s.io", "priorityclasses", "system-node-critical")
        self.assertEqual(critical["value"], 2000001000)
        for flow in FLOWS:
            schema = self.found("flowcontrol.apiserver.k8s.io", "flowschemas", flow.name)
            level = schema["spec"]["priorityLevelConfiguration"]["name"]
            self.found("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", level)
        service = self.found("", "services", "kubernetes", "default")
        self.assertEqual(service["spec"]["clusterIP"], "10.0.0.1")
        endpoints = self.found("", "endpoints", "kubernetes", "default")
        self.assertEqual(endpoints["subsets"][0]["addresses"], [{"ip": "192.0.2.7"}])
        slices = self.found("discovery.k8s.io", "endpointslices", "kubernetes", "default")
        self.assertEqual(slices["endpoints"][0]["addresses"], ["192.0.2.7"])

    def test_tellers(self) -> None:
        """How flow schemas and ranges of services are is applied by those who see to it."""
        self.successResultOf(self.everything(self.stores))
        for group, resource, name, teller in (
            ("flowcontrol.apiserver.k8s.io", "flowschemas", "exempt", FAIRNESS_TELLER),
            ("networking.k8s.io", "servicecidrs", "kubernetes", "kubernetes-service-cidr-controller"),
        ):
            entries = self.found(group, resource, name)["metadata"]["managedFields"]
            (told,) = (entry for entry in entries if entry.get("subresource") == "status")
            self.assertEqual((told["manager"], told["operation"]), (teller, "Apply"))

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

    def test_twice(self) -> None:
        """What is there is left alone, as users may have changed it: a second start writes nothing."""
        self.successResultOf(self.everything(self.stores))
        revision = self.server.backend.revision
        self.successResultOf(self.everything(self.stores))
        self.assertEqual(self.server.backend.revision, revision)

    def test_endpoints_kept_elsewhere(self) -> None:
        """A server with an endpoint reconciler creates no endpoints with its service."""
        self.successResultOf(kubernetes_service(self.stores, ["10.0.0.0/24"], "10.0.0.1", "", 6443))
        self.assertIsNone(self.stores.lookup("", "endpoints", "default", "kubernetes"))

    def test_switched_off(self) -> None:
        """What --runtime-config has switched off is not missed."""
        server = Server("services", "endpoints", "namespaces")
        made = kubernetes_service(server.stores, ["10.0.0.0/24"], "10.0.0.1", "192.0.2.7", 6443)
        self.successResultOf(made)
        self.assertIsNotNone(server.stores.lookup("", "endpoints", "default", "kubernetes"))
