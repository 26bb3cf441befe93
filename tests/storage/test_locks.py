"""Tests for L{kubetwist.storage.locks}."""

from __future__ import annotations

from twisted.internet.defer import Deferred, DeferredLock, DeferredSemaphore
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.storage.locks import FlatLock, FlatSemaphore

#: More coroutines than the recursion limit permits to resume one within the other.
WAITERS = 2000


class FlatLockTests(SynchronousTestCase):
    """Locks with many waiting coroutines."""

    def assert_all_resumed(self, lock: DeferredLock | DeferredSemaphore, holders: int) -> None:
        """Assert that at most C{holders} coroutines hold a lock at a time, and that all finish."""
        holding: list[int] = []
        order: list[int] = []
        gate: Deferred[None] = Deferred()

        async def hold(number: int) -> None:
            await lock.acquire()
            try:
                holding.append(number)
                self.assertLessEqual(len(holding), holders)
                if number < holders:
                    await gate
                order.append(number)
            finally:
                holding.remove(number)
                lock.release()

        coroutines = [Deferred.fromCoroutine(hold(number)) for number in range(WAITERS)]
        self.assertEqual(len(holding), holders)
        gate.callback(None)
        for coroutine in coroutines:
            self.successResultOf(coroutine)
        self.assertEqual(sorted(order), list(range(WAITERS)))

    def test_lock(self) -> None:
        """Coroutines that release a lock immediately do not resume each other recursively."""
        lock = FlatLock()
        self.assert_all_resumed(lock, 1)
        self.assertFalse(lock.locked)

    def test_semaphore(self) -> None:
        """Coroutines that release a semaphore immediately do not resume each other recursively."""
        semaphore = FlatSemaphore(3)
        self.assert_all_resumed(semaphore, 3)
        self.assertEqual(semaphore.tokens, 3)

    def test_failing_holder(self) -> None:
        """The next coroutine is resumed although the holder fails."""
        lock = FlatLock()

        async def fail() -> None:
            await lock.acquire()
            try:
                raise ValueError("no")
            finally:
                lock.release()

        self.successResultOf(lock.acquire())
        waiting = [Deferred.fromCoroutine(fail()) for _ in range(WAITERS)]
        lock.release()
        for each in waiting:
            self.failureResultOf(each, ValueError)
        self.assertFalse(lock.locked)
