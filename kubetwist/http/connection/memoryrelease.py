"""
Return memory to the system after many connections were closed.

The allocator of glibc keeps freed memory in the middle of its heap. A thousand closed connections leave a hundred
megabytes of free but resident pages, until the process requests their release.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final, Protocol

from twisted.internet.interfaces import IDelayedCall

#: Number of closed connections after which memory is released.
MIN_CLOSED: Final = 50
#: Seconds after the last close until the release, and minimum interval between two releases.
RELEASE_DELAY: Final = 5.0


class ReleaseReactor(Protocol):
    """The part of a reactor that L{MemoryRelease} uses."""

    def callLater(self, delay: float, callable: Callable[..., object], *args: object) -> IDelayedCall:
        """Call something after C{delay} seconds."""

    def callInThread(self, callable: Callable[..., object], *args: object) -> object:
        """Call something in a thread."""


def find_trim() -> Callable[[int], int] | None:
    """Return C{malloc_trim} of the C library; L{None} if it has none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return trim


class MemoryRelease:
    """Release of memory after many connections were closed."""

    def __init__(self, reactor: ReleaseReactor, trim: Callable[[int], int] | None) -> None:
        """@param trim: L{find_trim}; called in a thread, as it takes some milliseconds."""
        self._reactor = reactor
        self._trim = trim
        self._closed = 0
        self._scheduled: IDelayedCall | None = None

    def connection_closed(self) -> None:
        """Count a closed connection."""
        self._closed += 1
        if self._closed >= MIN_CLOSED and self._trim is not None and self._scheduled is None:
            self._scheduled = self._reactor.callLater(RELEASE_DELAY, self._release)

    def stop(self) -> None:
        """Cancel the planned release."""
        self._trim = None
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _release(self) -> None:
        self._scheduled = None
        self._closed = 0
        if self._trim is not None:
            self._reactor.callInThread(self._trim, 0)
