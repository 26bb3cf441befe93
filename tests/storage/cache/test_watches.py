"""Tests for L{kubetwist.storage.cache.watches}: watches that send what their sink accepts."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import given, settings
from hypothesis import strategies as st

from zope.interface import implementer
from zope.interface.verify import verifyObject

from kubetwist.api.record import Record
from kubetwist.api.storage import Write
from kubetwist.interfaces import IPacedSink, IPacedWatch
from kubetwist.storage.cache import _table, indexes
from kubetwist.storage.cache import watches as cachewatch
from kubetwist.storage.cache.indexes import Equality
from kubetwist.storage.cache.watches import PacedWatch
from kubetwist.storage.errors import RevisionCompacted, StorageUnavailable, WatchFailed, WatchInterrupted
from tests.storage.cache.watchcache.cachecase import (
    PREFIX,
    CacheCase,
    RecordingSink,
    drafted,
    labelled,
)

APP_1 = Equality(True, "app", "1")
_KEYS = tuple(f"{namespace}/{name}" for namespace in "ab" for name in "xyz")
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(_KEYS), st.sampled_from("12")),
        st.tuples(st.just("delete"), st.sampled_from(_KEYS), st.just("")),
        st.tuples(st.just("take"), st.integers(1, 4), st.just("")),
        st.tuples(st.just("suspend"), st.just(0), st.just("")),
    ),
    max_size=40,
)


@implementer(IPacedSink)
class PacedSink(RecordingSink):
    """
    A sink that accepts a number of events, and then is full.

    @ivar room: The number that it still accepts.
    @ivar caught: The number of L{caught_up} calls.
    """

    def __init__(self, room: int = 0) -> None:
        super().__init__()
        self.room = room
        self.caught = 0

    @property
    def full(self) -> bool:
        """See L{IPacedSink.full}."""
        return self.room <= 0

    def caught_up(self) -> None:
        """See L{IPacedSink.caught_up}."""
        self.caught += 1

    def send(self, event_type: str, record: Record, event: Any) -> None:
        """See L{IPacedSink.send}."""
        self.room -= 1
        super().send(event_type, record, event)


class PacedCase(CacheCase):
    """Has paced watches."""

    def paced(self, room: int = 0, scope: str = "", **options: Any) -> tuple[PacedWatch, PacedSink]:
        """Begin a watch whose sink accepts a number of events at first."""
        sink = PacedSink(room)
        watch = self.cache.watch_paced(scope, sink=sink, **options)
        watch.resume()
        return watch, sink

    def build_index(self) -> None:
        """Let the cache have an index of a label."""
        self.patch(indexes, "MIN_INDEXED_RECORDS", 0)
        self.patch(_table, "CHUNK", 2)
        for _ in range(2):
            self.cache.find_candidates([APP_1], all_match=True)
        self.clock.advance(0)
        self.assertIsNotNone(self.cache.find_candidates([APP_1], all_match=True))

    def more(self, watch: PacedWatch, sink: PacedSink, room: int) -> list[tuple[str, str, int]]:
        """Let a watch send a number of events; return them."""
        sink.room = room
        watch.resume()
        self.clock.advance(0)
        return sink.wait_until_fresh_or_timeout()


class PacingTests(PacedCase):
    """Number and content of sent events."""

    def test_interfaces(self) -> None:
        """A paced watch provides the interface that sinks suspend and resume."""
        watch, sink = self.paced()
        verifyObject(IPacedWatch, watch)
        verifyObject(IPacedSink, sink)

    def test_initial(self) -> None:
        """The current objects are sent as the sink accepts them, and then the sink learns that they are complete."""
        for name in "xyz":
            self.put(f"a/{name}")
        watch, sink = self.paced(2, initial=True)
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/x", "a/y"])
        self.assertEqual((sink.caught, watch.live), (0, False))
        self.assertEqual([key for _, key, _ in self.more(watch, sink, 2)], ["a/z"])
        self.assertEqual((sink.caught, watch.live), (1, True))
        revision = self.put("a/w")
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("ADDED", "a/w", revision)])
        self.assertEqual(watch.revision, revision)

    def test_initial_with_an_index(self) -> None:
        """The current objects of a selector are found by an index, without a visit of all objects."""
        self.build_index()
        for number in range(40):
            self.put(f"a/{number:02}", app=str(number % 10))
        before = self.cache.metrics.fetched
        _, sink = self.paced(99, match=labelled(app="1"), equalities=[APP_1], initial=True)
        keys = [key for _, key, _ in sink.wait_until_fresh_or_timeout()]
        self.assertEqual((keys, sink.caught), (["a/01", "a/11", "a/21", "a/31"], 1))
        self.assertEqual(self.cache.metrics.fetched - before, 4)

    def test_changes_in_the_beginning(self) -> None:
        """Objects that change before they are sent are sent once, in their new state; the other objects get events."""
        for name in "bdfhj":
            self.put(f"a/{name}")
        watch, sink = self.paced(2, initial=True)
        sink.wait_until_fresh_or_timeout()
        first = self.put("a/b")  # Sent already.
        self.put("a/f")
        self.delete("a/d")  # Sent already.
        self.delete("a/h")
        second = self.put("a/c")  # After the cursor, in its new state.
        self.put("a/i")
        result = self.more(watch, sink, 100)
        self.assertEqual(
            [(kind, key) for kind, key, _ in result],
            [
                ("MODIFIED", "a/b"),
                ("DELETED", "a/d"),
                ("ADDED", "a/c"),
                ("ADDED", "a/f"),
                ("ADDED", "a/i"),
                ("ADDED", "a/j"),
            ],
        )
        self.assertEqual((result[0][2], result[2][2]), (first, second))
        self.assertEqual((sink.caught, watch.revision), (1, self.storage.revision))

    def test_one_object(self) -> None:
        """A watch of one object begins with it."""
        self.put("a/x")
        self.put("a/xx")
        _, sink = self.paced(9, scope="a/x", initial=True)
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/x"])
        self.put("a/xx")
        self.delete("a/x")
        self.assertEqual([(kind, key) for kind, key, _ in sink.wait_until_fresh_or_timeout()], [("DELETED", "a/x")])

    def test_suspended(self) -> None:
        """A suspended watch sends nothing, and sends what it has missed when it is resumed."""
        watch, sink = self.paced(100)
        self.assertTrue(watch.live)
        watch.suspend()
        place = watch.revision
        first = self.put("a/x")
        second = self.put("b/x")
        self.assertEqual((sink.wait_until_fresh_or_timeout(), watch.revision), ([], place))
        self.assertEqual(self.more(watch, sink, 1), [("ADDED", "a/x", first)])
        self.assertEqual(watch.revision, first)
        self.assertEqual(self.more(watch, sink, 9), [("ADDED", "b/x", second)])
        self.assertTrue(watch.live)

    def test_suspended_in_a_transaction(self) -> None:
        """A watch that is suspended within a transaction sends the rest of its events, and none twice."""
        watch, sink = self.paced(100)
        sink.then = watch.suspend
        writes = [Write(f"{PREFIX}a/{name}", drafted(name).body, None) for name in "xyz"]
        self.successResultOf(self.storage.commit(writes))
        sink.then = lambda: None
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/x", "a/y", "a/z"])
        self.assertFalse(watch.live)
        self.put("a/w")
        self.assertEqual([key for _, key, _ in self.more(watch, sink, 9)], ["a/w"])

    def test_future(self) -> None:
        """A watch from a future revision is live, and sends nothing before that revision."""
        watch, sink = self.paced(9, revision=self.storage.revision + 2)
        self.assertEqual((watch.live, watch.revision), (True, self.storage.revision + 2))
        for name in "xyz":
            self.put(f"a/{name}")
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/z"])

    def test_selector_that_selects_nothing(self) -> None:
        """A selector visits a bounded number of objects per turn of the reactor, between which other calls run."""
        self.patch(cachewatch, "MAX_VISITED_PER_TURN", 2)
        self.patch(cachewatch, "EVENT_BATCH_SIZE", 2)
        for number in range(7):
            self.put(f"a/{number}")
        _, sink = self.paced(9, match=labelled(app="none"), initial=True, revision=1)
        for _ in range(20):
            self.clock.advance(0)
        self.assertEqual((sink.wait_until_fresh_or_timeout(), sink.caught), ([], 1))
        late, sink = self.paced(9, match=labelled(app="none"), revision=1)
        self.assertFalse(late.live)
        for _ in range(20):
            self.clock.advance(0)
        self.assertTrue(late.live)

    def test_stopped(self) -> None:
        """A stopped watch sends nothing, even if events are unsent."""
        self.put("a/x")
        watch, sink = self.paced(0, initial=True)
        watch.stop()
        self.put("a/y")
        self.assertEqual((self.more(watch, sink, 9), sink.caught), ([], 0))
        self.assertEqual(self.cache._watches, {})

    def test_not_filled(self) -> None:
        """A cache that is not filled has no watches."""
        self.cache.ready = False
        self.assertRaises(StorageUnavailable, self.cache.watch_paced, "", sink=PacedSink())

    def test_cache_ends(self) -> None:
        """A suspended watch ends with its cache."""
        _, sink = self.paced(0)
        self.cache.stop()
        self.assertEqual(sink.ends, [None])


class PastTests(PacedCase):
    """Watches from before the window: the store is read."""

    limits: ClassVar[dict[str, int]] = {"window_events": 2}

    def test_from_the_store(self) -> None:
        """Events that the window has dropped are read from the store, with the previous values."""
        then = self.storage.revision
        for number in range(3):
            self.put("a/x", app=str(number))
        self.put("b/x")
        self.delete("a/x")
        for number in range(9):
            self.put(f"c/{number}")
        self.assertRaises(RevisionCompacted, self.cache.watch, "", sink=RecordingSink(), revision=then)
        _, sink = self.paced(100, revision=then)
        self.assertEqual(
            [(kind, key) for kind, key, _ in sink.wait_until_fresh_or_timeout()],
            [
                ("ADDED", "a/x"),
                ("MODIFIED", "a/x"),
                ("MODIFIED", "a/x"),
                ("ADDED", "b/x"),
                ("DELETED", "a/x"),
                *[("ADDED", f"c/{number}") for number in range(9)],
            ],
        )
        _, sink = self.paced(100, scope="a/", match=labelled(app="1"), revision=then)
        self.assertEqual(sink.wait_until_fresh_or_timeout(), [("ADDED", "a/x", then + 2), ("DELETED", "a/x", then + 3)])

    def test_after_a_restart(self) -> None:
        """A new cache serves watches from before its creation."""
        then = self.storage.revision
        self.put("a/x")
        self.cache.stop()
        self.cache = self.started()
        _, sink = self.paced(100, revision=then)
        self.assertEqual([key for _, key, _ in sink.wait_until_fresh_or_timeout()], ["a/x"])

    def test_compacted(self) -> None:
        """A watch from before the compaction is refused; one that falls behind it ends."""
        then = self.put("a/x")
        for number in range(9):
            self.put(f"a/{number}")
        watch, sink = self.paced(0, revision=then)
        self.successResultOf(self.storage.compact(self.storage.revision - 1))
        self.assertRaises(RevisionCompacted, self.cache.watch_paced, "", sink=PacedSink(), revision=then)
        self.assertEqual(self.more(watch, sink, 9), [])
        (error,) = sink.ends
        self.assertEqual((type(error), error.revision, error.oldest), (RevisionCompacted, then, self.storage.compacted))

    def test_unreadable(self) -> None:
        """A past that cannot be decoded interrupts the watch: its client lists again."""
        then = self.storage.revision
        for value in (b"damaged", drafted("x").body):
            self.successResultOf(self.storage.commit([Write(f"{PREFIX}a/x", value, None, attachment=drafted("x"))]))
        for number in range(9):
            self.put(f"b/{number}")
        _, sink = self.paced(9, revision=then)
        self.assertEqual([type(error) for error in sink.ends], [WatchInterrupted])

    def test_failed(self) -> None:
        """An unexpected error in reading past events ends the watch with WatchFailed, and is logged."""
        then = self.storage.revision
        for number in range(9):
            self.put(f"b/{number}")

        async def fail(revision: int) -> Any:
            raise ZeroDivisionError

        self.patch(self.cache, "read_past", fail)
        _, sink = self.paced(9, revision=then)
        self.assertEqual([type(error) for error in sink.ends], [WatchFailed])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    @settings(max_examples=60, deadline=None)
    @given(_steps, st.booleans(), st.sampled_from([None, {"app": "1"}]), st.booleans())
    def test_any_pace(self, steps: list[Any], initial: bool, selected: dict[str, str] | None, indexed: bool) -> None:
        """With a sink of any speed, a watch shows all changes: a client that applies them has the current objects."""
        self.setUp()
        match, equalities = None, ()
        if selected is not None:
            match, equalities = labelled(**selected), (APP_1,)
        if indexed:
            self.build_index()
        for key in _KEYS[::2]:
            self.put(key, app="1")
        begun = self.storage.revision
        state = {} if initial else dict.fromkeys(_KEYS[::2], 0)
        revision = 0 if initial else begun
        watch, sink = self.paced(0, match=match, initial=initial, revision=revision, equalities=equalities)

        def follow() -> None:
            for kind, key, revision in sink.wait_until_fresh_or_timeout():
                self.assertEqual(kind == "ADDED", key not in state, (kind, key))
                if kind == "DELETED":
                    del state[key]
                else:
                    self.assertGreater(revision, state.get(key, 0))
                    state[key] = revision

        for what, key, label in steps:
            if what == "put":
                self.put(key, app=label)
            elif what == "delete":
                if self.cache.get(key) is not None:
                    self.delete(key)
            elif what == "take":
                sink.room = key
                watch.resume()
            else:
                sink.room = 0
                watch.suspend()
            follow()
        sink.room = 1000
        watch.resume()
        follow()
        self.assertTrue(watch.live)
        expected = {record.key: record.revision for record in self.cache.list(match=match).records}
        if not initial:
            expected = {key: revision if revision > begun else 0 for key, revision in expected.items()}
        self.assertEqual(state, expected)
