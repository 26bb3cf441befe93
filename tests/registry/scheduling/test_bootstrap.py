"""Tests for L{kubetwist.registry.scheduling.bootstrap}."""

from __future__ import annotations

from kubetwist.registry.scheduling.bootstrap import ensure_priority_classes
from tests.registry.generic.bootstrapcase import BootstrapTestCase


class PriorityClassTests(BootstrapTestCase):
    """Tests for L{ensure_priority_classes}."""

    def test_order(self) -> None:
        """Node-critical priority is higher than cluster-critical, and both are higher than user-defined ones."""
        self.successResultOf(ensure_priority_classes(self.stores))
        node, cluster = (
            self.found("scheduling.k8s.io", "priorityclasses", f"system-{name}-critical")
            for name in ("node", "cluster")
        )
        self.assertGreater(node["value"], cluster["value"])
        self.assertGreater(cluster["value"], 1_000_000_000)
        self.assertFalse(node.get("globalDefault"))
