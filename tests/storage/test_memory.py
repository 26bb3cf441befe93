"""Tests for L{kubetwist.storage.memory}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import StorageEvent, Write
from kubetwist.storage.embedded import Transaction
from kubetwist.storage.errors import OutcomeUnknown, RevisionCompacted, StorageUnavailable
from kubetwist.storage.memory import MemoryStorage
from kubetwist.testing.storage import RecordingObserver, storage_tests


class MemoryStorageTests(storage_tests(lambda case, reactor: MemoryStorage(reactor))):
    """L{MemoryStorage} passes the tests of all stores."""


class MemoryTests(SynchronousTestCase):
    """Memory use of the store."""

    def test_compaction(self) -> None:
        """Compaction frees the memory of superseded values."""
        storage = MemoryStorage(Clock())
        self.successResultOf(storage.open())
        for number in range(100):
            self.successResultOf(storage.commit([Write(f"/r/{number % 10}", b"%d" % number, None, None, object())]))
        for number in range(5):
            self.successResultOf(storage.commit([Write(f"/r/{number}", None, None)]))
        self.successResultOf(storage.compact(storage.revision))
        kept = [state for states in storage._states.values() for state in states]
        self.assertEqual(sorted(state.value or b"" for state in kept), [b"%d" % number for number in range(95, 100)])
        self.assertEqual({state.attachment for state in kept}, {None})
        self.assertEqual(storage._changes, [])


class RestoringTests(SynchronousTestCase):
    """A store that takes over what was stored before."""

    def restored(self) -> MemoryStorage:
        """Return a store with two keys, one deleted key, and a compaction between their changes."""
        storage = MemoryStorage(self.clock)
        events = [
            StorageEvent("/r/a", b"1", 2, 0),
            StorageEvent("/r/deleted", b"1", 3, 0),
            StorageEvent("/r/deleted", None, 4, 3),
            StorageEvent("/r/a", b"2", 5, 2),
            StorageEvent("/r/b", b"1", 6, 0),
        ]
        storage.restore(events, 6, 5, {"/r/b": self.clock.seconds() + 10})
        return storage

    def setUp(self) -> None:
        """Create a clock."""
        self.clock = Clock()

    def test_state(self) -> None:
        """The store has the values, the revisions, the changes after the compaction and the next revision."""
        storage = self.restored()
        page = self.successResultOf(storage.read_page("/r/"))
        self.assertEqual(
            [(item.key, item.value, item.revision) for item in page.items], [("/r/a", b"2", 5), ("/r/b", b"1", 6)]
        )
        observer = RecordingObserver()
        self.successResultOf(storage.watch("/r/", 5, observer))
        self.assertEqual([event.revision for event in observer.events], [6])
        self.failureResultOf(storage.read_page("/r/", revision=4), RevisionCompacted)
        self.assertEqual(self.successResultOf(storage.commit([Write("/r/deleted", b"", 0)])), 7)

    def test_expiry(self) -> None:
        """A key with a time to live expires at the time that was restored."""
        storage = self.restored()
        self.clock.advance(11)
        self.assertEqual([item.key for item in self.successResultOf(storage.read_page("/r/")).items], ["/r/a"])


class SlowStorage(MemoryStorage):
    """A store whose transactions are durable later."""

    def submit(self, transaction: Transaction) -> None:
        """Do nothing: the test applies or fails what is pending."""


class DerivedStoreTests(SynchronousTestCase):
    """Stores that keep their values in memory, and make them durable in another place."""

    def test_apply(self) -> None:
        """Writes are visible and answered when their transactions are applied, not before."""
        storage = SlowStorage(Clock())
        self.successResultOf(storage.open())
        answers = [storage.commit([Write(f"/r/{name}", b"1", 0)]) for name in "ab"]
        self.assertEqual(self.successResultOf(storage.read_page("/r/")).items, [])
        self.assertNoResult(answers[0])
        storage.apply(list(storage._pending))
        self.assertEqual([self.successResultOf(answer) for answer in answers], [2, 3])
        self.assertEqual([item.key for item in self.successResultOf(storage.read_page("/r/")).items], ["/r/a", "/r/b"])

    def test_failure(self) -> None:
        """All pending writes fail, with the knowledge whether they may be durable."""
        for reason, expected in ((OSError("no"), StorageUnavailable), (OutcomeUnknown("?"), OutcomeUnknown)):
            storage = SlowStorage(Clock())
            self.successResultOf(storage.open())
            answers = [storage.commit([Write("/r/a", b"1", 0)]), storage.commit([Write("/r/a", b"2", 0)])]
            storage.fail_pending(reason)
            for answer in answers:
                self.failureResultOf(answer, expected)
            created = storage.commit([Write("/r/a", b"3", 0)])
            storage.apply(list(storage._pending))
            self.successResultOf(created)
