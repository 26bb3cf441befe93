"""Tests for L{kubetwist.registry.networking.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class NetworkTests(SynchronousTestCase):
    """Tests for rows of Ingresses and IPAddresses."""

    def test_ingress(self) -> None:
        """An Ingress shows at most three hosts, and both ports if it has TLS."""
        rules = [{"host": name} for name in "abcd"]
        obj = made({"spec": {"rules": rules, "tls": [{}], "ingressClassName": "c"}})
        self.assertEqual(
            cells("networking.k8s.io", "Ingress", obj, NOW), ["x", "c", "a,b,c + 1 more...", "", "80, 443", "3m"]
        )
        self.assertEqual(cells("networking.k8s.io", "Ingress", made(), NOW), ["x", "<none>", "*", "", "80", "3m"])

    def test_ip_address(self) -> None:
        """An IPAddress shows its parent with group and resource."""
        parent = {"group": "", "resource": "services", "namespace": "default", "name": "kubernetes"}
        shown = cells("networking.k8s.io", "IPAddress", made({"spec": {"parentRef": parent}}), NOW)
        self.assertEqual(shown, ["x", "services/default/kubernetes", "3m"])
