"""Tests for L{kubetwist.registry.discovery.printers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.printers import cells
from tests.registry.printertools import NOW, made


class SliceTests(SynchronousTestCase):
    """Tests for rows of EndpointSlices."""

    def test_endpoint_slice(self) -> None:
        """A port without a number shows its name or a star."""
        obj = made(
            {
                "addressType": "IPv4",
                "ports": [{"port": 80}, {"name": "dns"}, {}],
                "endpoints": [{"addresses": ["10.0.0.1"]}],
            }
        )
        self.assertEqual(
            cells("discovery.k8s.io", "EndpointSlice", obj, NOW), ["x", "IPv4", "80,dns,*", "10.0.0.1", "3m"]
        )
        self.assertEqual(cells("discovery.k8s.io", "EndpointSlice", made(), NOW)[2:4], ["<unset>", "<unset>"])
