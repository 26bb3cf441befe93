"""Tests of L{kubetwist.registry.core.endpoints.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class EndpointsTests(SynchronousTestCase):
    """Tests of rows of Endpoints."""

    def test_endpoints(self) -> None:
        """A row contains the first three addresses, IPv6 ones in brackets."""
        subset = {
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
            "ports": [{"port": 80}, {"port": 443}],
        }
        self.assertEqual(
            cells("", "Endpoints", made({"subsets": [subset]}), NOW)[1],
            "10.0.0.1:80,[fd00::1]:80,10.0.0.1:443 + 1 more...",
        )
        self.assertEqual(cells("", "Endpoints", made(), NOW)[1], "<none>")
