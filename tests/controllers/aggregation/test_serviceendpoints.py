"""Tests for L{kubetwist.controllers.aggregation.serviceendpoints}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.services import (
    NoSuchService,
)
from kubetwist.controllers.aggregation.apiservices import (
    Aggregation,
)
from kubetwist.controllers.aggregation.serviceendpoints import (
    ServiceEndpoints,
    has_ready_endpoint,
    ready_endpoints,
)
from tests.controllers.aggregation.services import FAR, NAME, SERVICES
from tests.resources.server import Server


class ServiceEndpointsTests(SynchronousTestCase):
    """Endpoints of services."""

    def a_slice(self, *addresses: str, ready: bool | None = True, port: Any = 8443, family: str = "IPv4") -> Any:
        """Return an EndpointSlice with one port."""
        conditions = {} if ready is None else {"ready": ready}
        return {
            "addressType": family,
            "endpoints": [{"addresses": [address], "conditions": conditions} for address in addresses],
            "ports": [{"name": "https", "port": port}],
        }

    def test_ready(self) -> None:
        """Endpoints that are ready, or without the condition, are returned for the port with the requested name."""
        good = self.a_slice("10.0.0.1", ready=None)
        self.assertTrue(has_ready_endpoint([good], "https"))
        self.assertFalse(has_ready_endpoint([good], ""))
        self.assertFalse(has_ready_endpoint([self.a_slice("10.0.0.1", ready=False)], "https"))
        self.assertFalse(has_ready_endpoint([self.a_slice("10.0.0.1", port=None)], "https"))
        self.assertEqual(ready_endpoints([good, self.a_slice("10.0.0.2", ready=False)], "https"), [("10.0.0.1", 8443)])

    def test_families(self) -> None:
        """If there are addresses of the preferred family, only these are returned."""
        slices = [self.a_slice("10.0.0.1"), self.a_slice("fd00::1", family="IPv6")]
        self.assertEqual(ready_endpoints(slices, "https", ["IPv6", "IPv4"]), [("fd00::1", 8443)])
        self.assertEqual(ready_endpoints(slices[:1], "https", ["IPv6"]), [("10.0.0.1", 8443)])

    def test_endpoint_is_kept(self) -> None:
        """A client keeps its endpoint as long as it exists and requests succeed."""
        server = Server("apiservices", "services", "endpointslices")
        api = server.client()
        backends = ServiceEndpoints(server.stores, server.clock)
        backends.start()
        self.addCleanup(backends.stop)
        api.ask(
            "POST",
            "/api/v1/namespaces/default/services",
            {"metadata": {"name": "far"}, "spec": {"ports": [{"name": "https", "port": 443}]}},
        )
        self.assertRaises(NoSuchService, backends.endpoints, "default", "far", 443)
        for number in range(9):
            obj = {"metadata": {"name": f"far-{number}", "labels": {"kubernetes.io/service-name": "far"}}}
            obj |= self.a_slice(f"10.0.0.{number}")
            code, response = api.ask("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", obj)
            self.assertEqual(code, 201, response)
        for port, name in ((80, "far"), (443, "near")):
            self.assertRaises(NoSuchService, backends.endpoints, "default", name, port)
        store = server.stores.get("apiregistration.k8s.io", "apiservices")
        aggregation = Aggregation(
            store,
            None,  # type: ignore[arg-type]
            server.clock,
            lambda service: backends.endpoints(service.namespace, service.name, service.port),
        )
        aggregation.start()
        self.addCleanup(aggregation.stop)
        spec = {"group": FAR.group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        spec |= {"service": {"namespace": "default", "name": "far"}}
        api.ask("POST", SERVICES, {"metadata": {"name": NAME}, "spec": spec})
        remote = aggregation.aggregated_servers[FAR]
        chosen = remote.target()
        self.assertEqual({remote.target() for _ in range(20)}, {chosen})
        number = chosen[0].rpartition(".")[2]
        api.ask("DELETE", f"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/far-{number}")
        self.assertNotEqual(remote.target(), chosen)
        found = set()
        for _ in range(200):
            remote.failed()
            found.add(remote.target())
        self.assertGreater(len(found), 1)
