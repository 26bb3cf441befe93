"""A cache of responses, limited in time and size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Cache of values that expire; a full cache drops the least recently used one."""

    def __init__(self, size: int, now: Callable[[], float]) -> None:
        """
        @param size: Maximum number of values.
        @param now: Returns the seconds of a monotonic clock.
        """
        self._size = size
        self._now = now
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the cached value of C{key}; L{None} if there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._now():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: K, value: V, seconds: float) -> None:
        """Cache C{value} for some seconds; 0 does not cache it."""
        if seconds <= 0:
            return
        entries = self._entries
        entries[key] = (self._now() + seconds, value)
        entries.move_to_end(key)
        while len(entries) > self._size:
            entries.popitem(last=False)
