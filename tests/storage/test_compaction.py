"""Tests for L{kubetwist.storage.compaction}."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.storage import Write
from kubetwist.storage.compaction import Compactor
from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.memory import MemoryStorage


class CompactorTests(SynchronousTestCase):
    """Tests for L{Compactor}."""

    def setUp(self) -> None:
        """Create a compactor for a store in memory."""
        self.clock = Clock()
        self.storage = MemoryStorage(self.clock)
        self.successResultOf(self.storage.open())
        self.compactor = Compactor(self.storage, self.clock, 300)

    def write(self, count: int) -> int:
        """Write some keys."""
        return [self.successResultOf(self.storage.commit([Write("/r/a", b"", None)])) for _ in range(count)][-1]

    def test_intervals(self) -> None:
        """Every revision is readable for one interval, and for at most two."""
        first = self.write(3)
        self.compactor.start()
        self.clock.advance(299)
        second = self.write(3)
        self.clock.advance(1)
        self.assertEqual(self.storage.compacted, first)
        self.write(3)
        self.clock.advance(300)
        self.assertEqual(self.storage.compacted, second)

    def test_off(self) -> None:
        """An interval of 0 disables compaction."""
        Compactor(self.storage, self.clock, 0).start()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stop(self) -> None:
        """A stopped compactor does not compact."""
        self.write(3)
        self.compactor.start()
        self.compactor.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_slow(self) -> None:
        """The next compaction begins an interval after the previous one's end; stop() works during a compaction."""
        running: Deferred[None] = Deferred()

        async def compact(revision: int) -> None:
            await running

        self.patch(self.storage, "compact", compact)
        self.compactor.start()
        self.clock.advance(300)
        self.clock.advance(3000)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        running.callback(None)
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        self.compactor.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_failure(self) -> None:
        """A failed compaction is retried after an interval."""
        revision = self.write(3)
        compact = self.storage.compact
        failures = [ZeroDivisionError(), StorageUnavailable("disk full")]

        async def failing(revision: int) -> None:
            if failures:
                raise failures.pop()
            await compact(revision)

        self.patch(self.storage, "compact", failing)
        self.compactor.start()
        self.clock.pump([300, 300])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(self.storage.compacted, 0)
        self.clock.advance(300)
        self.assertEqual(self.storage.compacted, revision)
