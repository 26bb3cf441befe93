"""Tests for L{kubetwist.registry.discovery.validation}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class SliceTests(SynchronousTestCase):
    """Tests for the validation of EndpointSlices."""

    def test_domains(self) -> None:
        """Host names have a domain, with an optional trailing dot."""

        def found(*addresses: str) -> list[str]:
            endpoints = [{"addresses": list(addresses)}]
            return problems("discovery.k8s.io", "EndpointSlice", addressType="FQDN", endpoints=endpoints)

        self.assertEqual(found("a.b", "a.b."), [])
        path = "endpoints[0].addresses[0]"
        segments = "should be a domain with at least two segments separated by dots"
        self.assertEqual(found("host"), [f'{path}: Invalid value: "host": {segments}'])
        self.assertEqual(found(""), [f"{path}: Required value"])
        self.assertTrue(found("A.b")[0].startswith(f'{path}: Invalid value: "A.b": a lowercase RFC 1123 subdomain'))
        self.assertTrue(found("a." + "b" * 64)[0].startswith(f'{path}: Invalid value: "bbb'))

    def test_slices_that_change(self) -> None:
        """All parts are validated except for unchanged endpoints."""
        old = {"addressType": "IPv4", "endpoints": [{"addresses": ["bad"]}]}
        self.assertEqual(change_problems("discovery.k8s.io", "EndpointSlice", old, old), [])
        errors = change_problems("discovery.k8s.io", "EndpointSlice", old, {**old, "addressType": "x"})
        self.assertEqual(
            [text[:32] for text in errors], ["addressType: Unsupported value: ", 'addressType: Invalid value: "x":']
        )
        other = {"addressType": "IPv6", "endpoints": [{"addresses": ["192.0.2.1"]}]}
        errors = change_problems("discovery.k8s.io", "EndpointSlice", old, other)
        self.assertEqual([text.partition(":")[0] for text in errors], ["endpoints[0].addresses", "addressType"])

    def test_hinted_nodes(self) -> None:
        """Names of nodes may be longer than names of zones."""
        long = "a" * 100
        hints = {"forZones": [{"name": long}], "forNodes": [{"name": long}, {"name": "A"}]}
        endpoint = {"addresses": ["192.0.2.1"], "hints": hints}
        errors = problems("discovery.k8s.io", "EndpointSlice", addressType="IPv4", endpoints=[endpoint])
        self.assertEqual(
            [one.partition(":")[0] for one in errors],
            ["endpoints[0].hints.forZones[0].name", "endpoints[0].hints.forNodes[1].name"],
        )
