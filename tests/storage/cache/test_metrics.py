"""Tests for L{kubetwist.storage.cache.metrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache.metrics import CacheMetrics


class CacheTallyTests(SynchronousTestCase):
    """Tests for L{CacheMetrics}."""

    def test_asked(self) -> None:
        """Requests to the storage are timed by operation; failures are also counted."""
        metrics = CacheMetrics()
        metrics.observe_backend_request("create", 0.25)
        metrics.observe_backend_request("create", 0.5, failed=True)
        metrics.observe_backend_request("list", 1.0)
        result = {name: (one.count, one.sum) for name, one in metrics.requests.items()}
        self.assertEqual(result, {"create": (2, 0.75), "list": (1, 1.0)})
        self.assertEqual(metrics.failures, {"create": 1})
