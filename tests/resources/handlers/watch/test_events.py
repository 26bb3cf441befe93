"""Tests for L{kubetwist.resources.handlers.watch}: the sent events, over HTTP in memory."""

from __future__ import annotations

from tests.resources.handlers.watch.watchcase import END, MAPS, WatchTestCase, summary
from tests.resources.server import config_map, events, pod


class WatchTests(WatchTestCase):
    """The events of watches."""

    def test_from_a_revision(self) -> None:
        """A watch from a revision sends the changes after it."""
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
        """
        A watch without a revision, or from 0, begins with the existing objects, unless sendInitialEvents is false.
        """
        for query in ("", "resourceVersion=0"):
            client = self.server.client()
            self.assertEqual(summary(self.watch(query, client)), [("ADDED", "a"), ("ADDED", "b")], query)
        query = "sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
        self.assertEqual(self.watch(query), [])

    def test_end_of_initial_events(self) -> None:
        """A bookmark marks the end of requested initial events."""
        query = "sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
        found = self.watch(query)
        self.assertEqual(summary(found), [("ADDED", "a"), ("ADDED", "b"), ("BOOKMARK", "")])
        meta = found[-1]["object"]["metadata"]
        self.assertEqual(meta["annotations"], {"k8s.io/initial-events-end": "true"})
        self.assertEqual(meta["resourceVersion"], str(self.revision()))
        self.assertEqual(found[-1]["object"]["kind"], "ConfigMap")

    def test_initial_events_and_the_future(self) -> None:
        """Initial events wait for the requested revision; if it does not arrive, the watch ends with an error."""
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
        """A watch is limited to a namespace, or shows all."""
        everywhere = self.server.client()
        self.watch(f"resourceVersion={self.revision()}", everywhere, "/api/v1/configmaps")
        self.watch(f"resourceVersion={self.revision()}")
        self.writer.ask("POST", "/api/v1/namespaces/other/configmaps", config_map("o", "other"))
        self.assertEqual(summary(self.more(everywhere)), [("ADDED", "o")])
        self.assertEqual(self.more(), [])

    def test_as_a_list(self) -> None:
        """A watch that requests its events as lists ends at the first event."""
        for query in (f"resourceVersion={self.revision()}", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"):
            client = self.server.client()
            accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
            head, _, body = client.begin(f"{MAPS}?watch=1&{query}", Accept=accept).partition(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
            self.relabel("a", x=query[:1])
            self.server.clock.advance(0)
            self.assertEqual(body + client.taken(), END)

    def test_one_object(self) -> None:
        """A field selector, or the deprecated path, watches one object."""
        older = self.server.client()
        query = f"resourceVersion={self.revision()}"
        self.watch(f"{query}&fieldSelector=metadata.name%3Da")
        self.watch(query, older, "/api/v1/watch/namespaces/default/configmaps/a")
        self.relabel("a", x="1")
        self.relabel("b", x="1")
        for client in (self.client, older):
            self.assertEqual(summary(self.more(client)), [("MODIFIED", "a")])

    def test_transitions(self) -> None:
        """
        An object that begins to match is ADDED; one that ceases to match is DELETED, in its last matching state, at the
        revision of the change.
        """
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
        """Transitions apply to field selectors as well."""
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
        """An invalid watch request is rejected before it begins."""
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
        """A watch from a future revision begins when that arrives."""
        self.assertEqual(self.watch(f"resourceVersion={self.revision() + 1}"), [])
        self.create("c")
        self.create("d")
        self.assertEqual(summary(self.more()), [("ADDED", "d")])

    def test_older_objects_from_the_future(self) -> None:
        """A watch from a future revision sends later changes of older objects, including their deletion."""
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
        """All watches with the same encoding of an event share the bytes."""
        clients = [self.server.client() for _ in range(3)]
        for client in clients:
            self.watch(f"resourceVersion={self.revision()}", client)
        self.create("c")  # The first event of a watch may be special; those after it are shared.
        self.create("d")
        self.server.clock.advance(0)
        written = [client.taken() for client in clients]
        self.assertEqual(len(set(written)), 1)


class PastTests(WatchTestCase):
    """Watches from before the window of cached events."""

    def setUp(self) -> None:
        """Create a cache with a window of four events."""
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

    def test_compacted_during_watch(self) -> None:
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
