"""Tests of L{kubetwist.client.caching}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.caching import ExpiringCache


class ExpiringCacheTests(SynchronousTestCase):
    """L{ExpiringCache<kubetwist.client.caching.ExpiringCache>}."""

    def setUp(self) -> None:
        """Create a cache for two values."""
        self.clock = Clock()
        self.cache: ExpiringCache[str, int] = ExpiringCache(2, self.clock.seconds)

    def test_expiry(self) -> None:
        """A value is returned until it expires."""
        self.cache.put("a", 1, 10)
        self.clock.advance(9)
        self.assertEqual(self.cache.get("a"), 1)
        self.clock.advance(2)
        self.assertIsNone(self.cache.get("a"))

    def test_size(self) -> None:
        """A full cache drops the least recently used value."""
        self.cache.put("a", 1, 10)
        self.cache.put("b", 2, 10)
        self.cache.get("a")
        self.cache.put("c", 3, 10)
        self.assertEqual([self.cache.get(key) for key in "abc"], [1, None, 3])
        self.assertEqual(len(self.cache), 2)
