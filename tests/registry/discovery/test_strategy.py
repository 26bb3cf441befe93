"""Tests for L{kubetwist.registry.discovery.strategy}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.strategies import strategy_for
from tests.registry.strategytools import copy, defaulted, made, warnings_for

SLICE = {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]}


class StrategyTests(SynchronousTestCase):
    """Tests for the strategy of EndpointSlices."""

    def test_defaults(self) -> None:
        """Ports have a name and a protocol, endpoints have conditions; lists are encoded, possibly as null."""
        obj = defaulted("discovery.k8s.io", "EndpointSlice", **copy(SLICE))
        self.assertEqual(obj["ports"], [{"port": 80, "name": "", "protocol": "TCP"}])
        self.assertEqual(obj["endpoints"][0]["conditions"], {})
        self.assertEqual(defaulted("discovery.k8s.io", "EndpointSlice")["ports"], None)

    def test_old_topology(self) -> None:
        """Deprecated topology is dropped from new slices, and from stored ones when their endpoints change."""
        strategy = strategy_for("discovery.k8s.io", "EndpointSlice")
        old = copy(SLICE)
        old["endpoints"][0]["deprecatedTopology"] = {"a": "b"}
        new = copy(old)
        strategy.prepare_for_update(new, old)
        self.assertIn("deprecatedTopology", new["endpoints"][0])
        new["endpoints"].append({"addresses": ["10.0.0.2"]})
        strategy.prepare_for_update(new, old)
        self.assertNotIn("deprecatedTopology", new["endpoints"][0])
        strategy.prepare_for_create(old)
        self.assertNotIn("deprecatedTopology", old["endpoints"][0])

    def test_generation(self) -> None:
        """A change of labels increments the generation, since they name the service; annotations do not."""
        strategy = strategy_for("discovery.k8s.io", "EndpointSlice")
        old = made("discovery.k8s.io", "EndpointSlice", **copy(SLICE))
        for field, changes in (("labels", True), ("annotations", False)):
            new = copy(old)
            new["metadata"][field] = {"a": "b"}
            self.assertIs(strategy.generation_changes(new, old), changes, field)

    def test_warnings(self) -> None:
        """The address type FQDN and non-canonical addresses give warnings, except for slices of controllers."""
        [text] = warnings_for("discovery.k8s.io", "EndpointSlice", addressType="FQDN", endpoints=[], ports=[])
        self.assertEqual(text, "spec.addressType: FQDN endpoints are deprecated")
        odd = {"addressType": "IPv6", "ports": [], "endpoints": [{"addresses": ["0::1"]}]}
        self.assertEqual(len(warnings_for("discovery.k8s.io", "EndpointSlice", **odd)), 1)
        labels = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
        meta = {"name": "x", "namespace": "ns", "labels": labels}
        self.assertEqual(warnings_for("discovery.k8s.io", "EndpointSlice", metadata=meta, **odd), [])
