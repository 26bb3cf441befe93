"""Tests for L{kubetwist.http.connection.memoryrelease}."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.memoryrelease import DELAY, MANY, MemoryRelease, find_trim


class ThreadClock(Clock):
    """Calls at once what is to be called in a thread."""

    def callInThread(self, call: Callable[[int], object], pad: int) -> None:
        """Call it."""
        call(pad)


class MemoryReleaseTests(SynchronousTestCase):
    """Release of memory."""

    def setUp(self) -> None:
        """Nothing is gone yet."""
        self.clock = ThreadClock()
        self.trimmed: list[int] = []
        self.release = MemoryRelease(self.clock, self.trimmed.append)

    def gone(self, count: int) -> None:
        """Close a number of connections."""
        for _ in range(count):
            self.release.connection_gone()

    def test_many(self) -> None:
        """Memory is released some seconds after many connections have closed, once for all of them."""
        self.gone(MANY - 1)
        self.clock.advance(2 * DELAY)
        self.assertEqual(self.trimmed, [])
        self.gone(MANY)
        self.clock.advance(DELAY)
        self.assertEqual(self.trimmed, [0])
        self.clock.advance(2 * DELAY)
        self.assertEqual((self.trimmed, self.clock.getDelayedCalls()), ([0], []))
        self.gone(MANY)
        self.clock.advance(DELAY)
        self.assertEqual(self.trimmed, [0, 0])

    def test_stopped(self) -> None:
        """After the server has stopped no call is scheduled."""
        self.gone(MANY)
        self.release.stop()
        self.gone(MANY)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_other_libraries(self) -> None:
        """Without C{malloc_trim} in the C library nothing is done."""
        self.release = MemoryRelease(self.clock, None)
        self.gone(MANY)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_library(self) -> None:
        """The C library's function can be called."""
        trim = find_trim()
        if trim is not None:
            self.assertIn(trim(0), (0, 1))
