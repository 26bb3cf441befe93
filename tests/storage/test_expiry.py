"""Tests for L{kubetwist.storage._expiry}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage._expiry import (
    EXPIRE_BATCH_SIZE,
    ExpirationQueue,
)


class ExpiryTests(SynchronousTestCase):
    """Tests for L{ExpirationQueue}."""

    def setUp(self) -> None:
        """Record expired keys and times."""
        self.clock = Clock()
        self.expired: list[tuple[str, int, float]] = []
        self.expiry = ExpirationQueue(self.clock, lambda key, revision: self.expired.append((key, revision, self.now)))

    @property
    def now(self) -> float:
        """Return the time."""
        return self.clock.seconds()

    def test_order(self) -> None:
        """Keys expire at their time, in any order of writes."""
        for key, when in (("b", 20), ("a", 10), ("c", 30)):
            self.expiry.update(key, when, 7)
        self.clock.pump([1] * 40)
        self.assertEqual(self.expired, [("a", 7, 10), ("b", 7, 20), ("c", 7, 30)])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_one_timer(self) -> None:
        """Any number of keys uses one timer."""
        for number in range(100):
            self.expiry.update(f"{number}", 100 - number, 7)
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)

    def test_written_again(self) -> None:
        """Only the newest write of a key counts."""
        self.expiry.update("later", 10, 2)
        self.expiry.update("never", 10, 3)
        self.expiry.update("sooner", 30, 4)
        self.expiry.update("later", 20, 5)
        self.expiry.update("never", None, 6)
        self.expiry.update("sooner", 5, 7)
        self.clock.pump([1] * 40)
        self.assertEqual(self.expired, [("sooner", 7, 5), ("later", 5, 20)])

    def test_bounded(self) -> None:
        """A key that is written repeatedly takes no more memory."""
        for revision in range(10_000):
            self.expiry.update("a", 100 + revision, revision)
        self.assertLess(len(self.expiry._heap), 200)
        self.clock.advance(20_000)
        self.assertEqual([revision for _, revision, _ in self.expired], [9_999])

    def test_many(self) -> None:
        """Many keys with the same time expire in batches, with turns of the reactor in between."""
        delays: list[float] = []
        call_later = self.clock.callLater

        def recorded(delay: float, *args: object) -> object:
            delays.append(delay)
            return call_later(delay, *args)

        self.patch(self.clock, "callLater", recorded)
        self.expiry.load([(f"{number}", 10, number) for number in range(EXPIRE_BATCH_SIZE * 2 + 1)])
        self.clock.advance(10)
        self.assertEqual(len(self.expired), EXPIRE_BATCH_SIZE * 2 + 1)
        self.assertEqual(delays, [10, 0, 0])

    def test_overdue(self) -> None:
        """Keys that have expired before the load expire immediately."""
        self.clock.advance(100)
        self.expiry.load([("a", 10.0, 2), ("b", 200.0, 3)])
        self.clock.advance(0)
        self.assertEqual([key for key, _, _ in self.expired], ["a"])

    def test_again(self) -> None:
        """A failed expiration is retried, unless the key was written again."""
        for key in ("a", "b"):
            self.expiry.update(key, 10, 2)
        self.clock.advance(10)
        self.expiry.update("b", 1000, 3)
        for key in ("a", "b"):
            self.expiry.retry(key, 2, 5)
        self.clock.advance(5)
        self.assertEqual(self.expired[2:], [("a", 2, 15)])

    def test_stop(self) -> None:
        """After stop() nothing expires, and no timer remains."""
        self.expiry.update("a", 10, 2)
        self.expiry.stop()
        self.expiry.update("b", 5, 3)
        self.assertEqual(self.clock.getDelayedCalls(), [])
