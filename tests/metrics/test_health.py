"""Tests for L{kubetwist.metrics.health}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.metrics.health import HealthMetrics
from kubetwist.metrics.registry import Registry
from tests.metrics.reading import read
from tests.metrics.servercase import MetricsTestCase


class HealthTests(MetricsTestCase):
    """Tests for L{kubetwist.metrics.health}."""

    async def test_health(self) -> None:
        """C{/metrics/slis} has the results of each check."""
        await self.ask("GET", "/readyz")
        labels = {"name": "etcd", "type": "readyz"}
        self.assertGreaterEqual(
            await self.counted("kubernetes_healthchecks_total", "/metrics/slis", status="success", **labels), 1
        )
        self.assertEqual(await self.counted("kubernetes_healthcheck", "/metrics/slis", **labels), 1)


class CheckTests(SynchronousTestCase):
    """Tests for L{HealthMetrics}."""

    def test_checked(self) -> None:
        """The gauge has the result of the last check. The counters count all checks by result."""
        registry = Registry()
        metrics = HealthMetrics(registry)
        for passed in (True, True, False):
            metrics.checked("etcd", "readyz", passed)
        found = read(registry)
        self.assertEqual(list(found["kubernetes_healthcheck"].values()), [0.0])
        totals = {dict(labels)["status"]: value for labels, value in found["kubernetes_healthchecks_total"].items()}
        self.assertEqual(totals, {"success": 2, "error": 1})
