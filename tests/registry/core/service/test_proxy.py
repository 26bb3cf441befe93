"""Tests of L{kubetwist.registry.core.service.proxy}."""

from __future__ import annotations

from tests.registry.core.connectioncase import ProxyTestCase
from tests.resources.server import pod


class ProxyTests(ProxyTestCase):
    """Tests of L{kubetwist.registry.core.service.proxy}."""

    def test_services(self) -> None:
        """The target is a ready pod of the service, at the requested port."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        self.assertEqual(
            self.connection_error("services", "proxy", "https:s:99"), (503, 'no service port 99 found for service "s"')
        )
        self.assertEqual(self.connection_error("services", "proxy", "s"), (404, 'services "s" not found'))
        self.assertEqual(self.connection_error("services", "proxy", "gone:80")[0], 404)
        self.assertEqual(
            self.connection_error("services", "proxy", "a:b:c:d"), (400, 'invalid service request "a:b:c:d"')
        )
        self.endpoints("s", notReadyAddresses=[{"ip": "10.1.2.3"}])
        self.assertEqual(
            self.connection_error("services", "proxy", "s:80"), (503, 'no endpoints available for service "s:80"')
        )
        self.made(self.store("pods"), pod("p"))
        self.set_status("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        reference = {"kind": "Pod", "name": "p", "namespace": "default"}
        self.endpoints("s", addresses=[{"ip": "10.1.2.3", "targetRef": reference}])
        self.assertEqual(self.target_url("services", "proxy", "s:80", "/x"), "http://10.1.2.3:8080/x")
        self.assertEqual(self.target_url("services", "proxy", "https:s:w", "/x"), "https://10.1.2.3:8080/x")
        self.assertEqual(
            self.connection_error("services", "proxy", "s"), (503, 'no endpoints available for service "s"')
        )
