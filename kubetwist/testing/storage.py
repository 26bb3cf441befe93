# mypy: allow-untyped-calls
# (The assertions of trial have no annotations.)
"""The tests that every provider of L{kubetwist.interfaces.IStorageBackend} passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SkipTest, SynchronousTestCase
from zope.interface.verify import verifyObject

from ..api.storage import (
    StorageEvent,
    Write,
)
from ..interfaces import IStorageBackend, IStorageHistory, IStorageWatch
from ..storage.errors import (
    FutureRevision,
    InvalidArgument,
    KeyExists,
    KeyNotFound,
    RevisionCompacted,
    RevisionConflict,
    StorageError,
    StorageUnavailable,
)
from ._storagereactor import (
    DEAD,
    RecordingObserver,
    StorageReactor,
)

__all__ = ["DEAD", "RecordingObserver", "StorageReactor", "storage_tests"]

_KEYS = tuple(f"/registry/{name}" for name in ("a/x", "a/y", "a-b/x", "b/x", "b/y/z"))
_writes = st.lists(
    st.tuples(
        st.sampled_from(_KEYS),
        st.one_of(st.none(), st.binary(max_size=4)),
        st.sampled_from(["right", "wrong", "absent", "any"]),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda write: write[0],
)
_steps = st.lists(st.one_of(_writes, st.just("compact")), max_size=12)
#: Changes as keys, values, revisions and previous values, and a revision.
_Past = tuple[list[tuple[str, bytes | None, int, bytes | None]], int]


def storage_tests(
    make_storage: Callable[[SynchronousTestCase, Any], IStorageBackend],
    make_reactor: Callable[[], StorageReactor] = StorageReactor,
) -> type[SynchronousTestCase]:
    """
    Return a base class with the tests; subclass it.

    A store need not report the previous revision of a changed key, and may reorder concurrent writes to different keys.

    @param make_storage: Creates an empty store that is not open; called several times in one test.
    @param make_reactor: Creates the reactor of the store. If its time cannot be set, override the tests about time.
    """

    class StorageTests(SynchronousTestCase):
        def setUp(self) -> None:
            """Open a store."""
            self.reactor = make_reactor()
            self.addCleanup(self.reactor.close)
            self.storage = self.opened()

        def opened(self) -> IStorageBackend:
            """Return a new store, open until the end of the test."""
            storage = make_storage(self, self.reactor)
            self.addCleanup(lambda: self.reactor.run(storage.close()))
            self.reactor.run(storage.open())
            return storage

        def put(self, key: str, value: bytes = b"", expected: int | None = None, ttl: float | None = None) -> int:
            """Write one key."""
            return self.reactor.run(self.storage.commit([Write(key, value, expected, ttl)]))

        def delete(self, key: str, expected: int | None = None) -> int:
            """Delete one key."""
            return self.reactor.run(self.storage.commit([Write(key, None, expected)]))

        def assert_commit_fails(
            self, kind: type[StorageError], key: str, value: bytes | None, expected: int | None
        ) -> StorageError:
            """Submit a write that must fail."""
            before = self.storage.revision
            with self.assertRaises(kind) as caught:
                self.reactor.run(self.storage.commit([Write(key, value, expected)]))
            self.assertEqual(self.storage.revision, before)
            error: StorageError = caught.exception
            return error

        def page(self, prefix: str, **options: Any) -> list[tuple[str, bytes, int]]:
            """Return the objects below C{prefix}."""
            page = self.reactor.run(self.storage.read_page(prefix, **options))
            return [(item.key, item.value, item.revision) for item in page.items]

        def watch(self, prefix: str, revision: int, observer: RecordingObserver) -> IStorageWatch:
            """Watch C{prefix}."""
            return self.reactor.run(self.storage.watch(prefix, revision, observer))

        def test_interface(self) -> None:
            """A store provides L{IStorageBackend}."""
            verifyObject(IStorageBackend, self.storage)

        def test_first_revision(self) -> None:
            """Revisions 0 and 1 have special meanings for clients, so no write gets them."""
            self.assertEqual((self.storage.revision, self.storage.compacted), (1, 0))
            self.assertEqual(self.put("/r/a"), 2)
            self.assertEqual(self.storage.revision, 2)

        def test_read(self) -> None:
            """A read returns the written value, with the revision of the write."""
            revision = self.put("/r/a", b"one")
            found = self.reactor.run(self.storage.read("/r/a"))
            self.assertEqual((found.key, found.value, found.revision), ("/r/a", b"one", revision))

        def test_read_nothing(self) -> None:
            """A read of a key that does not exist, or was deleted, finds nothing."""
            self.put("/r/gone")
            self.delete("/r/gone")
            for key in ("/r/gone", "/r/never"):
                with self.assertRaises(KeyNotFound):
                    self.reactor.run(self.storage.read(key))

        def test_create_twice(self) -> None:
            """A second create of the same key fails and uses no revision."""
            revision = self.put("/r/a", b"first", 0)
            error = self.assert_commit_fails(KeyExists, "/r/a", b"second", 0)
            self.assertEqual(getattr(error, "revision", None), revision)
            self.assertEqual(self.page("/r/"), [("/r/a", b"first", revision)])

        def test_create_after_delete(self) -> None:
            """A deleted key can be created again."""
            self.put("/r/a", b"first", 0)
            self.delete("/r/a")
            self.assertEqual(self.page("/r/"), [])
            revision = self.put("/r/a", b"second", 0)
            self.assertEqual(self.page("/r/"), [("/r/a", b"second", revision)])

        def test_compare_and_swap(self) -> None:
            """A write that expects a revision succeeds only while it is the key's newest."""
            first = self.put("/r/a", b"1", 0)
            second = self.put("/r/a", b"2", first)
            for value in (b"3", None):
                error = self.assert_commit_fails(RevisionConflict, "/r/a", value, first)
                self.assertEqual(getattr(error, "revision", None), second)
            self.delete("/r/a", second)
            self.assertEqual(self.page("/r/"), [])

        def test_nothing_to_change(self) -> None:
            """Deleting or replacing a missing key fails."""
            self.assert_commit_fails(KeyNotFound, "/r/a", b"", 7)
            for expected in (7, 0, None):
                self.assert_commit_fails(KeyNotFound, "/r/a", None, expected)

        def test_unconditional(self) -> None:
            """A write without an expected revision overwrites any value."""
            self.put("/r/a", b"1")
            revision = self.put("/r/a", b"2")
            self.assertEqual(self.page("/r/"), [("/r/a", b"2", revision)])
            self.delete("/r/a")
            self.assertEqual(self.page("/r/"), [])

        def test_transaction(self) -> None:
            """The writes of a transaction share a revision, and none takes effect if one fails."""
            kept_revision = self.put("/r/held")
            self.put("/r/old")
            writes = [Write("/r/new", b"n", 0), Write("/r/old", None, None), Write("/r/held", b"h", kept_revision + 7)]
            before = self.page("/r/")
            with self.assertRaises(RevisionConflict):
                self.reactor.run(self.storage.commit(writes))
            self.assertEqual(self.page("/r/"), before)
            writes[2].expected = kept_revision
            revision = self.reactor.run(self.storage.commit(writes))
            self.assertEqual(self.page("/r/"), [("/r/held", b"h", revision), ("/r/new", b"n", revision)])

        def test_large_transaction(self) -> None:
            """A transaction may have more than a thousand writes."""
            writes = [Write(f"/r/{number:04}", b"%d" % number, 0) for number in range(1500)]
            revision = self.reactor.run(self.storage.commit(writes))
            self.assertEqual(self.page("/r/"), [(write.key, write.value, revision) for write in writes])

        def test_senseless_transaction(self) -> None:
            """A transaction without writes, or with two of one key, is a programming error."""
            for writes in ([], [Write("/r/a", b"", None), Write("/r/a", None, None)]):
                with self.assertRaises(InvalidArgument):
                    self.reactor.run(self.storage.commit(writes))
            self.assertEqual(self.storage.revision, 1)

        def test_unencodable_key(self) -> None:
            """A key that cannot be encoded fails alone; concurrent writes succeed."""
            answer = self.storage.commit([Write("/r/a", b"", None)])
            with self.assertRaises(InvalidArgument):
                self.reactor.run(self.storage.commit([Write("/r/\ud800", b"", None)]))
            self.reactor.run(answer)
            self.assertEqual(len(self.page("/r/")), 1)

        def test_pages(self) -> None:
            """Pages are ordered by key and limited, and report whether more follow."""
            for name in ("c", "a", "d", "b"):
                self.put(f"/r/{name}")
            self.put("/ra/other")
            self.put("/q/other")
            page = self.reactor.run(self.storage.read_page("/r/", limit=3))
            self.assertEqual(([item.key for item in page.items], page.more), (["/r/a", "/r/b", "/r/c"], True))
            self.assertEqual(page.revision, self.storage.revision)
            rest = self.reactor.run(self.storage.read_page("/r/", start="/r/c\0", limit=3, revision=page.revision))
            self.assertEqual(([item.key for item in rest.items], rest.more), (["/r/d"], False))
            everything = self.reactor.run(self.storage.read_page("/r/", limit=4))
            self.assertEqual((len(everything.items), everything.more), (4, False))

        def test_pages_of_one_revision(self) -> None:
            """Later pages show the revision of the first one, regardless of writes in between."""
            revisions = [self.put(f"/r/{name}", b"old", 0) for name in "abcd"]
            newest = self.storage.revision
            self.delete("/r/c")
            self.put("/r/d", b"new")
            self.put("/r/e", b"new")
            page = self.reactor.run(self.storage.read_page("/r/", start="/r/b\0", limit=2, revision=newest))
            self.assertEqual(
                [(item.key, item.value, item.revision) for item in page.items],
                [("/r/c", b"old", revisions[2]), ("/r/d", b"old", revisions[3])],
            )
            self.assertEqual((page.revision, page.more), (newest, False))

        def test_senseless_watch(self) -> None:
            """A watch of a prefix without its final slash is a programming error."""
            with self.assertRaises(InvalidArgument):
                self.watch("/r", 1, RecordingObserver())

        def test_closed(self) -> None:
            """Calls of a closed store fail with a storage error."""
            storage = self.opened()
            self.reactor.run(storage.close())
            attempts: tuple[Callable[[], Any], ...] = (
                lambda: storage.commit([Write("/r/a", b"", None)]),
                lambda: storage.read("/r/a"),
                lambda: storage.read_page("/r/"),
                lambda: storage.watch("/r/", 1, RecordingObserver()),
                lambda: storage.compact(1),
            )
            for attempt in attempts:
                with self.assertRaises(StorageUnavailable):
                    self.reactor.run(attempt())

        def test_future(self) -> None:
            """Future revisions cannot be read, watched or compacted."""
            for attempt in (
                self.storage.read_page("/r/", revision=2),
                self.storage.watch("/r/", 2, RecordingObserver()),
                self.storage.compact(2),
            ):
                with self.assertRaises(FutureRevision):
                    self.reactor.run(attempt)

        def test_compaction(self) -> None:
            """Compaction drops earlier states, but keeps the state at its revision and later ones."""
            self.put("/r/a", b"1")
            old = self.put("/r/gone", b"1")
            self.delete("/r/gone")
            compacted = self.put("/r/a", b"2")
            self.put("/r/a", b"3")
            snapshot, now = self.page("/r/", revision=compacted), self.page("/r/")
            self.reactor.run(self.storage.compact(compacted))
            self.assertEqual(self.storage.compacted, compacted)
            for attempt in (
                self.storage.read_page("/r/", revision=old),
                self.storage.watch("/r/", compacted - 1, RecordingObserver()),
            ):
                with self.assertRaises(RevisionCompacted) as caught:
                    self.reactor.run(attempt)
                self.assertEqual(caught.exception.oldest, compacted)
            self.assertEqual((self.page("/r/", revision=compacted), self.page("/r/")), (snapshot, now))
            self.assertEqual(snapshot, [("/r/a", b"2", compacted)])
            observer = RecordingObserver()
            self.watch("/r/", compacted, observer)
            self.assertEqual(observer.seen(), [("/r/a", b"3", compacted + 1, compacted)])

        def past(self, prefix: str, after: int, until: int, limit: int = 100, size: int = 1 << 20) -> _Past:
            """
            Return changes as keys, values, revisions and previous values, and the revision up to which they are
            complete; see L{IStorageHistory.read_changes}.
            """
            if not IStorageHistory.providedBy(self.storage):
                raise SkipTest("the store keeps no past")
            history = self.reactor.run(self.storage.read_changes(prefix, after, until, limit, size))
            return [(one.key, one.value, one.revision, one.former) for one in history.changes], history.revision

        def test_past_changes(self) -> None:
            """Past changes below a prefix are read with their previous values."""
            begun = self.put("/r/a", b"1")
            self.put("/r/a", b"2")
            self.put("/other", b"x")
            self.put("/r/b", b"3")
            self.delete("/r/a")
            end = self.put("/r/a", b"4")
            expected = [
                ("/r/a", b"2", begun + 1, b"1"),
                ("/r/b", b"3", begun + 3, None),
                ("/r/a", None, begun + 4, b"2"),
                ("/r/a", b"4", end, None),
            ]
            self.assertEqual(self.past("/r/", begun, end), (expected, end))
            self.assertEqual(self.past("/r/", begun, end - 1), (expected[:3], end - 1))
            self.assertEqual(self.past("/x/", begun, end), ([], end))

        def test_past_changes_in_slices(self) -> None:
            """A part of the past ends with a complete revision, and returns it; the next part begins there."""
            begun = self.put("/r/a", b"1")
            both = [Write("/r/a", b"22", None), Write("/r/b", b"33", None)]
            self.reactor.run(self.storage.commit(both))
            end = self.put("/r/c", b"4")
            for options in ({"limit": 1}, {"size": 1}):
                found, reached = self.past("/r/", begun, end, **options)
                self.assertEqual((sorted(one[0] for one in found), reached), (["/r/a", "/r/b"], begun + 1))
                self.assertEqual(self.past("/r/", reached, end, **options), ([("/r/c", b"4", end, None)], end))

        def test_past_changes_after_compaction(self) -> None:
            """Compacted changes are not read, and later ones have their previous values."""
            self.put("/r/a", b"1")
            compacted = self.put("/r/a", b"2")
            end = self.put("/r/a", b"3")
            self.past("/r/", compacted, end)
            self.reactor.run(self.storage.compact(compacted))
            self.assertEqual(self.past("/r/", compacted, end), ([("/r/a", b"3", end, b"2")], end))
            self.assertRaises(RevisionCompacted, self.past, "/r/", compacted - 1, end)

        def test_compaction_never_goes_back(self) -> None:
            """Compacting to an earlier revision changes nothing."""
            for _ in range(3):
                self.put("/r/a")
            self.reactor.run(self.storage.compact(4))
            self.reactor.run(self.storage.compact(2))
            self.assertEqual(self.storage.compacted, 4)
            self.assertEqual(len(self.page("/r/")), 1)

        def test_watch(self) -> None:
            """Observers receive changes below their prefix, in order, with the context of the writer."""
            observer, attachment = RecordingObserver(), object()
            self.watch("/r/", self.storage.revision, observer)
            first = self.reactor.run(self.storage.commit([Write("/r/a", b"1", 0, attachment=attachment)]))
            self.put("/ra/a", b"elsewhere")
            second = self.put("/r/a", b"2")
            third = self.delete("/r/a")
            self.assertEqual(
                observer.seen(),
                [("/r/a", b"1", first, 0), ("/r/a", b"2", second, first), ("/r/a", None, third, second)],
            )
            self.assertIs(observer.events[0].attachment, attachment)
            self.assertEqual(observer.progress, third)

        def test_progress(self) -> None:
            """Observers receive progress of other keys: their state is as new as the store."""
            observer = RecordingObserver()
            self.watch("/r/", self.storage.revision, observer)
            revision = self.put("/elsewhere/a")
            self.assertEqual((observer.events, observer.progress), ([], revision))

        def test_watch_before_answer(self) -> None:
            """A write is answered after observers have received it."""
            observer = RecordingObserver()
            self.watch("/r/", self.storage.revision, observer)
            seen: list[int] = []
            answers = [self.storage.commit([Write(f"/r/{name}", b"", 0)]) for name in "abc"]

            def answered(revision: int) -> int:
                seen.append(len(observer.events))
                return revision

            for answer in answers:
                answer.addCallback(answered)
            revisions = [self.reactor.run(answer) for answer in answers]
            by_key = {event.key: event.revision for event in observer.events}
            self.assertEqual([by_key[f"/r/{name}"] for name in "abc"], revisions)
            self.assertEqual([event.revision for event in observer.events], sorted(revisions))
            for place, count in enumerate(seen):
                self.assertGreaterEqual(count, place + 1)

        def test_conflict_after_its_cause(self) -> None:
            """
            A write that conflicts with one in progress fails when that one is done and observers have received it.
            """
            observer = RecordingObserver()
            self.watch("/r/", self.storage.revision, observer)
            winner = self.storage.commit([Write("/r/a", b"1", 0)])
            loser = self.storage.commit([Write("/r/a", b"2", 0)])
            event_counts: list[int] = []

            def record_failure(failure: Failure) -> Failure:
                event_counts.append(len(observer.events))
                return failure

            loser.addErrback(record_failure)
            with self.assertRaises(KeyExists):
                self.reactor.run(loser)
            self.assertEqual(event_counts, [1])
            self.successResultOf(winner)

        def test_successive_writes(self) -> None:
            """A write may depend on one that is in progress."""
            creation = self.storage.commit([Write("/r/a", b"1", 0)])
            deletion = self.storage.commit([Write("/r/a", None, 2)])
            again = self.storage.commit([Write("/r/a", b"2", 0)])
            self.assertEqual([self.reactor.run(one) for one in (creation, deletion, again)], [2, 3, 4])
            self.assertEqual(self.page("/r/"), [("/r/a", b"2", 4)])

        def test_read_beside_writes(self) -> None:
            """Reads show committed writes, not those in progress."""
            revision = self.put("/r/a", b"1")
            self.put("/r/b", b"1")
            writes = [Write("/r/a", b"2", None), Write("/r/b", None, None), Write("/r/c", b"2", None)]
            seen: list[Any] = []
            pages = Deferred.fromCoroutine(self.storage.read_page("/r/"))
            answer = self.storage.commit(writes)
            for read in (pages, Deferred.fromCoroutine(self.storage.read_page("/r/"))):
                page = self.reactor.run(read)
                seen.append((page.revision, [(item.key, item.revision) for item in page.items]))
            before = (revision + 1, [("/r/a", revision), ("/r/b", revision + 1)])
            after = (revision + 2, [("/r/a", revision + 2), ("/r/c", revision + 2)])
            # The reads are concurrent: neither depends on the other's result.
            for shown in seen:
                self.assertIn(shown, (before, after))
            self.reactor.run(answer)

        def test_watch_from_the_past(self) -> None:
            """A watch from an earlier revision begins with the changes since, once each."""
            self.put("/r/a", b"1")
            start = self.put("/q/a", b"1")
            self.put("/r/a", b"2")
            self.delete("/r/a")
            observer = RecordingObserver()
            beginning = Deferred.fromCoroutine(self.storage.watch("/r/", start, observer))
            self.put("/r/b", b"3")
            self.reactor.run(beginning)
            self.put("/r/c", b"4")
            self.assertEqual(
                observer.seen(),
                [("/r/a", b"2", 4, 2), ("/r/a", None, 5, 4), ("/r/b", b"3", 6, 0), ("/r/c", b"4", 7, 0)],
            )
            self.assertEqual(observer.progress, 7)

        def test_stop(self) -> None:
            """A stopped watch, even one stopped by its observer, delivers nothing more; stopping is idempotent."""
            observer, other = RecordingObserver(), RecordingObserver()
            watch = self.watch("/r/", self.storage.revision, observer)
            self.watch("/r/", self.storage.revision, other)
            observer.then = lambda events: watch.stop()
            self.put("/r/a")
            self.put("/r/b")
            watch.stop()
            self.assertEqual((len(observer.events), len(other.events), observer.reasons), (1, 2, []))

        def test_writing_observer(self) -> None:
            """An observer may write; all observers see both writes in the same order."""
            answers: list[Deferred[int]] = []

            def write(events: Sequence[StorageEvent]) -> None:
                if events[0].key == "/r/a":
                    answers.append(self.storage.commit([Write("/r/b", b"", 0)]))

            observers = [RecordingObserver(write), RecordingObserver()]
            for observer in observers:
                self.watch("/r/", self.storage.revision, observer)
            self.put("/r/a")
            self.reactor.run(answers[0])
            for observer in observers:
                self.assertEqual([event.key for event in observer.events], ["/r/a", "/r/b"])

        def test_failing_observer(self) -> None:
            """
            An observer that fails loses its watch and is notified; other observers and the writer are not affected.
            """

            def fail(events: Sequence[StorageEvent]) -> None:
                raise ZeroDivisionError

            failing, other = RecordingObserver(fail), RecordingObserver()
            for observer in (failing, other):
                self.watch("/r/", self.storage.revision, observer)
            self.put("/r/a")
            self.put("/r/b")
            self.assertEqual((len(failing.events), len(other.events)), (1, 2))
            self.assertIsInstance(failing.reasons[0], ZeroDivisionError)
            self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

        def expire(self, seconds: float) -> None:
            """Advance the time; then wait for a write, which comes after due deletions."""
            self.reactor.advance(seconds)
            self.put("/after/a")

        def test_ttl(self) -> None:
            """A key with a time to live is deleted by a write like any other."""
            observer = RecordingObserver()
            self.watch("/r/", self.storage.revision, observer)
            first = self.put("/r/a", b"1", ttl=10)
            self.put("/r/b", b"1", ttl=20)
            self.expire(9)
            self.assertEqual(len(self.page("/r/")), 2)
            self.expire(1)
            self.assertEqual([key for key, _, _ in self.page("/r/")], ["/r/b"])
            key, value, _, previous = observer.seen()[-1]
            self.assertEqual((key, value, previous), ("/r/a", None, first))
            self.expire(10)
            self.assertEqual(self.page("/r/"), [])

        def test_ttl_renewed(self) -> None:
            """Each write of a key sets its time to live again."""
            for name in ("renewed", "shortened", "unlimited", "deleted"):
                self.put(f"/r/{name}", ttl=10)
            self.reactor.advance(5)
            self.put("/r/renewed", ttl=10)
            self.put("/r/shortened", ttl=1)
            self.put("/r/unlimited")
            self.delete("/r/deleted")
            self.put("/r/deleted")
            self.expire(2)
            self.assertNotIn("/r/shortened", [key for key, _, _ in self.page("/r/")])
            self.expire(5)
            self.assertEqual([key for key, _, _ in self.page("/r/")], ["/r/deleted", "/r/renewed", "/r/unlimited"])
            self.expire(100)
            self.assertEqual([key for key, _, _ in self.page("/r/")], ["/r/deleted", "/r/unlimited"])

        def test_close(self) -> None:
            """Writes before the close are completed; later ones fail."""
            answers = [self.storage.commit([Write(f"/r/{name}", b"", 0)]) for name in "abc"]
            self.reactor.run(self.storage.close())
            self.assertEqual(sorted(self.successResultOf(answer) for answer in answers), [2, 3, 4])
            with self.assertRaises(StorageUnavailable):
                self.put("/r/d")
            with self.assertRaises(StorageUnavailable):
                self.page("/r/")
            self.reactor.run(self.storage.close())

        def test_not_open(self) -> None:
            """A store that is not open rejects all calls."""
            storage = make_storage(self, self.reactor)
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(storage.commit([Write("/r/a", b"", 0)]))
            with self.assertRaises(StorageUnavailable):
                self.reactor.run(storage.read("/r/a"))

        @settings(max_examples=25, deadline=None)
        @given(steps=_steps)
        def test_model(self, steps: list[Any]) -> None:
            """For random writes a store equals a dictionary, and keeps every state since compaction."""
            self.storage = storage = make_storage(self, self.reactor)
            self.reactor.run(storage.open())
            observer = RecordingObserver()
            self.watch("/registry/", storage.revision, observer)
            state: dict[str, tuple[bytes, int]] = {}
            past = {storage.revision: dict(state)}
            events: list[tuple[str, bytes | None, int, int]] = []
            for step in steps:
                if step == "compact":
                    revision = (storage.compacted + storage.revision + 1) // 2
                    self.reactor.run(storage.compact(revision))
                    past = {at: snapshot for at, snapshot in past.items() if at >= storage.compacted}
                    continue
                writes = [
                    Write(key, value, _expected_revision(options, state[key][1] if key in state else 0))
                    for key, value, options in step
                ]
                refusal = _expected_error(writes, state)
                if refusal is not None:
                    with self.assertRaises(refusal):
                        self.reactor.run(storage.commit(writes))
                    continue
                revision = self.reactor.run(storage.commit(writes))
                self.assertEqual(revision, max(past, default=1) + 1)
                for write in writes:
                    previous = state[write.key][1] if write.key in state else 0
                    events.append((write.key, write.value, revision, previous))
                    if write.value is None:
                        del state[write.key]
                    else:
                        state[write.key] = (write.value, revision)
                past[revision] = dict(state)
            for revision, snapshot in past.items():
                expected = [(key, *snapshot[key]) for key in sorted(snapshot)]
                self.assertEqual(self.page("/registry/", revision=revision), expected)
                self.assertEqual(
                    self.page("/registry/a/", revision=revision, start="/registry/a/y", limit=1),
                    [item for item in expected if item[0] == "/registry/a/y"],
                )
                late = RecordingObserver()
                self.watch("/registry/", revision, late)
                self.assertEqual(late.seen(), [event for event in events if event[2] > revision])
            self.assertEqual(observer.seen(), events)
            self.reactor.run(storage.close())

    return StorageTests


def _expected_revision(options: str, revision: int) -> int | None:
    return {"right": revision, "wrong": revision + 1, "absent": 0, "any": None}[options]


def _expected_error(writes: list[Write], state: dict[str, tuple[bytes, int]]) -> type[StorageError] | None:
    for write in writes:
        found = state[write.key][1] if write.key in state else 0
        if found and write.expected == 0:
            return KeyExists
        if not found and (write.expected or write.value is None):
            return KeyNotFound
        if write.expected is not None and write.expected != found:
            return RevisionConflict
    return None
