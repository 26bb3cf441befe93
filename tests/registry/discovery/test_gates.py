"""Tests of feature gates of EndpointSlices."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.registry.gatetools import created, gated, updated


class GateTests(SynchronousTestCase):
    """Hints for nodes."""

    def test_nodes(self) -> None:
        """Hints for nodes are kept if the gate is enabled or they are in use, and dropped otherwise."""
        endpoints: list[dict[str, Any]] = [{"addresses": ["10.0.0.1"], "hints": {"forNodes": [{"name": "n"}]}}]
        on, off = (
            gated("discovery.k8s.io", "EndpointSlice", (1, 34), PreferSameTrafficDistribution=value)
            for value in (True, False)
        )
        used, unused = created(on, endpoints=endpoints), created(off, endpoints=endpoints)
        self.assertEqual(used["endpoints"][0]["hints"], endpoints[0]["hints"])
        self.assertEqual(unused["endpoints"][0]["hints"], {})
        self.assertEqual(updated(off, used, endpoints=endpoints)["endpoints"], used["endpoints"])
        self.assertEqual(updated(off, unused, endpoints=endpoints)["endpoints"], unused["endpoints"])
