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
        """A watch shows what happens from now on."""
        self.put("a/before")
        _, sink = self.watch()
        self.put("a/x")
        self.put("a/x")
        self.delete("a/x")
        self.assertEqual(sink.seen(), [("ADDED", "a/x", 3), ("MODIFIED", "a/x", 4), ("DELETED", "a/x", 5)])

    def test_deleted_state(self) -> None:
        """A deletion shows the last state, at the revision of the deletion."""
        self.put("a/x", app="last")
        _, sink = self.watch()
        revision = self.delete("a/x")
        (_, record, _) = sink.sent[0]
        meta = orjson.loads(record.item)["metadata"]
        self.assertEqual(meta, {"resourceVersion": str(revision), "name": "a/x", "labels": {"app": "last"}})

    def test_scopes(self) -> None:
        """A watch shows what is in its scope: everything, a namespace, or one object."""
        sinks = {scope: self.watch(scope)[1] for scope in ("", "a/", "a/x", "b/", "a/xy", "b", "x")}
        start = self.storage.revision
        for key in ("a/x", "a/y", "b/x", "node"):
            self.put(key)
        expected = {"": ["a/x", "a/y", "b/x", "node"], "a/": ["a/x", "a/y"], "a/x": ["a/x"], "b/": ["b/x"]}
        for scope, sink in sinks.items():
            seen = sink.seen()
            self.assertEqual([key for _, key, _ in seen], expected.get(scope, []))
            self.assertEqual(self.watch(scope, revision=start)[1].seen(), seen)

    def test_cluster_scoped(self) -> None:
        """Objects without a namespace are watched all together or by name."""
        _, everything = self.watch()
        _, one = self.watch("node-1")
        self.put("node-1")
        self.put("node-2")
        self.assertEqual(len(everything.sent), 2)
        self.assertEqual(one.seen(), [("ADDED", "node-1", 2)])

    def test_past(self) -> None:
        """A watch from an earlier revision begins with what happened since."""
        self.put("a/x")
        start = self.put("a/y")
        self.put("a/x")
        self.delete("a/y")
        watch, sink = self.watch(revision=start)
        self.assertEqual(sink.seen(), [("MODIFIED", "a/x", 4), ("DELETED", "a/y", 5)])
        self.assertEqual(watch.revision, 5)
        self.put("a/z")
        self.assertEqual(sink.seen(), [("ADDED", "a/z", 6)])

    def test_future(self) -> None:
        """A watch from a future revision shows nothing before that one has passed."""
        watch, sink = self.watch(revision=3)
        self.assertEqual(watch.revision, 3)
        for _ in range(4):
            self.put("a/x")
        self.assertEqual(sink.seen(), [("MODIFIED", "a/x", 4), ("MODIFIED", "a/x", 5)])

    def test_initial(self) -> None:
        """A watch with initial events begins with what is there, in the order of keys, without an event to share."""
        for key in ("b/x", "a/x", "a/y"):
            self.put(key, app=key[0])
        self.delete("a/y")
        _, sink = self.watch(initial=True)
        self.assertEqual([event for _, _, event in sink.sent], [None, None])
        self.assertEqual(sink.seen(), [("ADDED", "a/x", 3), ("ADDED", "b/x", 2)])
        self.put("c/x")
        self.assertEqual(sink.seen(), [("ADDED", "c/x", 6)])
        self.assertEqual(self.watch("a/", initial=True)[1].seen(), [("ADDED", "a/x", 3)])
        self.assertEqual(self.watch("a/x", initial=True)[1].seen(), [("ADDED", "a/x", 3)])
        self.assertEqual(self.watch("a/y", initial=True)[1].seen(), [])
        self.assertEqual(self.watch(initial=True, match=labelled(app="b"))[1].seen(), [("ADDED", "b/x", 2)])
        self.assertEqual(self.watch("a/x", initial=True, match=labelled(app="b"))[1].seen(), [])

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
        left = next(record for kind, record, _ in sink.sent if kind == "DELETED")
        self.assertEqual(left.labels, {"app": "x", "more": "1"})
        self.assertEqual(orjson.loads(left.item)["metadata"]["resourceVersion"], str(left.revision))
        self.assertEqual(sink.seen(), expected)
        self.assertEqual(self.watch(match=labelled(app="x"), revision=start)[1].seen(), expected)

    def test_same_selector(self) -> None:
        """A selector is asked once about each state, however many watches have it, and answers for all of them."""
        asked: list[int] = []

        def match(record: Record) -> bool:
            asked.append(record.revision)
            return record.labels.get("app") == "x"

        sinks = [self.watch(match=match)[1] for _ in range(3)]
        everything = self.watch()[1]
        first, second = self.put("a/x", app="x"), self.put("a/x", app="y")
        for sink in sinks:
            self.assertEqual(sink.seen(), [("ADDED", "a/x", first), ("DELETED", "a/x", second)])
        self.assertEqual(everything.seen(), [("ADDED", "a/x", first), ("MODIFIED", "a/x", second)])
        self.assertEqual(asked, [first, first, second])

    def test_sharing(self) -> None:
        """Watches that show the same state in the same way get the same event, so that it is encoded once."""
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
        """A watch that is stopped is sent nothing more, and other watches do not notice."""
        watch, sink = self.watch()
        _, other = self.watch()
        watch.stop()
        watch.stop()
        self.put("a/x")
        self.assertEqual((len(sink.sent), len(other.sent), sink.ends), (0, 1, []))

    def test_stop_in_delivery(self) -> None:
        """A sink may stop its watch, or another's, while it is being sent an event."""
        watches: list[CacheWatch] = []
        first, second = RecordingSink(lambda: [watch.stop() for watch in watches]), RecordingSink()
        watches += [self.cache.watch("", sink=first), self.cache.watch("", sink=second)]
        _, third = self.watch()
        self.put("a/x")
        self.put("a/y")
        self.assertEqual([len(sink.sent) for sink in (first, second, third)], [1, 0, 2])

    def test_write_in_delivery(self) -> None:
        """A sink may write; watches that begin meanwhile, and those that run, see each change once and in order."""
        later: list[RecordingSink] = []

        def react() -> None:
            if not later:
                later.append(self.watch(revision=1)[1])
                self.storage.commit([Write(PREFIX + "a/second", drafted("second").body, 0)])

        sink = RecordingSink(react)
        self.cache.watch("", sink=sink)
        self.put("a/first")
        for one in (sink, later[0]):
            self.assertEqual(one.seen(), [("ADDED", "a/first", 2), ("ADDED", "a/second", 3)])

    def test_write_in_the_beginning(self) -> None:
        """What a sink writes while it is sent the past, or the present, comes next."""
        for how in ({"revision": self.put("a/x") - 1}, {"initial": True}):
            answers: list[Deferred[int]] = []

            def react(answers: list[Deferred[int]] = answers) -> None:
                if len(answers) < 3:
                    draft = drafted("x")
                    answers.append(self.storage.commit([Write(PREFIX + "a/x", draft.body, None)]))

            sink = RecordingSink(react)
            self.cache.watch("", sink=sink, **how)
            revisions = [self.successResultOf(answer) for answer in answers]
            self.assertEqual([revision for _, _, revision in sink.seen()], [revisions[0] - 1, *revisions])

    def test_transaction(self) -> None:
        """Events of one revision are all sent, to watches that begin in the middle of them too."""
        later: list[RecordingSink] = []
        sink = RecordingSink(lambda: later.append(self.watch(revision=1)[1]))
        self.cache.watch("a/x", sink=sink)
        _, running = self.watch()
        writes = [Write(PREFIX + f"a/{name}", drafted(name).body, 0) for name in "xyz"]
        self.successResultOf(self.storage.commit(writes))
        for one in (running, later[0]):
            self.assertEqual(one.seen(), [("ADDED", f"a/{name}", 2) for name in "xyz"])

    def test_failing_sink(self) -> None:
        """A sink that fails loses its watch; others do not notice."""
        sink = RecordingSink(lambda: 1 / 0)
        self.cache.watch("", sink=sink)
        _, other = self.watch()
        self.put("a/x")
        self.put("a/y")
        self.assertEqual((len(sink.sent), sink.ends, len(other.sent)), (1, [None], 2))
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def test_stopped_cache(self) -> None:
        """When a cache stops its watches end, without an error."""
        _, sink = self.watch()
        self.cache.stop()
        self.put("a/x")
        self.assertEqual((sink.sent, sink.ends), ([], [None]))
        self.assertRaises(StorageUnavailable, self.watch)


class WindowTests(CacheCase):
    """How far a cache remembers."""

    limits: ClassVar[dict[str, int]] = {"window_events": 16}

    def test_limited(self) -> None:
        """Watches and lists from before the window are refused with where it begins; later ones are not."""
        for _ in range(100):
            self.put("a/x")
        error = self.assertRaises(RevisionCompacted, self.cache.watch, "", sink=RecordingSink(), revision=50)
        self.assertGreaterEqual(error.oldest, 101 - 16)
        _, sink = self.watch(revision=error.oldest)
        self.assertEqual([revision for _, _, revision in sink.seen()], list(range(error.oldest + 1, 102)))
        self.assertRaises(RevisionCompacted, self.cache.list, revision=error.oldest - 1)
        self.assertEqual(self.listed(revision=error.oldest), [("a/x", error.oldest)])

    def test_quiet(self) -> None:
        """A resource that does not change remembers all of its past, whatever happens to others."""
        start = self.put("a/x")
        for _ in range(100):
            self.successResultOf(self.storage.commit([Write("/registry/nodes/x", b"", None)]))
        self.put("a/x")
        _, sink = self.watch(revision=start)
        self.assertEqual(sink.seen(), [("MODIFIED", "a/x", 103)])
