"""Tests for L{kubetwist.storage.cache._ondemand}."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.cache._ondemand import OnDemandFill
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.errors import StorageUnavailable

from .watchcache.cachecase import PREFIX, CacheCase, RecordingSink, decode


class OnDemandFillTests(SynchronousTestCase):
    """Tests for L{OnDemandFill}."""

    def setUp(self) -> None:
        """Postpone a fill."""
        self.fills: list[Deferred[None]] = []
        self.on_demand = OnDemandFill("/registry/pods/", self.fill)
        self.on_demand.pending = True

    async def fill(self) -> None:
        """Fill the cache."""
        self.fills.append(Deferred())
        await self.fills[-1]

    def test_shared(self) -> None:
        """The fill begins once, when it is needed, and all waiters continue at its end."""
        waiting = self.on_demand.wait()
        self.assertEqual([], self.fills)
        needing = [self.on_demand.ensure(), self.on_demand.ensure()]
        self.on_demand.begin()
        (fill,) = self.fills
        self.assertNoResult(waiting)
        fill.callback(None)
        for waiter in (waiting, *needing, self.on_demand.ensure(), self.on_demand.wait()):
            self.assertIsNone(self.successResultOf(waiter))
        self.assertFalse(self.on_demand.pending)

    def test_not_postponed(self) -> None:
        """Without a postponed fill there is nothing to wait for."""
        self.on_demand.pending = False
        self.successResultOf(self.on_demand.ensure())
        self.assertEqual([], self.fills)

    def test_failed(self) -> None:
        """A failed fill is repeated when the cache is needed again."""
        self.on_demand.begin()
        first = self.on_demand.ensure()
        self.fills[0].errback(StorageUnavailable("broken"))
        self.failureResultOf(first, StorageUnavailable)
        second = self.on_demand.ensure()
        self.fills[1].callback(None)
        self.successResultOf(second)

    def test_cancelled(self) -> None:
        """A waiter can be cancelled; the fill continues."""
        first, second = self.on_demand.ensure(), self.on_demand.ensure()
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.fills[0].callback(None)
        self.successResultOf(second)

    def test_stopped(self) -> None:
        """All waits end when the cache is stopped, at once or with the fill that runs."""
        waiting = self.on_demand.wait()
        self.on_demand.stop()
        self.failureResultOf(waiting, StorageUnavailable)
        self.failureResultOf(self.on_demand.ensure(), StorageUnavailable)
        self.assertEqual([], self.fills)
        self.setUp()
        needing = self.on_demand.ensure()
        self.on_demand.stop()
        self.fills[0].callback(None)
        self.failureResultOf(needing, StorageUnavailable)


class CacheTests(CacheCase):
    """A cache that is filled on demand."""

    def on_demand(self, page: int) -> WatchCache:
        """Start a cache over three objects."""
        for name in "xyz":
            self.put(f"a/{name}")
        cache = WatchCache(self.storage, PREFIX, decode, self.clock, page=page)
        self.addCleanup(cache.stop)
        self.successResultOf(Deferred.fromCoroutine(cache.start(on_demand=True)))
        return cache

    def test_small(self) -> None:
        """A cache with at most a page of objects is filled at the start."""
        cache = self.on_demand(3)
        self.assertEqual((cache.ready, cache.on_demand.pending, len(cache)), (True, False, 3))

    def test_large(self) -> None:
        """A larger cache is filled when it is needed; watches before fail, and find all objects after."""
        cache = self.on_demand(2)
        self.assertEqual((cache.ready, cache.on_demand.pending, cache.sizes()), (False, True, (0, 0)))
        sink = RecordingSink()
        self.assertRaises(StorageUnavailable, cache.watch, "", sink=sink)
        revision = self.put("a/w")
        self.successResultOf(cache.on_demand.ensure())
        self.assertEqual((cache.ready, cache.revision, len(cache)), (True, revision, 4))
        self.put("a/v")
        self.assertEqual([record.key for record in cache.list().records], ["a/v", "a/w", "a/x", "a/y", "a/z"])

    def test_reads(self) -> None:
        """A read of a cache that is not filled fails, and begins the fill."""
        reads: tuple[Callable[[WatchCache], object], ...] = (lambda cache: cache.get("a/x"), WatchCache.list)
        for read in reads:
            cache = self.on_demand(2)
            self.assertRaises(StorageUnavailable, read, cache)
            self.assertTrue(cache.ready)
            self.assertTrue(read(cache))

    def test_freshness(self) -> None:
        """A wait for a revision fills the cache."""
        cache = self.on_demand(2)
        self.successResultOf(cache.wait_until_fresh(self.storage.revision))
        self.assertEqual(len(cache), 3)
