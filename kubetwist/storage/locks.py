"""
Locks of Twisted whose release does not nest.

C{release} resumes the next waiting coroutine within its call. If that coroutine releases the lock before it waits for
anything, it resumes the next one in a nested call, and so on. About eighty waiting coroutines exceed the recursion
limit, and those behind them are never resumed.
"""

from __future__ import annotations

from twisted.internet.defer import DeferredLock, DeferredSemaphore


class _FlatRelease:
    """Mixin that makes C{release} resume waiting coroutines one after the other, from the outermost call."""

    _pending_releases = 0
    _releasing = False

    def release(self) -> None:
        """Release, and resume the next waiting coroutine."""
        self._pending_releases += 1
        if self._releasing:
            return
        self._releasing = True
        try:
            while self._pending_releases:
                self._pending_releases -= 1
                super().release()  # type: ignore[misc] # of the lock or semaphore
        finally:
            self._releasing = False


class FlatLock(_FlatRelease, DeferredLock):
    """A C{DeferredLock} for any number of waiting coroutines."""


class FlatSemaphore(_FlatRelease, DeferredSemaphore):
    """A C{DeferredSemaphore} for any number of waiting coroutines."""
