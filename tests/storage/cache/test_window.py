"""Tests for L{kubetwist.storage.cache.window}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.record import (
    Draft,
    Record,
)
from kubetwist.storage.cache.window import (
    ADDED,
    DELETED,
    EVENT_BYTES,
    MODIFIED,
    CacheEvent,
    EventBatch,
    Window,
)
from kubetwist.storage.errors import RevisionCompacted


def record(revision: int, size: int = 0) -> Record:
    """Return a record of an approximate size."""
    return Record.from_draft("a/x", revision, Draft(b'{"metadata":{"name":"%b"}}' % (b"x" * size), {}, {}))


def event(revision: int, size: int = 0) -> CacheEvent:
    """Return an event with a record of an approximate size."""
    return CacheEvent(ADDED, revision, record(revision, size), None)


class WindowTests(SynchronousTestCase):
    """Tests for L{Window}."""

    def revisions(self, window: Window, after: int) -> list[int]:
        """Return the revisions of events."""
        return [event.revision for event in window.after(after)]

    def test_after(self) -> None:
        """A window returns the events after a revision, down to its oldest one."""
        window = Window(10, 100, 1 << 20)
        self.assertEqual(self.revisions(window, 10), [])
        for revision in (12, 15, 15, 20):
            window.add(event(revision))
        self.assertEqual(self.revisions(window, 10), [12, 15, 15, 20])
        self.assertEqual(self.revisions(window, 12), [15, 15, 20])
        self.assertEqual(self.revisions(window, 14), [15, 15, 20])
        self.assertEqual(self.revisions(window, 15), [20])
        for newest in (20, 25):
            self.assertEqual(self.revisions(window, newest), [])
        with self.assertRaises(RevisionCompacted) as caught:
            window.after(9)
        self.assertEqual(caught.exception.oldest, 10)

    def test_count(self) -> None:
        """The number of events is limited, and not much smaller than the limit."""
        window = Window(0, 100, 1 << 30)
        for revision in range(1, 1001):
            window.add(event(revision))
            self.assertLessEqual(len(window), 100)
            self.assertGreaterEqual(len(window), min(revision, 93))
            self.assertEqual(self.revisions(window, window.oldest), list(range(window.oldest + 1, revision + 1)))

    def test_bytes(self) -> None:
        """Large objects reduce the number of events; the newest event is always kept."""
        window = Window(0, 10_000, 100_000)
        for revision in range(1, 200):
            window.add(event(revision, 4000))
        self.assertLess(len(window), 100_000 // 4000)
        self.assertGreater(len(window), 100_000 // (4200 + EVENT_BYTES) - 4)
        window.add(event(200, 200_000))
        self.assertEqual(self.revisions(window, 199), [200])
        window.add(event(201))
        self.assertIn(201, self.revisions(window, window.oldest))

    def test_whole_revisions(self) -> None:
        """A revision with several events is returned completely or not at all."""
        window = Window(0, 16, 1 << 20)
        for number in range(100):
            window.add(event(1 + number // 4))
            kept = self.revisions(window, window.oldest)
            for revision in set(kept) - {1 + number // 4}:
                self.assertEqual(kept.count(revision), 4)

    def test_forget(self) -> None:
        """Compacted events are dropped; a watch from the compacted revision is possible."""
        window = Window(0, 100, 1 << 20)
        for revision in range(1, 10):
            window.add(event(revision))
        window.forget(5)
        self.assertEqual(self.revisions(window, 5), [6, 7, 8, 9])
        self.assertRaises(RevisionCompacted, window.after, 4)
        window.forget(3)
        self.assertEqual(window.oldest, 5)
        window.forget(50)
        self.assertEqual((len(window), self.revisions(window, 50)), (0, []))


class CacheEventTests(SynchronousTestCase):
    """Tests for L{CacheEvent}."""

    def test_as_added(self) -> None:
        """For a selector that newly matches, the event is ADDED; all watches share one event."""
        change = CacheEvent(MODIFIED, 7, record(7), record(3))
        as_added = change.as_added()
        self.assertEqual((as_added.kind, as_added.revision), (ADDED, 7))
        self.assertIs(as_added.record, change.record)
        self.assertIs(change.as_added(), as_added)
        self.assertIsNot(change, as_added)

    def test_as_deleted(self) -> None:
        """For a selector that no longer matches, the event is DELETED with the old state, at the new revision."""
        change = CacheEvent(MODIFIED, 7, record(7, 1), record(3, 2))
        deleted = change.as_deleted()
        self.assertEqual((deleted.kind, deleted.revision, deleted.record.revision), (DELETED, 7, 7))
        self.assertEqual(deleted.record.item, b'{"metadata":{"resourceVersion":"7","name":"xx"}}')
        self.assertIs(change.as_deleted(), deleted)


class EventBatchTests(SynchronousTestCase):
    """Tests for L{EventBatch}."""

    def test_selected(self) -> None:
        """A batch has the events as its selector sees them, and their first and last revision."""
        events = [event(3), CacheEvent(MODIFIED, 5, record(5), record(3)), event(9)]
        everything = EventBatch(events, None)
        self.assertEqual((everything.events, everything.first, everything.last), (events, 3, 9))
        some = EventBatch(events, lambda record: record.revision == 5)
        self.assertEqual([(one.kind, one.revision) for one in some.events], [(ADDED, 5)])
        self.assertEqual((some.first, some.last), (5, 5))
        none = EventBatch(events, lambda record: False)
        self.assertEqual((none.events, none.first, none.last), ([], 0, 0))
