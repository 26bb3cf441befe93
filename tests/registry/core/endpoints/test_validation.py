"""Tests of L{kubetwist.registry.core.endpoints.validation}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.strategytools import change_problems, problems


class EndpointTests(SynchronousTestCase):
    """Tests of Endpoints and EndpointSlices."""

    def test_stored_invalid_subsets(self) -> None:
        """Invalid subsets of stored Endpoints are accepted while no subset changes."""
        old: dict[str, Any] = {"subsets": [{}]}
        self.assertEqual(change_problems("", "Endpoints", old, old), [])
        self.assertEqual(len(change_problems("", "Endpoints", old, {"subsets": [{}, {}]})), 2)

    def test_too_many(self) -> None:
        """Validation stops at lists that are too long."""

        def found(**parts: Any) -> list[str]:
            return problems("discovery.k8s.io", "EndpointSlice", addressType="IPv4", **parts)

        self.assertEqual(found(endpoints=[{}] * 1001), ["endpoints: Too many: 1001: must have at most 1000 items"])
        self.assertEqual(
            found(ports=[{"protocol": "X"}] * 20001), ["ports: Too many: 20001: must have at most 20000 items"]
        )
        names = [{"name": "a"}] * 9
        hints = {"forZones": names, "forNodes": names}
        self.assertEqual(
            found(endpoints=[{"addresses": ["192.0.2.1"], "hints": hints}]),
            ["endpoints[0].hints.forZones: Too many: 9: must have at most 8 items"],
        )
