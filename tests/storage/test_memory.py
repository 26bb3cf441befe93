"""Tests for L{kubetwist.storage.memory}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.memory import MemoryStorage
from kubetwist.testing.storage import storage_tests


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
