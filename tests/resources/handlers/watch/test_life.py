"""Tests for L{kubetwist.resources.handlers.watch}: the start and end of watches, over HTTP in memory."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers import watch as watching
from kubetwist.resources.handlers.watch import (
    WatchFlusher,
    WatchMetrics,
)
from tests.metrics.reading import parse_snapshots
from tests.resources.handlers.watch.watchcase import END, MAPS, WatchTestCase
from tests.resources.server import events


class LifeTests(WatchTestCase):
    """The start and end of watches."""

    def watched(self) -> int:
        """Return the number of watches of the cache."""
        return sum(map(len, self.cache()._watches.values()))

    def test_head_comes_at_once(self) -> None:
        """The head of the response is sent before the first event."""
        data = self.client.begin(f"{MAPS}?watch=1&resourceVersion={self.revision()}")
        self.assertTrue(data.endswith(b"\r\n\r\n"))
        self.assertIn(b"Transfer-Encoding: chunked", data)

    def test_client_goes(self) -> None:
        """When the client disconnects, the watch and its timers are removed."""
        calls = len(self.server.clock.getDelayedCalls())
        self.watch("allowWatchBookmarks=true")
        self.assertEqual(self.watched(), 1)
        self.client.disconnect()
        self.assertEqual(self.watched(), 0)
        self.assertEqual(len(self.server.clock.getDelayedCalls()), calls)
        self.assertEqual(self.server.site.long_running_requests, {})

    def test_negative_timeout(self) -> None:
        """A watch with a negative timeout ends immediately."""
        self.watch(f"timeoutSeconds=-1&resourceVersion={self.revision()}")
        self.create("c")
        self.assertEqual(self.more(), [])

    def test_timeout(self) -> None:
        """A watch ends cleanly at its timeout: the connection can be reused."""
        self.watch(f"timeoutSeconds=10&resourceVersion={self.revision()}")
        self.server.clock.advance(9)
        self.assertEqual(self.client.taken(), b"")
        self.server.clock.advance(1)
        self.assertEqual(self.client.taken(), END)
        self.assertEqual(self.watched(), 0)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a")[0], 200)

    def test_default_timeout(self) -> None:
        """A watch without a timeout lasts between once and twice the minimum."""
        self.patch(watching.random, "random", lambda: 0.5)
        self.watch(f"resourceVersion={self.revision()}")
        self.server.clock.advance(1800 * 1.5 - 1)
        self.assertEqual(self.client.taken(), b"")
        self.server.clock.advance(1)
        self.assertEqual(self.client.taken(), END)

    def test_bookmarks(self) -> None:
        """A watch that requests bookmarks gets one per minute, and one shortly before its end."""
        self.watch(f"allowWatchBookmarks=true&timeoutSeconds=130&resourceVersion={self.revision()}")
        self.writer.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "unrelated"}})
        seen = []
        for moment in range(131):
            self.server.clock.advance(1)
            self.server.clock.advance(0)
            data = self.client.taken().removesuffix(END)
            seen += [(moment + 1, one) for one in events(data)]
        self.assertEqual([moment for moment, _ in seen], [60, 120, 128])
        self.assertEqual({one["type"] for _, one in seen}, {"BOOKMARK"})
        self.assertEqual(seen[0][1]["object"]["metadata"], {"resourceVersion": str(self.revision())})

    def test_no_bookmarks(self) -> None:
        """A watch that does not request bookmarks gets none."""
        self.watch(f"resourceVersion={self.revision()}")
        self.server.clock.advance(100)
        self.assertEqual(self.more(), [])

    def test_server_stops(self) -> None:
        """When the server stops, watches end cleanly."""
        self.watch(f"resourceVersion={self.revision()}")
        self.server.site.end_long_running()
        self.assertEqual(self.client.taken(), END)
        self.assertEqual(self.watched(), 0)

    def test_cache_starts_over(self) -> None:
        """After a loss of the store, watches end with an error that makes clients list again."""
        self.watch(f"resourceVersion={self.revision()}")
        self.cache().ended(RuntimeError("lost"))
        data = self.client.taken()
        (event,) = events(data.removesuffix(END))
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))
        self.assertTrue(data.endswith(END))

    def test_not_filled(self) -> None:
        """A watch of a cache that is not initialized is answered with a retry."""
        self.cache().ready = False
        code, status = self.client.ask("GET", f"{MAPS}?watch=1")
        self.assertEqual((code, status["reason"]), (429, "TooManyRequests"))


class WatchTallyTests(SynchronousTestCase):
    """L{WatchMetrics}."""

    def test_same_event(self) -> None:
        """An event that several watches write is counted for each of them."""
        metrics = WatchMetrics()
        event, other = b"x" * 100, b"y" * 5000
        for data in (event, event, event, other):
            metrics.observe(data)
        metrics.flush_pending()
        self.assertEqual((metrics.sizes.count, metrics.sizes.sum), (4, 5300))
        self.assertEqual(metrics.sizes.counts[0], 3)
        metrics.flush_pending()
        self.assertEqual(metrics.sizes.count, 4)

    def test_several(self) -> None:
        """Events that are written together are counted separately, whether small or large."""
        metrics = WatchMetrics()
        metrics.observe_all([b"x" * 10, b"x" * 1024])
        metrics.observe_all([b"x" * 10, b"x" * 3000, b"x" * 1_000_000])
        self.assertEqual(metrics.sizes.count, 5)
        self.assertEqual((metrics.sizes.counts[0], metrics.sizes.counts[2], metrics.sizes.counts[-1]), (3, 1, 1))

    def test_terminated(self) -> None:
        """Terminated watches are counted by resource, regardless of their version."""
        flusher = WatchFlusher(Clock())
        for version in ("v1", "v2"):
            flusher.metrics(SimpleNamespace(group="g", version=version, resource="things")).terminated += 2
        flusher.metrics(SimpleNamespace(group="g", version="v1", resource="others"))
        terminated_watchers = parse_snapshots(*flusher.collect())["apiserver_terminated_watchers_total"]
        self.assertEqual(terminated_watchers, {(("group", "g"), ("resource", "things")): 4.0})
