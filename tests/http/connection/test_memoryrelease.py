"""Tests of L{kubetwist.http.connection.memoryrelease}."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.memoryrelease import MIN_CLOSED, RELEASE_DELAY, MemoryRelease, find_trim


class ThreadClock(Clock):
    """A clock that calls functions for threads at once."""

    def callInThread(self, call: Callable[[int], object], pad: int) -> None:
        """Call the function."""
        call(pad)


class MemoryReleaseTests(SynchronousTestCase):
    """L{MemoryRelease}."""

    def setUp(self) -> None:
        """Create a release that records its calls."""
        self.clock = ThreadClock()
        self.trimmed: list[int] = []
        self.release = MemoryRelease(self.clock, self.trimmed.append)

    def close_connections(self, count: int) -> None:
        """Close a number of connections."""
        for _ in range(count):
            self.release.connection_closed()

    def test_many(self) -> None:
        """Memory is released once, some seconds after many connections were closed."""
        self.close_connections(MIN_CLOSED - 1)
        self.clock.advance(2 * RELEASE_DELAY)
        self.assertEqual(self.trimmed, [])
        self.close_connections(MIN_CLOSED)
        self.clock.advance(RELEASE_DELAY)
        self.assertEqual(self.trimmed, [0])
        self.clock.advance(2 * RELEASE_DELAY)
        self.assertEqual((self.trimmed, self.clock.getDelayedCalls()), ([0], []))
        self.close_connections(MIN_CLOSED)
        self.clock.advance(RELEASE_DELAY)
        self.assertEqual(self.trimmed, [0, 0])

    def test_stopped(self) -> None:
        """Stopping leaves no delayed call."""
        self.close_connections(MIN_CLOSED)
        self.release.stop()
        self.close_connections(MIN_CLOSED)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_no_trim(self) -> None:
        """Without C{malloc_trim} in the C library nothing is released."""
        self.release = MemoryRelease(self.clock, None)
        self.close_connections(MIN_CLOSED)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_library(self) -> None:
        """The C library's function can be called."""
        trim = find_trim()
        if trim is not None:
            self.assertIn(trim(0), (0, 1))
