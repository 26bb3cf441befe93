"""Tests for L{kubetwist.storage.cache.metrics}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache.metrics import CacheTally


class CacheTallyTests(SynchronousTestCase):
    """Tests for L{CacheTally}."""

    def test_asked(self) -> None:
        """Requests to the storage are timed by operation; failures are counted besides."""
        tally = CacheTally()
        tally.asked("create", 0.25)
        tally.asked("create", 0.5, failed=True)
        tally.asked("list", 1.0)
        found = {name: (one.count, one.sum) for name, one in tally.requests.items()}
        self.assertEqual(found, {"create": (2, 0.75), "list": (1, 1.0)})
        self.assertEqual(tally.failures, {"create": 1})
