"""Tests for L{kubetwist.resources.handlers.watch}: how watches begin and end, over HTTP in memory."""

from __future__ import annotations

from types import SimpleNamespace

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers import watch as watching
from kubetwist.resources.handlers.watch import (
    WatchFlusher,
    WatchMetrics,
)
from tests.metrics.reading import told
from tests.resources.handlers.watch.watchcase import END, MAPS, WatchTestCase
from tests.resources.server import events


class LifeTests(WatchTestCase):
    """How watches last, and end."""

    def watched(self) -> int:
        """How many watches the cache has."""
        return sum(map(len, self.cache()._watches.values()))

    def test_head_comes_at_once(self) -> None:
        """The head of the answer is sent before there is any event."""
        data = self.client.begin(f"{MAPS}?watch=1&resourceVersion={self.revision()}")
        self.assertTrue(data.endswith(b"\r\n\r\n"))
        self.assertIn(b"Transfer-Encoding: chunked", data)

    def test_client_goes(self) -> None:
        """When the client hangs up its watch is freed, with its timers."""
        calls = len(self.server.clock.getDelayedCalls())
        self.watch("allowWatchBookmarks=true")
        self.assertEqual(self.watched(), 1)
        self.client.gone()
        self.assertEqual(self.watched(), 0)
        self.assertEqual(len(self.server.clock.getDelayedCalls()), calls)
        self.assertEqual(self.server.site.long_running_requests, {})

    def test_negative_timeout(self) -> None:
        """A watch that should have ended before it began ends at once."""
        self.watch(f"timeoutSeconds=-1&resourceVersion={self.revision()}")
        self.create("c")
        self.assertEqual(self.more(), [])

    def test_timeout(self) -> None:
        """A watch ends when its time is over, in good order: the connection can be used again."""
        self.watch(f"timeoutSeconds=10&resourceVersion={self.revision()}")
        self.server.clock.advance(9)
        self.assertEqual(self.client.taken(), b"")
        self.server.clock.advance(1)
        self.assertEqual(self.client.taken(), END)
        self.assertEqual(self.watched(), 0)
        self.assertEqual(self.client.ask("GET", f"{MAPS}/a")[0], 200)

    def test_timeout_of_its_own(self) -> None:
        """A watch that names no timeout lasts between once and twice the least."""
        self.patch(watching.random, "random", lambda: 0.5)
        self.watch(f"resourceVersion={self.revision()}")
        self.server.clock.advance(1800 * 1.5 - 1)
        self.assertEqual(self.client.taken(), b"")
        self.server.clock.advance(1)
        self.assertEqual(self.client.taken(), END)

    def test_bookmarks(self) -> None:
        """A watch that asks for bookmarks gets one a minute, and one shortly before its end."""
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
        """Who does not ask for bookmarks gets none."""
        self.watch(f"resourceVersion={self.revision()}")
        self.server.clock.advance(100)
        self.assertEqual(self.more(), [])

    def test_server_stops(self) -> None:
        """When the server stops, watches end in good order."""
        self.watch(f"resourceVersion={self.revision()}")
        self.server.site.end_long_running()
        self.assertEqual(self.client.taken(), END)
        self.assertEqual(self.watched(), 0)

    def test_cache_starts_over(self) -> None:
        """When the store is lost for a while, watches end with an error that has clients list again."""
        self.watch(f"resourceVersion={self.revision()}")
        self.cache().ended(RuntimeError("lost"))
        data = self.client.taken()
        (event,) = events(data.removesuffix(END))
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))
        self.assertTrue(data.endswith(END))

    def test_not_filled(self) -> None:
        """A watch on a cache that is being filled is asked to come again."""
        self.cache().ready = False
        code, status = self.client.ask("GET", f"{MAPS}?watch=1")
        self.assertEqual((code, status["reason"]), (429, "TooManyRequests"))


class WatchTallyTests(SynchronousTestCase):
    """Events are counted for each watch, their sizes looked at once."""

    def test_same_event(self) -> None:
        """An event that several watches write counts for each of them."""
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
        """Of events that are written together each counts, small ones and others."""
        metrics = WatchMetrics()
        metrics.observe_all([b"x" * 10, b"x" * 1024])
        metrics.observe_all([b"x" * 10, b"x" * 3000, b"x" * 1_000_000])
        self.assertEqual(metrics.sizes.count, 5)
        self.assertEqual((metrics.sizes.counts[0], metrics.sizes.counts[2], metrics.sizes.counts[-1]), (3, 1, 1))

    def test_cut_off(self) -> None:
        """Watches that were cut off are told of by resource, whatever version they are of."""
        flusher = WatchFlusher(Clock())
        for version in ("v1", "v2"):
            flusher.metrics(SimpleNamespace(group="g", version=version, resource="things")).terminated += 2
        flusher.metrics(SimpleNamespace(group="g", version="v1", resource="others"))
        cut = told(*flusher.collect())["apiserver_terminated_watchers_total"]
        self.assertEqual(cut, {(("group", "g"), ("resource", "things")): 4.0})
