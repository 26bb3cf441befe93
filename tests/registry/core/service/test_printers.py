"""Tests of L{kubetwist.registry.core.service.printers}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class ServiceTests(SynchronousTestCase):
    """Tests of rows of Services."""

    def service(self, spec: dict[str, Any], *points: dict[str, str]) -> list[Any]:
        """Return the cells of type, addresses and ports."""
        obj = made({"spec": spec, "status": {"loadBalancer": {"ingress": list(points)}}})
        return cells("", "Service", obj, NOW)[1:5]

    def test_service(self) -> None:
        """A row contains ports with their protocol, and node ports if there are any."""
        ports = [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP", "nodePort": 30053}]
        self.assertEqual(
            self.service({"type": "NodePort", "clusterIPs": ["10.0.0.1"], "ports": ports}),
            ["NodePort", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP"],
        )

    def test_external_address(self) -> None:
        """The external addresses depend on the type."""
        self.assertEqual(
            self.service({"type": "ExternalName", "externalName": "a.example"})[1:3], ["<none>", "a.example"]
        )
        self.assertEqual(self.service({"type": "LoadBalancer"})[2], "<pending>")
        balanced = self.service(
            {"type": "LoadBalancer", "externalIPs": ["192.0.2.9"]}, {"hostname": "lb.example"}, {"ip": "192.0.2.1"}
        )
        self.assertEqual(balanced[2], "192.0.2.1,lb.example,192.0.2.9")
        self.assertEqual(self.service({"type": "ClusterIP", "externalIPs": ["192.0.2.9"]})[2], "192.0.2.9")
