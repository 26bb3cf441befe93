"""Tests of L{kubetwist.client.services}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.services import (
    NoSuchService,
    Services,
)


class ServicesTests(SynchronousTestCase):
    """L{Services<kubetwist.client.services.Services>}."""

    def services(self, spec: Any) -> Services:
        """Return services with C{ns/web} only."""
        return Services(lambda namespace, name: {"spec": spec} if (namespace, name) == ("ns", "web") else None)

    def test_resolve(self) -> None:
        """A service resolves to its cluster IP or its external name."""
        ports = [{"port": 443}, {"port": 8443}]
        for kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            services = self.services({"type": kind, "clusterIP": "10.0.0.7", "ports": ports})
            self.assertEqual(services.resolve("ns", "web", 8443), ("10.0.0.7", 8443))
        services = self.services({"type": "ExternalName", "externalName": "web.example"})
        self.assertEqual(services.resolve("ns", "web", 77), ("web.example", 77))

    def test_unresolvable(self) -> None:
        """A service without an address fails with the reference's text."""
        for spec, name, expected in (
            ({}, "other", 'service "other" not found'),
            ({"type": "ClusterIP", "clusterIP": "None"}, "web", 'cannot route to service with ClusterIP "None"'),
            (
                {"type": "ClusterIP", "clusterIP": "10.0.0.7", "ports": [{"port": 80}]},
                "web",
                'no service port 443 found for service "web"',
            ),
            ({"type": "Odd"}, "web", 'unsupported service type "Odd"'),
        ):
            error = self.assertRaises(NoSuchService, self.services(spec).resolve, "ns", name, 443)
            self.assertEqual(str(error), expected)

    def test_settings(self) -> None:
        """The settings of a service use its DNS name and deny internal addresses."""
        services = self.services({"clusterIP": "10.0.0.7", "ports": [{"port": 443}]})
        settings = services.settings("ns", "web", path="hook", ca=b"PEM")
        self.assertEqual((settings.url, settings.server_name), ("https://web.ns.svc:443/hook", "web.ns.svc"))
        assert settings.resolve_address is not None
        self.assertEqual(
            (settings.resolve_address(), settings.deny_internal, settings.ca), (("10.0.0.7", 443), True, b"PEM")
        )
