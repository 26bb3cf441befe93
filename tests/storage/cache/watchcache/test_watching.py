"""Tests for L{kubetwist.storage.cache.watchcache}: watches."""

from __future__ import annotations

from typing import ClassVar

import orjson

from twisted.internet.defer import Deferred

from kubetwist.api.record import (
    Record,
)
from kubetwist.api.storage import Write
from kubetwist.storage.cache.watches import CacheWatch
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable
from tests.storage.cache.watchcache.cachecase import PREFIX, CacheCase, RecordingSink, drafted, labelled


class WatchingTests(CacheCase):
    """WATCH."""

    def test_changes(self) -> None:
        """A watch sends the changes after its start."""
        self.put("a/before")
        _, sink = self.watch()
        self.put("a/x")
        self.put("a/x")
        self.delete("a/x")
        self.assertEqual(
            sink.wait_until_fresh_or_timeout(), [("ADDED", "a/x", 3), ("MODIFIED", "a/x", 4), ("DELETED", "a/x", 5)]
        )

    def test_deleted_state(self) -> None:
        """A deletion shows the last state, at the revision of the deletion."""
        self.put("a/x", app="last")
        _, sink = self.watch()
        revision = self.delete("a/x")
        (_, record, _) = sink.sent[0]
        meta = orjson.loads(record.item)["metadata"]
        self.assertEqual(meta, {"resourceVersion": str(revision), "name": "a/x", "labels": {"app": "last"}})

    def test_scopes(self) -> None:
        """A watch sends the changes in its scope: all objects, a namespace, or one object."""
        sinks = {scope: self.watch(scope)[1] for scope in ("", "a/", "a/x", "b/", "a/xy", "b", "x")}
        start = self.storage.revision
        for key in ("a/x", "a/y", "b/x", "node"):
            self.put(key)
        expected = {"": ["a/x", "a/y", "b/x", "node"], "a/": ["a/x", "a/y"], "a/x": ["a/x"], "b/": ["b/x"]}
        for scope, sink in sinks.items():
            wait_until_fresh_or_timeout = sink.wait_until_fresh_or_timeout()
            self.assertEqual([key for _, key, _ in wait_until_fresh_or_timeout], expected.get(scope, []))
            self.assertEqual(
                self.watch(scope, revision=start)[1].wait_until_fresh_or_timeout(), wait_until_fresh_or_timeout
            )

    def test_cluster_scoped(self) -> None:
        """Objects without a namespace are watched all together or by name."""
        _, everything = self.watch()
        _, one = self.watch("node-1")
        self.put("node-1")
        self.put("node-2")
        self.assertEqual(len(everything.sent), 2)
        self.assertEqual(one.wait_until_fresh_or_timeout(), [("ADDED", "node-1", 2)])

    def test_past(self) -> None:
        """A watch from an earlier revision begins with the events since."""
        self.put("a/x")
        start = self.put("a/y")
        self.put("a/x")
        self.delete("a/y")
        watch, sink = self.watch(revision=start)
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("MODIFIED", "a/x", 4), ("DELETED", "a/y", 5)])
        self.assertEqual(watch.revision, 5)
        self.put("a/z")
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("ADDED", "a/z", 6)])

    def test_future(self) -> None:
        """A watch from a future revision sends nothing before that revision."""
        watch, sink = self.watch(revision=3)
        self.assertEqual(watch.revision, 3)
        for _ in range(4):
            self.put("a/x")
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("MODIFIED", "a/x", 4), ("MODIFIED", "a/x", 5)])

    def test_initial(self) -> None:
        """A watch with initial events sends the current objects in key order, without a shared event."""
        for key in ("b/x", "a/x", "a/y"):
            self.put(key, app=key[0])
        self.delete("a/y")
        _, sink = self.watch(initial=True)
        self.assertEqual([event for _, _, event in sink.sent], [None, None])
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("ADDED", "a/x", 3), ("ADDED", "b/x", 2)])
        self.put("c/x")
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("ADDED", "c/x", 6)])
        self.assertEqual(self.watch("a/", initial=True)[1].wait_until_fresh_or_timeout(), [("ADDED", "a/x", 3)])
        self.assertEqual(self.watch("a/x", initial=True)[1].wait_until_fresh_or_timeout(), [("ADDED", "a/x", 3)])
        self.assertEqual(self.watch("a/y", initial=True)[1].wait_until_fresh_or_timeout(), [])
        self.assertEqual(
            self.watch(initial=True, match=labelled(app="b"))[1].wait_until_fresh_or_timeout(), [("ADDED", "b/x", 2)]
        )
        self.assertEqual(self.watch("a/x", initial=True, match=labelled(app="b"))[1].wait_until_fresh_or_timeout(), [])

    def test_transitions(self) -> None:
        """Through a selector, a change that begins to match is an addition and one that stops is a deletion."""
        _, sink = self.watch(match=labelled(app="x"))
        start = self.cache.revision
        steps = [
            (lambda: self.put("a/o", app="y"), None),
            (lambda: self.put("a/o", app="x"), "ADDED"),
            (lambda: self.put("a/o", app="x", more="1"), "MODIFIED"),
            (lambda: self.put("a/o", app="y"), "DELETED"),
            (lambda: self.put("a/o", app="z"), None),
            (lambda: self.delete("a/o"), None),
            (lambda: self.put("a/o", app="x"), "ADDED"),
            (lambda: self.delete("a/o"), "DELETED"),
        ]
        expected = []
        for step, kind in steps:
            revision = step()
            if kind is not None:
                expected.append((kind, "a/o", revision))
        remaining = next(record for kind, record, _ in sink.sent if kind == "DELETED")
        self.assertEqual(remaining.labels, {"app": "x", "more": "1"})
        self.assertEqual(orjson.loads(remaining.item)["metadata"]["resourceVersion"], str(remaining.revision))
        self.assertEqual(sink.wait_until_fresh_or_timeout(), expected)
        self.assertEqual(self.watch(match=labelled(app="x"), revision=start)[1].wait_until_fresh_or_timeout(), expected)

    def test_same_selector(self) -> None:
        """A selector is evaluated once per state for all watches that have it."""
        observe_backend_request: list[int] = []

        def match(record: Record) -> bool:
            observe_backend_request.append(record.revision)
            return record.labels.get("app") == "x"

        sinks = [self.watch(match=match)[1] for _ in range(3)]
        everything = self.watch()[1]
        first, second = self.put("a/x", app="x"), self.put("a/x", app="y")
        for sink in sinks:
            self.assertEqual(sink.wait_until_fresh_or_timeout(), [("ADDED", "a/x", first), ("DELETED", "a/x", second)])
        self.assertEqual(
            everything.wait_until_fresh_or_timeout(), [("ADDED", "a/x", first), ("MODIFIED", "a/x", second)]
        )
        self.assertEqual(observe_backend_request, [first, first, second])

    def test_sharing(self) -> None:
        """Watches with the same view of a change get the same event, so that it is encoded once."""
        sinks = [self.watch(scope)[1] for scope in ("", "a/", "a/o")]
        sinks += [self.watch(match=labelled(app="x"))[1] for _ in range(2)]
        self.put("a/o")
        self.put("a/o", app="x")
        self.put("a/o")
        self.assertEqual(
            [[kind for kind, _, _ in sink.sent] for sink in sinks],
            [["ADDED", "MODIFIED", "MODIFIED"]] * 3 + [["ADDED", "DELETED"]] * 2,
        )
        for group in (sinks[:3], sinks[3:]):
            for index in range(len(group[0].sent)):
                self.assertEqual(len({id(sink.sent[index][2]) for sink in group}), 1)
        shared = {id(event) for sink in sinks for _, _, event in sink.sent}
        self.assertEqual(len(shared), 5)

    def test_stop(self) -> None:
        """A stopped watch gets no more events; other watches are not affected."""
        watch, sink = self.watch()
        _, other = self.watch()
        watch.stop()
        watch.stop()
        self.put("a/x")
        self.assertEqual((len(sink.sent), len(other.sent), sink.ends), (0, 1, []))

    def test_stop_in_delivery(self) -> None:
        """A sink may stop its watch, or another watch, while it handles an event."""
        watches: list[CacheWatch] = []
        first, second = RecordingSink(lambda: [watch.stop() for watch in watches]), RecordingSink()
        watches += [self.cache.watch("", sink=first), self.cache.watch("", sink=second)]
        _, third = self.watch()
        self.put("a/x")
        self.put("a/y")
        self.assertEqual([len(sink.sent) for sink in (first, second, third)], [1, 0, 2])

    def test_write_in_delivery(self) -> None:
        """A sink may write; new and existing watches get each change once and in order."""
        later: list[RecordingSink] = []

        def react() -> None:
            if not later:
                later.append(self.watch(revision=1)[1])
                self.storage.commit([Write(PREFIX + "a/second", drafted("second").body, 0)])

        sink = RecordingSink(react)
        self.cache.watch("", sink=sink)
        self.put("a/first")
        for one in (sink, later[0]):
            self.assertEqual(one.wait_until_fresh_or_timeout(), [("ADDED", "a/first", 2), ("ADDED", "a/second", 3)])

    def test_write_in_the_beginning(self) -> None:
        """Changes that a sink writes while it receives past or initial events are sent after them."""
        for options in ({"revision": self.put("a/x") - 1}, {"initial": True}):
            answers: list[Deferred[int]] = []

            def react(answers: list[Deferred[int]] = answers) -> None:
                if len(answers) < 3:
                    draft = drafted("x")
                    answers.append(self.storage.commit([Write(PREFIX + "a/x", draft.body, None)]))

            sink = RecordingSink(react)
            self.cache.watch("", sink=sink, **options)
            revisions = [self.successResultOf(response) for response in answers]
            self.assertEqual(
                [revision for _, _, revision in sink.wait_until_fresh_or_timeout()], [revisions[0] - 1, *revisions]
            )

    def test_transaction(self) -> None:
        """All events of one revision are sent, also to watches that begin in the middle of them."""
        later: list[RecordingSink] = []
        sink = RecordingSink(lambda: later.append(self.watch(revision=1)[1]))
        self.cache.watch("a/x", sink=sink)
        _, running = self.watch()
        writes = [Write(PREFIX + f"a/{name}", drafted(name).body, 0) for name in "xyz"]
        self.successResultOf(self.storage.commit(writes))
        for one in (running, later[0]):
            self.assertEqual(one.wait_until_fresh_or_timeout(), [("ADDED", f"a/{name}", 2) for name in "xyz"])

    def test_failing_sink(self) -> None:
        """A sink that raises loses its watch; other watches are not affected."""
        sink = RecordingSink(lambda: 1 / 0)
        self.cache.watch("", sink=sink)
        _, other = self.watch()
        self.put("a/x")
        self.put("a/y")
        self.assertEqual((len(sink.sent), sink.ends, len(other.sent)), (1, [None], 2))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_stopped_cache(self) -> None:
        """Stopping a cache ends its watches without an error."""
        _, sink = self.watch()
        self.cache.stop()
        self.put("a/x")
        self.assertEqual((sink.sent, sink.ends), ([], [None]))
        self.assertRaises(StorageUnavailable, self.watch)


class WindowTests(CacheCase):
    """The window of past events."""

    limits: ClassVar[dict[str, int]] = {"window_events": 16}

    def test_limited(self) -> None:
        """Watches and lists from before the window are rejected with its oldest revision; later ones are not."""
        for _ in range(100):
            self.put("a/x")
        error = self.assertRaises(RevisionCompacted, self.cache.watch, "", sink=RecordingSink(), revision=50)
        self.assertGreaterEqual(error.oldest, 101 - 16)
        _, sink = self.watch(revision=error.oldest)
        self.assertEqual(
            [revision for _, _, revision in sink.wait_until_fresh_or_timeout()], list(range(error.oldest + 1, 102))
        )
        self.assertRaises(RevisionCompacted, self.cache.list, revision=error.oldest - 1)
        self.assertEqual(self.listed(revision=error.oldest), [("a/x", error.oldest)])

    def test_quiet(self) -> None:
        """A resource without changes keeps all its past events while other resources change."""
        start = self.put("a/x")
        for _ in range(100):
            self.successResultOf(self.storage.commit([Write("/registry/nodes/x", b"", None)]))
        self.put("a/x")
        _, sink = self.watch(revision=start)
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("MODIFIED", "a/x", 103)])
