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
    Window,
)
from kubetwist.storage.errors import RevisionCompacted


def record(revision: int, size: int = 0) -> Record:
    """A record of about some size."""
    return Record.from_draft("a/x", revision, Draft(b'{"metadata":{"name":"%b"}}' % (b"x" * size), {}, {}))


def event(revision: int, size: int = 0) -> CacheEvent:
    """An event with a record of about some size."""
    return CacheEvent(ADDED, revision, record(revision, size), None)


class WindowTests(SynchronousTestCase):
    """Tests for L{Window}."""

    def revisions(self, window: Window, after: int) -> list[int]:
        """The revisions of what happened."""
        return [event.revision for event in window.after(after)]

    def test_after(self) -> None:
        """A window gives the events after a revision, up to where it begins."""
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
        """No more events are kept than allowed, and not many less."""
        window = Window(0, 100, 1 << 30)
        for revision in range(1, 1001):
            window.add(event(revision))
            self.assertLessEqual(len(window), 100)
            self.assertGreaterEqual(len(window), min(revision, 93))
            self.assertEqual(self.revisions(window, window.oldest), list(range(window.oldest + 1, revision + 1)))

    def test_bytes(self) -> None:
        """Large objects make the window shorter; the newest event is always kept."""
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
        """A revision with several events is given whole or not at all."""
        window = Window(0, 16, 1 << 20)
        for number in range(100):
            window.add(event(1 + number // 4))
            kept = self.revisions(window, window.oldest)
            for revision in set(kept) - {1 + number // 4}:
                self.assertEqual(kept.count(revision), 4)

    def test_forget(self) -> None:
        """What a store compacted is forgotten; the revision compacted to can be watched from."""
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

    def test_entered(self) -> None:
        """For those whose selector begins to match, a change is an addition; all of them share one event."""
        change = CacheEvent(MODIFIED, 7, record(7), record(3))
        entered = change.entered()
        self.assertEqual((entered.kind, entered.revision), (ADDED, 7))
        self.assertIs(entered.record, change.record)
        self.assertIs(change.entered(), entered)
        self.assertIsNot(change, entered)

    def test_left(self) -> None:
        """For those whose selector stops matching, a change is a deletion of the old state, at the new revision."""
        change = CacheEvent(MODIFIED, 7, record(7, 1), record(3, 2))
        left = change.left()
        self.assertEqual((left.kind, left.revision, left.record.revision), (DELETED, 7, 7))
        self.assertEqual(left.record.item, b'{"metadata":{"resourceVersion":"7","name":"xx"}}')
        self.assertIs(change.left(), left)
