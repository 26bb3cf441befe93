"""Tests of L{kubetwist.registry.core.service.backends}."""

from __future__ import annotations

from kubetwist.registry.core.service.backends import service_backend
from tests.registry.core.connectioncase import ProxyTestCase
from tests.resources.server import pod


class BackendTests(ProxyTestCase):
    """Tests of L{kubetwist.registry.core.service.backends}."""

    def test_foreign_addresses(self) -> None:
        """Endpoints with addresses that are not of pods in the namespace are not used."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "w"}]}})
        self.made(self.store("pods"), pod("p"))
        self.set_status("pods", "p", podIP="10.1.2.3", podIPs=[{"ip": "10.1.2.3"}])
        for address in (
            {"ip": "10.1.2.3"},
            {"ip": "10.1.2.4", "targetRef": {"kind": "Pod", "name": "p", "namespace": "default"}},
            {"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "name": "p", "namespace": "other"}},
            {"ip": "10.1.2.3", "targetRef": {"kind": "Pod", "name": "gone", "namespace": "default"}},
        ):
            self.endpoints("s", addresses=[address])
            self.assertEqual(self.connection_error("services", "proxy", "s:w")[0], 503, address)

    def test_load_is_spread(self) -> None:
        """The pod of a service is chosen at random."""
        self.made(self.store("services"), {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
        listed = []
        for number in range(3):
            self.made(self.store("pods"), pod(f"p{number}"))
            ip = f"10.1.2.{number}"
            self.set_status("pods", f"p{number}", podIP=ip, podIPs=[{"ip": ip}])
            listed.append({"ip": ip, "targetRef": {"kind": "Pod", "name": f"p{number}", "namespace": "default"}})
        self.endpoints("s", addresses=listed, ports=[{"port": 8080}])
        found = [
            service_backend(self.stores, "default", "s", "", "s", lambda many, one=one: min(one, many - 1))
            for one in range(3)
        ]
        self.assertEqual(found, [("10.1.2.0", 8080, False), ("10.1.2.1", 8080, False), ("10.1.2.2", 8080, False)])
