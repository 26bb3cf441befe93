"""Tests for L{kubetwist.storage.remote._outcomes}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import StorageEvent, Write
from kubetwist.storage.errors import OutcomeUnknown, StorageUnavailable
from kubetwist.storage.remote._outcomes import events_by_key, find_outcome


class OutcomeTests(SynchronousTestCase):
    """The outcome of a transaction without a result."""

    def setUp(self) -> None:
        """Create the events after a loss."""
        self.events = events_by_key(
            [
                StorageEvent("/r/a", b"1", 5, 0),
                StorageEvent("/r/a", None, 6, 5),
                StorageEvent("/r/a", b"2", 7, 0),
                StorageEvent("/r/b", b"3", 7, 0),
            ]
        )

    def test_unique_value(self) -> None:
        """An event with a unique value shows that the transaction was committed, even if more changes follow."""
        writes = [Write("/r/c", b"", None), Write("/r/a", b"1", 0, unique=True)]
        for complete in (True, False):
            self.assertEqual(find_outcome(writes, self.events, complete=complete), 5)

    def test_ambiguous_value(self) -> None:
        """A value or a deletion that another writer may have written leaves the outcome unknown."""
        for write in (Write("/r/b", b"3", 0), Write("/r/a", None, 5, unique=True)):
            with self.assertRaises(OutcomeUnknown):
                find_outcome([write], self.events, complete=True)

    def test_not_committed(self) -> None:
        """A transaction without any event was not committed, if none can follow."""
        writes = [Write("/r/b", b"other", 0), Write("/r/new", b"", 0, unique=True)]
        with self.assertRaises(StorageUnavailable):
            find_outcome(writes, self.events, complete=True)

    def test_in_progress(self) -> None:
        """A transaction without any event has an unknown outcome, if events can follow."""
        with self.assertRaises(OutcomeUnknown):
            find_outcome([Write("/r/new", b"", 0, unique=True)], self.events, complete=False)
