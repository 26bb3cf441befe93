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
MANY: Final = 50
#: Seconds after the last close until the release, and minimum interval between two releases.
DELAY: Final = 5.0


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
    """Counts closed connections, and releases memory after many of them."""

    def __init__(self, reactor: ReleaseReactor, trim: Callable[[int], int] | None) -> None:
        """@param trim: L{find_trim}; called in a thread, as it takes some milliseconds."""
        self._reactor = reactor
        self._trim = trim
        self._gone = 0
        self._planned: IDelayedCall | None = None

    def connection_gone(self) -> None:
        """Count a closed connection."""
        self._gone += 1
        if self._gone >= MANY and self._trim is not None and self._planned is None:
            self._planned = self._reactor.callLater(DELAY, self._release)

    def stop(self) -> None:
        """Cancel the planned release."""
        self._trim = None
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    def _release(self) -> None:
        self._planned = None
        self._gone = 0
        if self._trim is not None:
            self._reactor.callInThread(self._trim, 0)
