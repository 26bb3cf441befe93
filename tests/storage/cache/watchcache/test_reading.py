"""Tests for L{kubetwist.storage.cache.watchcache}: reads."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.storage import Write
from kubetwist.interfaces import IStorageObserver, IWatchSink
from kubetwist.storage.cache import _table as recordtable
from kubetwist.storage.cache import indexes
from kubetwist.storage.cache.indexes import Candidates, Equality
from kubetwist.storage.cache.watchcache import WatchCache
from kubetwist.storage.errors import FutureRevision, RevisionCompacted
from kubetwist.storage.memory import MemoryStorage
from tests.storage.cache.watchcache.cachecase import PREFIX, CacheCase, RecordingSink, decode, drafted, labelled

APP_X = Equality(True, "app", "x")
_changes = st.lists(
    st.tuples(
        st.sampled_from(["a/u", "a/v", "a/w", "b/u", "b/v", "c/u"]),
        st.sampled_from([None, {}, {"app": "x"}, {"app": "x", "more": "1"}]),
    ),
    min_size=1,
    max_size=25,
)


class ReadingTests(CacheCase):
    """GET and LIST."""

    def test_interface(self) -> None:
        """A cache is an observer of its store."""
        verifyObject(IStorageObserver, self.cache)
        verifyObject(IWatchSink, RecordingSink())

    def test_filled(self) -> None:
        """A started cache has all stored objects of its resource, from any number of pages, and no other objects."""
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
        """A written object can be read when the write is acknowledged."""
        self.assertIsNone(self.cache.get("a/x"))
        revision = self.put("a/x")
        record = self.cache.get("a/x")
        assert record is not None
        self.assertEqual((record.revision, record.namespace, record.name), (revision, "a", "x"))
        self.delete("a/x")
        self.assertIsNone(self.cache.get("a/x"))

    def test_other_processes(self) -> None:
        """Events without an attachment are decoded."""
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
        """A limited list returns the next key and the number of remaining records."""
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
        """A page that ends at the end of a chunk has the next key."""
        self.patch(recordtable, "CHUNK", 2)
        for number in range(4):
            self.put(f"a/{number}")
        self.cache = self.started()
        listing = self.cache.list(limit=2)
        self.assertEqual((listing.next_key, listing.remaining), ("a/1", 2))
        self.assertEqual(self.cache.list(limit=2, start_after="a/1").next_key, "")

    def test_pages_with_match(self) -> None:
        """With a selector, a page is filled with matching records; the number of remaining records is unknown."""
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
        """A list at a future revision fails."""
        error = self.assertRaises(FutureRevision, self.cache.list, revision=7)
        self.assertEqual((error.asked, error.revision), (7, 1))

    def test_compacted(self) -> None:
        """After a compaction of the store, the cache drops the compacted events."""
        revisions = [self.put("a/x") for _ in range(5)]
        self.successResultOf(self.storage.compact(revisions[2]))
        self.assertRaises(RevisionCompacted, self.cache.list, revision=revisions[1])
        self.assertRaises(RevisionCompacted, self.cache.watch, "", sink=RecordingSink(), revision=revisions[1])
        self.assertEqual(self.listed(revision=revisions[2]), [("a/x", revisions[2])])

    def test_after_restart(self) -> None:
        """A new cache has no past events."""
        old = self.put("a/x")
        self.put("a/x")
        self.cache = self.started()
        self.assertRaises(RevisionCompacted, self.cache.list, revision=old)

    def test_list_at_revision(self) -> None:
        """Revisions before the window are read from the store, page by page, with the same results."""
        for number in range(10):
            self.put(f"a/{number}", odd=str(number % 2))
        self.put("b/0", odd="1")
        revision = self.put("a/3", odd="0")
        self.put("a/5", odd="0")
        self.delete("a/6")

        def answers(cache: WatchCache) -> list[Any]:
            result = []
            for options in (
                {},
                {"limit": 3},
                {"limit": 3, "start_after": "a/7"},
                {"limit": 2, "match": labelled(odd="1")},
                {"limit": 3, "match": labelled(odd="1")},
                {"match": labelled(odd="0"), "start_after": "a/5"},
            ):
                listing = self.successResultOf(cache.list_at_revision("a/", revision=revision, **options))
                result.append(([record.item for record in listing.records], listing.revision, listing.next_key))
            return result

        late = WatchCache(self.storage, PREFIX, decode, self.clock, page=4)
        self.successResultOf(late.start())
        self.assertRaises(RevisionCompacted, late.list, revision=revision)
        self.assertEqual(answers(late), answers(self.cache))
        self.successResultOf(self.storage.compact(revision + 1))
        self.failureResultOf(late.list_at_revision("a/", revision=revision), RevisionCompacted)


class FreshnessTests(CacheCase):
    """Waiting for revisions."""

    def test_here(self) -> None:
        """Waiting for a revision that the cache has returns immediately."""
        self.assertIsNone(self.successResultOf(self.cache.wait_until_fresh(1)))

    def test_wait(self) -> None:
        """Waiting ends when the revision is reached, by a write to any resource."""
        waits = [self.cache.wait_until_fresh(revision) for revision in (2, 3, 4)]
        self.put("a/x")
        self.successResultOf(self.storage.commit([Write("/registry/nodes/x", b"", 0)]))
        self.successResultOf(waits[0])
        self.successResultOf(waits[1])
        self.assertNoResult(waits[2])
        self.clock.advance(3)
        self.failureResultOf(waits[2], FutureRevision)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_wait_times_out(self) -> None:
        """Waiting has a timeout; its error has the requested and the newest revision."""
        wait = self.cache.wait_until_fresh(9, 3.0)
        self.clock.advance(2.9)
        self.assertNoResult(wait)
        self.clock.advance(0.1)
        error = self.failureResultOf(wait, FutureRevision).value
        self.assertEqual((error.asked, error.revision), (9, 1))
        for _ in range(9):
            self.put("a/x")

    def test_cancelled(self) -> None:
        """Cancelling a wait leaves no timer."""
        wait = self.cache.wait_until_fresh(2)
        wait.cancel()
        self.failureResultOf(wait, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.put("a/x")

    def test_stopped(self) -> None:
        """Stopping a cache fails all waits; later waits fail immediately and leave no timer."""
        waits = [self.cache.wait_until_fresh(revision) for revision in (2, 3)]
        self.cache.stop()
        waits.append(self.cache.wait_until_fresh(4))
        for wait in waits:
            self.failureResultOf(wait, FutureRevision)
        self.assertEqual(self.clock.getDelayedCalls(), [])


class ModelTests(SynchronousTestCase):
    """The cache compared with a dictionary."""

    @settings(max_examples=60, deadline=None)
    @given(changes=_changes, limit=st.integers(1, 4), scope=st.sampled_from(["", "a/", "b/"]))
    def test_model(self, changes: list[tuple[str, Any]], limit: int, scope: str) -> None:
        """Every revision is listed exactly, also in pages, and the events between two revisions are complete."""
        self.patch(recordtable, "CHUNK", 2)
        clock = Clock()
        storage = MemoryStorage(clock)
        self.successResultOf(storage.open())
        cache = WatchCache(storage, PREFIX, decode, clock)
        self.successResultOf(cache.start())
        self.patch(indexes, "MIN_INDEXED_RECORDS", 0)
        for _ in range(2):
            self.assertIsNone(cache.find_candidates([APP_X], all_match=True))
        clock.advance(0)
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
                    key: result
                    for key, (result, labels) in then.items()
                    if key.startswith(scope) and (match is None or labels.get("app") == "x")
                }
                self.check_pages(cache, scope, match, revision, limit, expected, then)
                if match is not None:
                    for all_match in (True, False):
                        candidates = cache.find_candidates([APP_X], all_match=all_match)
                        self.assertIsNotNone(candidates)
                        self.check_pages(cache, scope, match, revision, limit, expected, then, candidates)
                self.check_watch(cache, scope, match, revision, expected)

    def check_pages(
        self,
        cache: WatchCache,
        scope: str,
        match: Any,
        revision: int,
        limit: int,
        expected: Any,
        then: Any,
        candidates: Candidates | None = None,
    ) -> None:
        """The pages of a list have all records in order, with correct counts."""
        result: list[tuple[str, int]] = []
        after = ""
        while True:
            page = cache.list(
                scope, match=match, limit=limit, start_after=after, revision=revision, candidates=candidates
            )
            if page.blocks:
                self.assertEqual([one for block in page.blocks for one in block.records], page.records)
            result += [(record.key, record.revision) for record in page.records]
            after = page.next_key
            if not after:
                break
            self.assertEqual(len(page.records), limit)
            rest = sum(key.startswith(scope) and key > after for key in then)
            self.assertGreater(rest, 0)
            self.assertEqual(page.remaining, rest if match is None else None)
        self.assertEqual(result, sorted(expected.items()))
        complete = cache.list(scope, match=match, revision=revision, candidates=candidates).records
        self.assertEqual([(record.key, record.revision) for record in complete], result)

    def check_watch(self, cache: WatchCache, scope: str, match: Any, revision: int, expected: dict[str, int]) -> None:
        """A watch from a revision leads from the list at that revision to the current list."""
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
