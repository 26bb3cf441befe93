"""
Giving memory back to the system when many connections are gone.

The allocator of glibc keeps what was freed in the midst of its heap. A thousand connections that were written to leave
it with holes of a hundred megabytes, until something asks for the pages that are in none of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

#: Connections that have gone after which memory is given back.
MANY: Final = 50
#: Seconds after the last of them until that is done, and at least between two times.
DELAY: Final = 5.0


def find_trim() -> Callable[[int], int] | None:
    """C{malloc_trim} of the C library; L{None} where it has none."""
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError):
        return None
    return trim


class MemoryRelease:
    """Counts connections that have gone, and has the allocator give memory back when they are many."""

    def __init__(self, reactor: Any, trim: Callable[[int], int] | None) -> None:
        """
        @param trim: L{find_trim}; called in a thread, as it takes some milliseconds.
        """
        self._reactor = reactor
        self._trim = trim
        self._gone = 0
        self._planned: Any = None

    def connection_gone(self) -> None:
        """A connection has ended."""
        self._gone += 1
        if self._gone >= MANY and self._trim is not None and self._planned is None:
            self._planned = self._reactor.callLater(DELAY, self._release)

    def stop(self) -> None:
        """Plan nothing more."""
        self._trim = None
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    def _release(self) -> None:
        self._planned = None
        self._gone = 0
        self._reactor.callInThread(self._trim, 0)
