"""Tests of L{kubetwist.registry.core.connection}."""

from __future__ import annotations

from kubetwist.registry.core.node.kubelets import ConnectionRules
from tests.registry.core.connectioncase import ProxyTestCase
from tests.resources.server import pod


class ProxyTests(ProxyTestCase):
    """Tests of connections to pods."""

    def test_pods(self) -> None:
        """A pod is reached at its address, at the requested port or its first one."""
        ports = [{"containerPort": 8080, "name": "web"}, {"containerPort": 9090}]
        spec = {"containers": [{"name": "c", "image": "i", "ports": ports}]}
        self.made(self.store("pods"), {"metadata": {"name": "p"}, "spec": spec})
        self.made(self.store("pods"), pod("q"))
        for name in ("p", "q"):
            self.set_status("pods", name, podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        for name, url in (
            ("p", "http://10.1.2.3:8080"),
            ("p:9090", "http://10.1.2.3:9090"),
            ("https:p:web", "https://10.1.2.3:8080"),
            ("https:p:", "https://10.1.2.3:8080"),
            ("q", "http://10.1.2.3:80"),
            ("https:q:", "https://10.1.2.3:443"),
        ):
            self.assertEqual(self.target_url("pods", "proxy", name, "/a//b/../c/"), f"{url}/a/c/")
        self.assertEqual(self.connection_error("pods", "proxy", "ftp:p:1"), (400, 'invalid pod request "ftp:p:1"'))
        self.assertEqual(self.connection_error("pods", "proxy", "p:none")[0], 400)
        for port in ("0", "65536", "9" * 50):
            message = f"error trying to reach service: dial tcp: address {port}: invalid port"
            self.assertEqual(self.connection_error("pods", "proxy", f"p:{port}"), (503, message))

    def test_addresses_that_are_refused(self) -> None:
        """CVE-2020-8562: requests are not proxied to loopback or link-local addresses, such as metadata services."""
        self.made(self.store("pods"), pod("p"))
        refused = (400, "address not allowed")
        self.assertEqual(self.connection_error("pods", "proxy", "p:8080"), refused)
        bad = ("127.0.0.1", "169.254.169.254", "::1", "fe80::1", "100.100.100.200", "0.0.0.0")
        for address in bad:
            self.set_status("pods", "p", podIP=address, podIPs=[{"ip": address}])
            self.assertEqual(self.connection_error("pods", "proxy", "p"), refused, address)
            self.assertEqual(self.connection_error("pods", "proxy", "https:p:9"), refused, address)
        self.node()
        for address in bad:
            self.set_status("nodes", "n", addresses=[{"type": "InternalIP", "address": address}])
            self.assertEqual(self.connection_error("nodes", "proxy", "n"), refused, address)
        self.rules = ConnectionRules(loopback=True)
        self.set_status("nodes", "n", addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
        self.assertEqual(self.target_url("nodes", "proxy", "n"), "https://127.0.0.1:10250")
        self.set_status("nodes", "n", addresses=[{"type": "InternalIP", "address": "169.254.169.254"}])
        self.assertEqual(self.connection_error("nodes", "proxy", "n"), refused)
