"""Tests of L{kubetwist.registry.generic.bootstrap}."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kubetwist.api.featuregates import FeatureGates
from kubetwist.registry.core.namespace.bootstrap import SYSTEM_NAMESPACES
from kubetwist.registry.core.service.bootstrap import kubernetes_service
from kubetwist.registry.flowcontrol.bootstrap import APF_CONFIG_CONSUMER, FLOW_SCHEMAS, ensure_flow_control
from tests.registry.generic.bootstrapcase import BootstrapTestCase
from tests.resources.server import Server
from tests.schema.release import definitions


class BootstrapTests(BootstrapTestCase):
    """Tests of the objects that a server creates."""

    def test_new_server(self) -> None:
        """A new server has its namespaces, classes, levels, service and endpoints."""
        self.successResultOf(self.everything(self.stores))
        for name in SYSTEM_NAMESPACES:
            self.assertEqual(self.found("", "namespaces", name)["status"], {"phase": "Active"})
        critical = self.found("scheduling.k8s.io", "priorityclasses", "system-node-critical")
        self.assertEqual(critical["value"], 2000001000)
        for flow in FLOW_SCHEMAS:
            if flow.when:
                continue
            schema = self.found("flowcontrol.apiserver.k8s.io", "flowschemas", flow.name)
            level = schema["spec"]["priorityLevelConfiguration"]["name"]
            self.found("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", level)
        service = self.found("", "services", "kubernetes", "default")
        self.assertEqual(service["spec"]["clusterIP"], "10.0.0.1")
        endpoints = self.found("", "endpoints", "kubernetes", "default")
        self.assertEqual(endpoints["subsets"][0]["addresses"], [{"ip": "192.0.2.7"}])
        slices = self.found("discovery.k8s.io", "endpointslices", "kubernetes", "default")
        self.assertEqual(slices["endpoints"][0]["addresses"], ["192.0.2.7"])

    def test_status_managers(self) -> None:
        """The statuses of flow schemas and ServiceCIDRs are applied by their controllers' field managers."""
        self.successResultOf(self.everything(self.stores))
        for group, resource, name, manager in (
            ("flowcontrol.apiserver.k8s.io", "flowschemas", "exempt", APF_CONFIG_CONSUMER),
            ("networking.k8s.io", "servicecidrs", "kubernetes", "kubernetes-service-cidr-controller"),
        ):
            entries = self.found(group, resource, name)["metadata"]["managedFields"]
            (status_entry,) = (entry for entry in entries if entry.get("subresource") == "status")
            self.assertEqual((status_entry["manager"], status_entry["operation"]), (manager, "Apply"))

    def test_twice(self) -> None:
        """A second start writes nothing: existing objects may have been changed by users."""
        self.successResultOf(self.everything(self.stores))
        revision = self.server.backend.revision
        self.successResultOf(self.everything(self.stores))
        self.assertEqual(self.server.backend.revision, revision)

    def test_flow_schemas_of_releases(self) -> None:
        """Until 1.33 there are flow schemas for leader election and endpoints with objects of the core group."""
        for release, count in (((1, 33), 13), ((1, 34), 11)):
            server = Server("flowschemas", "prioritylevelconfigurations", types=definitions())
            self.successResultOf(Deferred.fromCoroutine(ensure_flow_control(server.stores, FeatureGates(release))))
            schemas = server.stores.get("flowcontrol.apiserver.k8s.io", "flowschemas")
            self.assertEqual(len(schemas.cache), count)
            found = schemas.get_copy("", "workload-leader-election")
            self.assertEqual(found is not None, release < (1, 34))

    def test_switched_off(self) -> None:
        """Resources that --runtime-config disables are skipped."""
        server = Server("services", "endpoints", "namespaces")
        made = kubernetes_service(server.stores, "10.0.0.1", "192.0.2.7", 6443)
        self.successResultOf(made)
        self.assertIsNotNone(server.stores.get_copy("", "endpoints", "default", "kubernetes"))
