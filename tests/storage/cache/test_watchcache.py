"""Tests for L{kubetwist.storage.cache.watchcache}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.api.record import (
    Draft,
    Record,
)
from kubetwist.api.storage import Write
from kubetwist.interfaces import IStorageObserver, IWatchSink
from kubetwist.storage.cache import _table as recordtable
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.cache.watches import CacheWatch
from kubetwist.storage.errors import FutureRevision, RevisionCompacted, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage

PREFIX = "/registry/pods/"


def drafted(name: str, **labels: str) -> Draft:
    """An object."""
    return Draft(orjson.dumps({"metadata": {"name": name, "labels": labels}}), labels, {})


def decode(key: str, value: bytes, revision: int) -> Record:
    """A codec for objects that are stored as they are."""
    return Record.from_draft(key, revision, Draft(value, orjson.loads(value)["metadata"]["labels"], {}))


@implementer(IWatchSink)
class RecordingSink:
    """
    Keeps all it is sent.

    @ivar then: Called after each event.
    """

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.sent: list[tuple[str, Record, Any]] = []
        self.ends: list[Any] = []
        self.then = then

    def send(self, kind: str, record: Record, event: Any) -> None:
        """See L{IWatchSink.send}."""
        self.sent.append((kind, record, event))
        self.then()

    def bookmark(self, revision: int, initial_events_end: bool) -> None:
        """See L{IWatchSink.bookmark}."""

    def end(self, error: Any) -> None:
        """See L{IWatchSink.end}."""
        self.ends.append(error)

    def seen(self) -> list[tuple[str, str, int]]:
        """Kind, key and revision of every event; forgets them."""
        seen = [(kind, record.key, record.revision) for kind, record, _ in self.sent]
        self.sent.clear()
        return seen


def labelled(**labels: str) -> Callable[[Record], bool]:
    """Match records with these labels."""
    return lambda record: all(record.labels.get(name) == value for name, value in labels.items())


class CacheCase(SynchronousTestCase):
    """Has a cache over a store in memory."""

    limits: ClassVar[dict[str, int]] = {}

    def setUp(self) -> None:
        """Start a cache."""
        self.clock = Clock()
        self.storage = MemoryStorage(self.clock)
        self.successResultOf(self.storage.open())
        self.cache = self.started()

    def started(self) -> WatchCache:
        """A cache that follows the store."""
        cache = WatchCache(self.storage, PREFIX, decode, self.clock, **self.limits)
        self.successResultOf(cache.start())
        return cache

    def put(self, key: str, **labels: str) -> int:
        """Write an object; its writer hands over what it knows of it."""
        draft = drafted(key, **labels)
        return self.successResultOf(self.storage.commit([Write(PREFIX + key, draft.body, None, attachment=draft)]))

    def delete(self, key: str) -> int:
        """Delete an object."""
        return self.successResultOf(self.storage.commit([Write(PREFIX + key, None, None)]))

    def listed(self, *args: Any, **kwargs: Any) -> list[tuple[str, int]]:
        """Keys and revisions of what a list finds."""
        return [(record.key, record.revision) for record in self.cache.list(*args, **kwargs).records]

    def watch(self, scope: str = "", **how: Any) -> tuple[CacheWatch, RecordingSink]:
        """Begin a watch."""
        sink = RecordingSink()
        return self.cache.watch(scope, sink=sink, **how), sink


class ReadingTests(CacheCase):
    """GET and LIST."""

    def test_interface(self) -> None:
        """A cache is an observer of its store."""
        verifyObject(IStorageObserver, self.cache)
        verifyObject(IWatchSink, RecordingSink())

    def test_filled(self) -> None:
        """A cache that starts has what is stored, however many pages that takes, and nothing of other resources."""
        for number in range(7):
            self.put(f"a/{number}", app="x")
        revision = self.successResultOf(self.storage.commit([Write("/registry/podsecurity/a", b"{}", 0)]))
        cache = WatchCache(self.storage, PREFIX, decode, self.clock, page=3)
        self.assertFalse(cache.ready)
        self.successResultOf(cache.start())
        self.assertTrue(cache.ready)
        self.assertEqual([record.key for record in cache.list().records], [f"a/{number}" for number in range(7)])
        self.assertEqual((cache.revision, len(cache)), (revision, 7))
        record = cache.get("a/3")
        assert record is not None
        self.assertEqual((record.revision, record.labels), (5, {"app": "x"}))
        self.assertEqual(orjson.loads(record.item)["metadata"]["resourceVersion"], "5")

    def test_get(self) -> None:
        """What was written can be read once the write is answered."""
        self.assertIsNone(self.cache.get("a/x"))
        revision = self.put("a/x")
        record = self.cache.get("a/x")
        assert record is not None
        self.assertEqual((record.revision, record.namespace, record.name), (revision, "a", "x"))
        self.delete("a/x")
        self.assertIsNone(self.cache.get("a/x"))

    def test_other_processes(self) -> None:
        """Changes that come without what their writer knows are decoded."""
        self.successResultOf(self.storage.commit([Write(PREFIX + "a/x", drafted("x", app="y").body, 0)]))
        self.assertEqual(self.listed(match=labelled(app="y")), [("a/x", 2)])

    def test_list(self) -> None:
        """A list is sorted, and limited to a namespace by its prefix."""
        for key in ("b/x", "a/y", "a-b/x", "a/x"):
            self.put(key)
        self.assertEqual(self.listed(), [("a-b/x", 4), ("a/x", 5), ("a/y", 3), ("b/x", 2)])
        self.assertEqual(self.listed("a/"), [("a/x", 5), ("a/y", 3)])
        self.assertEqual(self.listed("none/"), [])
        self.assertEqual(self.cache.list().revision, self.storage.revision)

    def test_pages(self) -> None:
        """A limited list tells where to go on, and how many are left."""
        for key in ("a/1", "a/2", "a/3", "b/1"):
            self.put(key)
        first = self.cache.list("a/", limit=2)
        self.assertEqual([record.key for record in first.records], ["a/1", "a/2"])
        self.assertEqual((first.next_key, first.remaining), ("a/2", 1))
        second = self.cache.list("a/", limit=2, start_after=first.next_key, revision=first.revision)
        self.assertEqual([record.key for record in second.records], ["a/3"])
        self.assertEqual((second.next_key, second.remaining), ("", None))
        exact = self.cache.list("a/", limit=3)
        self.assertEqual((len(exact.records), exact.next_key, exact.remaining), (3, "", None))

    def test_pages_between_chunks(self) -> None:
        """A page that ends where a chunk of the table does is followed by others all the same."""
        self.patch(recordtable, "CHUNK", 2)
        for number in range(4):
            self.put(f"a/{number}")
        self.cache = self.started()
        listing = self.cache.list(limit=2)
        self.assertEqual((listing.next_key, listing.remaining), ("a/1", 2))
        self.assertEqual(self.cache.list(limit=2, start_after="a/1").next_key, "")

    def test_pages_with_match(self) -> None:
        """With a match a page is filled with what matches; how many are left is not known."""
        for number in range(6):
            self.put(f"a/{number}", odd=str(number % 2))
        first = self.cache.list(match=labelled(odd="1"), limit=2)
        self.assertEqual([record.key for record in first.records], ["a/1", "a/3"])
        self.assertEqual((first.next_key, first.remaining), ("a/3", None))
        second = self.cache.list(match=labelled(odd="1"), limit=2, start_after="a/3")
        self.assertEqual([record.key for record in second.records], ["a/5"])
        self.assertEqual(second.next_key, "")

    def test_exact(self) -> None:
        """A list as of an earlier revision shows changed, deleted and not yet created objects as they were."""
        self.put("a/changed", app="x")
        revision = self.put("a/deleted")
        self.put("a/changed", app="y")
        self.delete("a/deleted")
        self.put("a/created")
        listing = self.cache.list(revision=revision)
        self.assertEqual(
            [(record.key, record.revision) for record in listing.records], [("a/changed", 2), ("a/deleted", 3)]
        )
        self.assertEqual(listing.revision, revision)
        self.assertEqual(self.listed(revision=revision, match=labelled(app="x")), [("a/changed", 2)])
        self.assertEqual(self.listed(revision=revision, match=labelled(app="y")), [])

    def test_future(self) -> None:
        """The state at a future revision can not be listed."""
        error = self.assertRaises(FutureRevision, self.cache.list, revision=7)
        self.assertEqual((error.asked, error.revision), (7, 1))

    def test_compacted(self) -> None:
        """When the store forgets, so does the cache."""
        revisions = [self.put("a/x") for _ in range(5)]
        self.successResultOf(self.storage.compact(revisions[2]))
        self.assertRaises(RevisionCompacted, self.cache.list, revision=revisions[1])
        self.assertRaises(RevisionCompacted, self.cache.watch, "", sink=RecordingSink(), revision=revisions[1])
        self.assertEqual(self.listed(revision=revisions[2]), [("a/x", revisions[2])])

    def test_after_restart(self) -> None:
        """A cache that just started knows nothing of the past."""
        old = self.put("a/x")
        self.put("a/x")
        self.cache = self.started()
        self.assertRaises(RevisionCompacted, self.cache.list, revision=old)

    def test_list_at(self) -> None:
        """Revisions before the window are read from the store, page by page, with the same results."""
        for number in range(10):
            self.put(f"a/{number}", odd=str(number % 2))
        self.put("b/0", odd="1")
        revision = self.put("a/3", odd="0")
        self.put("a/5", odd="0")
        self.delete("a/6")

        def answers(cache: WatchCache) -> list[Any]:
            found = []
            for how in (
                {},
                {"limit": 3},
                {"limit": 3, "start_after": "a/7"},
                {"limit": 2, "match": labelled(odd="1")},
                {"limit": 3, "match": labelled(odd="1")},
                {"match": labelled(odd="0"), "start_after": "a/5"},
            ):
                listing = self.successResultOf(cache.list_at("a/", revision=revision, **how))
                found.append(([record.item for record in listing.records], listing.revision, listing.next_key))
            return found

        late = WatchCache(self.storage, PREFIX, decode, self.clock, page=4)
        self.successResultOf(late.start())
        self.assertRaises(RevisionCompacted, late.list, revision=revision)
        self.assertEqual(answers(late), answers(self.cache))
        self.successResultOf(self.storage.compact(revision + 1))
        self.failureResultOf(late.list_at("a/", revision=revision), RevisionCompacted)


class FreshnessTests(CacheCase):
    """Waiting for revisions."""

    def test_here(self) -> None:
        """A revision that the cache has seen needs no waiting."""
        self.assertIsNone(self.successResultOf(self.cache.wait_until(1)))

    def test_comes(self) -> None:
        """Waiting ends when the revision is there, by a write to any resource."""
        waits = [self.cache.wait_until(revision) for revision in (2, 3, 4)]
        self.put("a/x")
        self.successResultOf(self.storage.commit([Write("/registry/nodes/x", b"", 0)]))
        self.successResultOf(waits[0])
        self.successResultOf(waits[1])
        self.assertNoResult(waits[2])
        self.clock.advance(3)
        self.failureResultOf(waits[2], FutureRevision)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_does_not_come(self) -> None:
        """Waiting is limited, and tells what was waited for and what is there."""
        wait = self.cache.wait_until(9, 3.0)
        self.clock.advance(2.9)
        self.assertNoResult(wait)
        self.clock.advance(0.1)
        error = self.failureResultOf(wait, FutureRevision).value
        self.assertEqual((error.asked, error.revision), (9, 1))
        for _ in range(9):
            self.put("a/x")

    def test_cancelled(self) -> None:
        """Who waits no more leaves nothing behind."""
        wait = self.cache.wait_until(2)
        wait.cancel()
        self.failureResultOf(wait, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.put("a/x")

    def test_stopped(self) -> None:
        """A cache that stops ends all waits; later ones fail at once and leave no timer."""
        waits = [self.cache.wait_until(revision) for revision in (2, 3)]
        self.cache.stop()
        waits.append(self.cache.wait_until(4))
        for wait in waits:
            self.failureResultOf(wait, FutureRevision)
        self.assertEqual(self.clock.getDelayedCalls(), [])


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


_changes = st.lists(
    st.tuples(
        st.sampled_from(["a/u", "a/v", "a/w", "b/u", "b/v", "c/u"]),
        st.sampled_from([None, {}, {"app": "x"}, {"app": "x", "more": "1"}]),
    ),
    min_size=1,
    max_size=25,
)


class ModelTests(SynchronousTestCase):
    """The cache against a dictionary."""

    @settings(max_examples=60, deadline=None)
    @given(changes=_changes, limit=st.integers(1, 4), scope=st.sampled_from(["", "a/", "b/"]))
    def test_model(self, changes: list[tuple[str, Any]], limit: int, scope: str) -> None:
        """Every revision is listed as it was, in pages too, and the events between any two make one of the other."""
        self.patch(recordtable, "CHUNK", 2)
        clock = Clock()
        storage = MemoryStorage(clock)
        self.successResultOf(storage.open())
        cache = WatchCache(storage, PREFIX, decode, clock)
        self.successResultOf(cache.start())
        state: dict[str, tuple[int, dict[str, str]]] = {}
        past = {1: dict(state)}
        for key, labels in changes:
            if labels is None:
                if key not in state:
                    continue
                revision = self.successResultOf(storage.commit([Write(PREFIX + key, None, None)]))
                del state[key]
            else:
                draft = drafted(key, **labels)
                write = Write(PREFIX + key, draft.body, None, attachment=draft)
                revision = self.successResultOf(storage.commit([write]))
                state[key] = (revision, labels)
            past[revision] = dict(state)
        for match in (None, labelled(app="x")):
            for revision, then in past.items():
                expected = {
                    key: found
                    for key, (found, labels) in then.items()
                    if key.startswith(scope) and (match is None or labels.get("app") == "x")
                }
                self.check_pages(cache, scope, match, revision, limit, expected, then)
                self.check_watch(cache, scope, match, revision, expected)

    def check_pages(
        self, cache: WatchCache, scope: str, match: Any, revision: int, limit: int, expected: Any, then: Any
    ) -> None:
        """The pages of a list have what was there, in order, and count right."""
        found: list[tuple[str, int]] = []
        after = ""
        while True:
            page = cache.list(scope, match=match, limit=limit, start_after=after, revision=revision)
            found += [(record.key, record.revision) for record in page.records]
            after = page.next_key
            if not after:
                break
            self.assertEqual(len(page.records), limit)
            rest = sum(key.startswith(scope) and key > after for key in then)
            self.assertEqual(page.remaining, rest if match is None else None)
        self.assertEqual(found, sorted(expected.items()))
        whole = cache.list(scope, match=match, revision=revision).records
        self.assertEqual([(record.key, record.revision) for record in whole], found)

    def check_watch(self, cache: WatchCache, scope: str, match: Any, revision: int, expected: dict[str, int]) -> None:
        """A watch from a revision leads from what was listed then to what is listed now."""
        sink = RecordingSink()
        cache.watch(scope, match=match, revision=revision, sink=sink)
        state = dict(expected)
        for kind, record, _ in sink.sent:
            self.assertEqual(record.key in state, kind != "ADDED")
            if kind == "DELETED":
                del state[record.key]
            else:
                state[record.key] = record.revision
        self.assertEqual(state, {record.key: record.revision for record in cache.list(scope, match=match).records})
