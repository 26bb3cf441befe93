"""Tests for L{kubetwist.resources.handlers.watch}: watches, over HTTP in memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.resources.handlers import watch as watching
from kubetwist.resources.handlers.watch import (
    Flusher,
    WatchTally,
)
from kubetwist.storage.cache.watchcache import WatchCache
from tests.metrics.reading import told
from tests.resources.server import JSONClient, Server, config_map, events, pod

MAPS = "/api/v1/namespaces/default/configmaps"


END = b"0\r\n\r\n"


def summary(found: list[Any]) -> list[tuple[str, str]]:
    """The kinds of events, and the names they are about."""
    return [(one["type"], one["object"]["metadata"].get("name", "")) for one in found]


class WatchTestCase(SynchronousTestCase):
    """A test with a server, one who writes and one who watches."""

    def setUp(self) -> None:
        """Two ConfigMaps."""
        self.server = Server("configmaps", "pods", "namespaces")
        self.writer, self.client = self.server.client(), self.server.client()
        for name in "ab":
            self.create(name)

    def cache(self) -> WatchCache:
        """That of ConfigMaps."""
        return self.server.stores.get("", "configmaps").cache

    def create(self, name: str, **labels: str) -> None:
        """Write a new one."""
        obj = config_map(name)
        obj["metadata"]["labels"] = labels
        self.assertEqual(self.writer.ask("POST", MAPS, obj)[0], 201)

    def relabel(self, name: str, **labels: str) -> None:
        """Write labels."""
        patch = {"metadata": {"labels": labels}}
        answer = self.writer.answer("PATCH", f"{MAPS}/{name}", patch, Content_Type="application/merge-patch+json")
        self.assertEqual(answer.code, 200)

    def revision(self) -> int:
        """The newest."""
        revision: int = self.server.backend.revision
        return revision

    def watch(self, query: str, client: JSONClient | None = None, path: str = MAPS) -> list[Any]:
        """Begin a watch; give the events that come at once."""
        client = client or self.client
        head, separator, body = client.begin(f"{path}?watch=1&{query}").partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
        self.assertTrue(separator)
        return events(body) + self.more(client)

    def more(self, client: JSONClient | None = None) -> list[Any]:
        """The events that have come since."""
        self.server.clock.advance(0)
        return events((client or self.client).taken())


class WatchTests(WatchTestCase):
    """What a watch shows."""

    def test_from_a_revision(self) -> None:
        """A watch from a revision shows what came after it, then what comes."""
        then = self.revision()
        self.create("c")
        self.assertEqual(summary(self.watch(f"resourceVersion={then}")), [("ADDED", "c")])
        self.writer.ask("PUT", f"{MAPS}/c", config_map("c", x="1"))
        self.writer.ask("DELETE", f"{MAPS}/c")
        found = self.more()
        self.assertEqual(summary(found), [("MODIFIED", "c"), ("DELETED", "c")])
        self.assertEqual(found[0]["object"]["data"], {"x": "1"})
        self.assertEqual(found[0]["object"]["kind"], "ConfigMap")
        self.assertEqual(found[1]["object"]["metadata"]["resourceVersion"], str(self.revision()))

    def test_initial_state(self) -> None:
        """A watch without a revision, or from 0, begins with what is there; one may decline that."""
        for query in ("", "resourceVersion=0"):
            client = self.server.client()
            self.assertEqual(summary(self.watch(query, client)), [("ADDED", "a"), ("ADDED", "b")], query)
        query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        self.assertEqual(self.watch(query), [])

    def test_end_of_initial_events(self) -> None:
        """A client that asks for the initial events in the watch is told where they end."""
        query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        found = self.watch(query)
        self.assertEqual(summary(found), [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")])
        meta = found[-1]["object"]["metadata"]
        self.assertEqual(meta["annotations"], {"k8s.io/initial-events-end": "true"})
        self.assertEqual(meta["resourceVersion"], str(self.revision()))
        self.assertEqual(found[-1]["object"]["kind"], "ConfigMap")

    def test_initial_events_and_the_future(self) -> None:
        """The initial events wait for the revision asked for; if it does not come, the watch ends with an error."""
        ahead = self.revision() + 5
        query = (
            f"sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&resourceVersion={ahead}"
        )
        later = self.server.client()
        for client in (self.client, later):
            self.assertEqual(
                client.begin(f"{MAPS}?watch=1&{query}0" if client is later else f"{MAPS}?watch=1&{query}"), b""
            )
        for number in range(5):
            self.relabel("a", x=str(number))
        _, _, body = self.client.taken().partition(b"\r\n\r\n")
        self.assertEqual(summary(events(body) + self.more())[:2], [("ADDED", "a"), ("ADDED", "b")])
        self.server.clock.advance(4)
        _, _, body = later.taken().partition(b"\r\n\r\n")
        (found,) = events(body)
        self.assertEqual((found["type"], found["object"]["code"]), ("ERROR", 504))

    def test_namespace(self) -> None:
        """A watch shows its own namespace, or all."""
        everywhere = self.server.client()
        self.watch(f"resourceVersion={self.revision()}", everywhere, "/api/v1/configmaps")
        self.watch(f"resourceVersion={self.revision()}")
        self.writer.ask("POST", "/api/v1/namespaces/other/configmaps", config_map("o", "other"))
        self.assertEqual(summary(self.more(everywhere)), [("ADDED", "o")])
        self.assertEqual(self.more(), [])

    def test_as_a_list(self) -> None:
        """Events are no lists: whoever wants them as such has the watch end at the first one."""
        for query in (f"resourceVersion={self.revision()}", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"):
            client = self.server.client()
            accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
            head, _, body = client.begin(f"{MAPS}?watch=1&{query}", Accept=accept).partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
            self.relabel("a", x=query[:1])
            self.server.clock.advance(0)
            self.assertEqual(body + client.taken(), END)

    def test_one_object(self) -> None:
        """A field selector, or the older path, watches one object."""
        older = self.server.client()
        query = f"resourceVersion={self.revision()}"
        self.watch(f"{query}&fieldSelector=metadata.name%3Da")
        self.watch(query, older, "/api/v1/watch/namespaces/default/configmaps/a")
        self.relabel("a", x="1")
        self.relabel("b", x="1")
        for client in (self.client, older):
            self.assertEqual(summary(self.more(client)), [("MODIFIED", "a")])

    def test_transitions(self) -> None:
        """What begins to match is ADDED; what ceases to is DELETED, as it was, at the revision of the change."""
        self.watch(f"resourceVersion={self.revision()}&labelSelector=tier%3Dfront")
        self.relabel("a", tier="front")
        self.relabel("a", tier="front", x="1")
        self.relabel("a", tier="back")
        self.relabel("a", tier="side")
        found = self.more()
        self.assertEqual(summary(found), [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")])
        self.assertEqual(found[-1]["object"]["metadata"]["labels"], {"tier": "front", "x": "1"})
        self.assertEqual(found[-1]["object"]["metadata"]["resourceVersion"], str(self.revision() - 1))

    def test_fields(self) -> None:
        """Transitions count for field selectors as well."""
        path = "/api/v1/namespaces/default/pods"
        self.writer.ask("POST", path, pod("p"))
        self.watch("fieldSelector=spec.nodeName%3Dn", path=path)
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
        self.assertEqual(self.writer.ask("POST", f"{path}/p/binding", binding)[0], 201)
        self.assertEqual(summary(self.more()), [("ADDED", "p")])

    def test_too_old(self) -> None:
        """A watch from a compacted revision is a stream of one ERROR event: 410, reason Expired."""
        then = self.revision()
        self.create("c")
        self.create("d")
        self.successResultOf(self.server.backend.compact(self.revision()))
        head, _, body = self.client.begin(f"{MAPS}?watch=1&resourceVersion={then}").partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "))
        (event,) = events(body)
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))
        self.assertEqual(event["object"]["reason"], "Expired")
        self.assertTrue(body.endswith(END))

    def test_refused(self) -> None:
        """A watch that makes no sense is refused before it begins."""
        for query, code in (
            ("resourceVersion=x", 500),
            ("fieldSelector=data.x%3D1", 400),
            ("labelSelector=a%20b", 400),
        ):
            self.assertEqual(self.client.ask("GET", f"{MAPS}?watch=1&{query}")[0], code, query)
        named = "/api/v1/watch/namespaces/default/configmaps/a?fieldSelector=metadata"
        for term in (".name%3Db", ".name!%3Db", ".namespace%3Ddefault"):
            found = self.client.ask("GET", f"{named}{term}")
            self.assertEqual(found[0], 400, term)
            self.assertEqual(found[1]["message"], "fieldSelector metadata.name doesn't match requested name")
        self.assertEqual(self.client.answer("GET", f"{MAPS}?watch=1", Accept="application/yaml").code, 406)

    def test_from_the_future(self) -> None:
        """A watch from a revision that is not there yet begins when it comes."""
        self.assertEqual(self.watch(f"resourceVersion={self.revision() + 1}"), [])
        self.create("c")
        self.create("d")
        self.assertEqual(summary(self.more()), [("ADDED", "d")])

    def test_older_objects_from_the_future(self) -> None:
        """It tells of objects that were there before as every other watch: of their changes, and their deletion."""
        selecting = self.server.client()
        self.relabel("a", app="x")
        then = self.revision() + 1
        self.assertEqual(self.watch(f"resourceVersion={then}"), [])
        self.assertEqual(self.watch(f"resourceVersion={then}&labelSelector=app%3Dx", selecting), [])
        self.create("c")
        self.relabel("b", app="y")
        self.writer.ask("DELETE", f"{MAPS}/a")
        self.assertEqual(summary(self.more()), [("MODIFIED", "b"), ("DELETED", "a")])
        self.assertEqual(summary(self.more(selecting)), [("DELETED", "a")])

    def test_encoded_once(self) -> None:
        """All watches that show an event alike are written the same bytes."""
        clients = [self.server.client() for _ in range(3)]
        for client in clients:
            self.watch(f"resourceVersion={self.revision()}", client)
        self.create("c")  # The first event of a watch may be special; those after it are shared.
        self.create("d")
        self.server.clock.advance(0)
        written = [client.taken() for client in clients]
        self.assertEqual(len(set(written)), 1)


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
        self.assertEqual(self.server.site.long_running, {})

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


class SlowReaderTests(WatchTestCase):
    """Readers that do not keep up."""

    def setUp(self) -> None:
        """A watch whose connection takes nothing more."""
        super().setUp()
        self.watch(f"resourceVersion={self.revision()}")
        self.client.channel.pauseProducing()

    def streams(self) -> list[watching.WatchStream]:
        """Return the streams that watch ConfigMaps."""
        return [watch.sink for watches in self.cache()._watches.values() for watch in watches]  # type: ignore[misc]

    def test_waits(self) -> None:
        """Events wait while the reader is slow, and come in order when it goes on."""
        for name in "cde":
            self.create(name)
        self.assertEqual(self.more(), [])
        self.client.channel.resumeProducing()
        self.assertEqual(summary(self.more()), [("ADDED", "c"), ("ADDED", "d"), ("ADDED", "e")])
        self.create("f")
        self.assertEqual(summary(self.more()), [("ADDED", "f")])

    def test_waits_in_the_cache(self) -> None:
        """The stream of a slow reader keeps no events, whatever their number."""
        for number in range(30):
            self.writer.ask("POST", MAPS, config_map(f"m-{number}", x="x" * 20_000))
        (stream,) = self.streams()
        self.assertEqual((self.more(), stream._waiting, stream._unread), ([], [], 0))
        self.client.channel.resumeProducing()
        found = self.more()
        while more := self.more():
            found += more
        self.assertEqual(summary(found), [("ADDED", f"m-{number}") for number in range(30)])

    def test_cut_off(self) -> None:
        """A reader that reads nothing for a minute is disconnected, and its memory is freed; others continue."""
        other = self.server.client()
        self.watch(f"resourceVersion={self.revision()}", other)
        for name in "cdefghij":
            self.create(name)
        self.server.clock.advance(watching.PATIENCE - 1)
        self.assertFalse(self.client.transport.disconnected)
        self.server.clock.advance(1)
        self.assertTrue(self.client.transport.disconnected)
        self.assertEqual(len(self.more(other)), 8)
        self.assertEqual(len(self.streams()), 1)

    def test_patience(self) -> None:
        """A reader that reads something gets another minute."""
        for _ in range(3):
            self.create(f"m-{self.revision()}")
            self.server.clock.advance(watching.PATIENCE - 1)
            self.client.channel.resumeProducing()
            self.client.channel.pauseProducing()
        self.assertFalse(self.client.transport.disconnected)

    def test_end(self) -> None:
        """A watch that ends while its reader is slow ends regularly; the next watch shows the events it missed."""
        then = self.revision()
        self.create("c")
        (stream,) = self.streams()
        stream.end()
        self.assertEqual(self.client.taken(), END)
        self.assertEqual(summary(self.watch(f"resourceVersion={then}", self.server.client())), [("ADDED", "c")])

    def test_gone(self) -> None:
        """A slow reader that hangs up leaves nothing behind."""
        self.create("c")
        self.client.gone()
        self.create("d")
        self.assertEqual(self.cache()._watches, {})


class UnreadTests(WatchTestCase):
    """Readers that read one piece at a time, or nothing."""

    def setUp(self) -> None:
        """Objects of 2 MB."""
        super().setUp()
        self.names = [f"m-{number:03}" for number in range(100)]
        for name in self.names:
            self.create_large(name, 20_000)

    def create_large(self, name: str, size: int) -> None:
        """Write an object of a size in bytes; half of them are metadata."""
        obj = config_map(name, x="x" * (size // 2))
        obj["metadata"]["annotations"] = {"note": "n" * min(size // 2, 200_000)}
        self.assertEqual(self.writer.ask("POST", MAPS, obj)[0], 201)

    def unread(
        self, query: str, accept: str = "application/json"
    ) -> tuple[JSONClient, watching.WatchStream, list[int]]:
        """Begin a watch whose transport is full after each write; collect the sizes of writes."""
        client = self.server.client()
        write, sizes = client.transport.write, []

        def full(data: bytes) -> None:
            write(data)
            sizes.append(len(data))
            client.channel.pauseProducing()

        client.transport.write = full  # type: ignore[method-assign]
        self.begun = client.begin(f"{MAPS}?watch=1&{query}", Accept=accept)
        self.server.clock.advance(0)
        stream: Any = [watch.sink for watches in self.cache()._watches.values() for watch in watches][-1]
        return client, stream, sizes

    def test_bound(self) -> None:
        """At most one piece of the initial events of an unread watch is encoded, in any form."""
        table = "application/json;as=Table;v=v1;g=meta.k8s.io"
        metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
        for accept in ("application/json", table, metadata, "application/vnd.kubernetes.protobuf;stream=watch"):
            client, stream, sizes = self.unread("", accept)
            client.channel.resumeProducing()
            self.server.clock.advance(0)
            self.assertGreater(sum(sizes), 10_000, accept)
            self.assertLess(sum(sizes) + stream._unread, 3 * watching.PIECE, accept)
            client.gone()

    def test_pieces(self) -> None:
        """The initial events of a large collection are written at the pace of their reader, and completely."""
        query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        client, stream, sizes = self.unread(query)
        data = self.begun.partition(b"\r\n\r\n")[2] + client.taken()
        for _ in range(100):
            before = len(sizes)
            client.channel.resumeProducing()
            self.server.clock.advance(0)
            self.assertLessEqual(len(sizes) - before, 1)
            self.assertLess(stream._unread, 2 * watching.PIECE)
            data += client.taken()
            if b"BOOKMARK" in data:
                break
        self.assertGreater(len(sizes), 20)
        self.assertLess(max(sizes), 2 * watching.PIECE)
        found = events(data)
        self.assertEqual([name for _, name in summary(found)], ["a", "b", *self.names, ""])
        self.assertEqual(found[-1]["object"]["metadata"]["resourceVersion"], str(self.revision()))

    def test_large_object(self) -> None:
        """A large object is encoded once for all simultaneous streams, and written in pieces."""
        self.create_large("a-large", 1_000_000)
        streams = [self.unread("fieldSelector=metadata.name%3Da-large") for _ in range(2)]
        encoded = {id(event) for _, stream, _ in streams for event in stream._waiting}
        self.assertEqual(len(encoded), 1)
        flusher = streams[0][1]._flusher
        self.assertEqual(len(flusher._shared), 1)
        for client, stream, sizes in streams:
            data = client.taken()
            while stream._waiting:
                client.channel.resumeProducing()
                self.server.clock.advance(0)
                data += client.taken()
            self.assertGreater(len(sizes), 10)
            self.assertLess(max(sizes), 2 * watching.PIECE)
            (event,) = events(data.rpartition(b"\r\n\r\n")[2] or data)
            self.assertEqual(len(event["object"]["data"]["x"]), 500_000)
        self.assertEqual(len(flusher._shared), 0)

    def test_no_progress(self) -> None:
        """A watch whose initial events are not read is closed after a minute."""
        client, _, _ = self.unread("")
        self.server.clock.advance(watching.PATIENCE)
        self.assertTrue(client.transport.disconnected)
        self.assertEqual(self.cache()._watches, {})

    def test_end_amid_an_object(self) -> None:
        """A watch that ends within an unread object is aborted, so that its client does not consider it complete."""
        self.create_large("a-large", 1_000_000)
        client, stream, _ = self.unread("fieldSelector=metadata.name%3Da-large")
        client.channel.resumeProducing()
        stream.end()
        self.assertFalse(client.taken().endswith(END))
        self.assertTrue(client.transport.disconnected)

    def test_failing_flush(self) -> None:
        """A stream that cannot be written is closed, and others are written."""
        others = [self.server.client() for _ in range(2)]
        self.watch(f"resourceVersion={self.revision()}", others[0])
        self.watch(f"resourceVersion={self.revision()}")
        self.watch(f"resourceVersion={self.revision()}", others[1])
        stream = self.cache()._watches["default/"][1].sink

        def fail(data: object, whole: bool = True) -> None:
            raise ValueError("as a test")

        stream._send = fail  # type: ignore[attr-defined]
        self.create("c")
        self.assertEqual([summary(self.more(other)) for other in others], [[("ADDED", "c")]] * 2)
        self.assertTrue(self.client.transport.disconnected)
        self.assertEqual(len(self.flushLoggedErrors(ValueError)), 1)
        self.assertEqual(len(self.cache()._watches["default/"]), 2)

    def test_failing_encoder(self) -> None:
        """A stream whose objects cannot be encoded is closed."""
        client, stream, _ = self.unread("")
        stream._encoder = None
        for _ in range(5):
            client.channel.resumeProducing()
            self.server.clock.advance(0)
        self.assertTrue(client.transport.disconnected)
        self.assertNotEqual(self.flushLoggedErrors(AttributeError), [])


class PastTests(WatchTestCase):
    """Watches from before the window of past events."""

    def setUp(self) -> None:
        """A window of four events."""
        super().setUp()
        self.then = self.revision()
        self.cache()._window._max_events = 4

    def test_from_the_store(self) -> None:
        """A watch from a revision that the cache has dropped, but the store has, shows all later events."""
        self.relabel("a", tier="front")
        self.relabel("a", tier="back")
        self.writer.ask("DELETE", f"{MAPS}/b")
        for name in "cdefghij":
            self.create(name)
        expected = [("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "b"), *[("ADDED", name) for name in "cdefghij"]]
        self.assertEqual(summary(self.watch(f"resourceVersion={self.then}")), expected)
        found = self.watch(f"resourceVersion={self.then}&labelSelector=tier%3Dfront", self.server.client())
        self.assertEqual(summary(found), [("ADDED", "a"), ("DELETED", "a")])
        self.assertEqual(found[1]["object"]["metadata"]["labels"], {"tier": "front"})
        self.assertEqual(found[1]["object"]["metadata"]["resourceVersion"], str(self.then + 2))

    def test_slow_reader(self) -> None:
        """A reader that falls behind the window misses no event that the store has."""
        self.watch(f"resourceVersion={self.then}")
        self.client.channel.pauseProducing()
        for name in "cdefghijklm":
            self.create(name)
        self.client.channel.resumeProducing()
        self.assertEqual([name for _, name in summary(self.more())], list("cdefghijklm"))

    def test_compacted_meanwhile(self) -> None:
        """A reader that falls behind the store's history gets 410 with the reason Expired."""
        self.watch(f"resourceVersion={self.then}")
        self.client.channel.pauseProducing()
        for name in "cdefghijklm":
            self.create(name)
        self.successResultOf(self.server.backend.compact(self.revision()))
        self.client.channel.resumeProducing()
        self.server.clock.advance(0)
        (event,) = events(self.client.taken().removesuffix(END))
        self.assertEqual((event["type"], event["object"]["code"]), ("ERROR", 410))


class WatchTallyTests(SynchronousTestCase):
    """Events are counted for each watch, their sizes looked at once."""

    def test_same_event(self) -> None:
        """An event that several watches write counts for each of them."""
        tally = WatchTally()
        event, other = b"x" * 100, b"y" * 5000
        for data in (event, event, event, other):
            tally.one(data)
        tally.settle()
        self.assertEqual((tally.sizes.count, tally.sizes.sum), (4, 5300))
        self.assertEqual(tally.sizes.counts[0], 3)
        tally.settle()
        self.assertEqual(tally.sizes.count, 4)

    def test_several(self) -> None:
        """Of events that are written together each counts, small ones and others."""
        tally = WatchTally()
        tally.several([b"x" * 10, b"x" * 1024])
        tally.several([b"x" * 10, b"x" * 3000, b"x" * 1_000_000])
        self.assertEqual(tally.sizes.count, 5)
        self.assertEqual((tally.sizes.counts[0], tally.sizes.counts[2], tally.sizes.counts[-1]), (3, 1, 1))

    def test_cut_off(self) -> None:
        """Watches that were cut off are told of by resource, whatever version they are of."""
        flusher = Flusher(Clock())
        for version in ("v1", "v2"):
            flusher.tally(SimpleNamespace(group="g", version=version, resource="things")).terminated += 2
        flusher.tally(SimpleNamespace(group="g", version="v1", resource="others"))
        cut = told(*flusher.readings())["apiserver_terminated_watchers_total"]
        self.assertEqual(cut, {(("group", "g"), ("resource", "things")): 4.0})
