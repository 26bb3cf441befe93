"""What others said, for a while, and in bounded memory; and one call for all who ask the same at the same time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ExpiringCache(Generic[K, V]):
    """Keeps values until they expire; when there are too many, what was not asked for the longest goes first."""

    def __init__(self, size: int, now: Callable[[], float]) -> None:
        """
        @param size: How many values are kept at most.
        @param now: Tells the time, in seconds.
        """
        self._size = size
        self._now = now
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """What is kept for C{key}; L{None} for nothing."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        if entry[0] <= self._now():
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, key: K, value: V, seconds: float) -> None:
        """Keep C{value} for some time; not at all for 0 seconds."""
        if seconds <= 0:
            return
        entries = self._entries
        entries[key] = (self._now() + seconds, value)
        entries.move_to_end(key)
        while len(entries) > self._size:
            entries.popitem(last=False)


class SharedCalls(Generic[K, V]):
    """Calls that are under way, by what they ask: who asks the same waits for the same answer."""

    def __init__(self) -> None:
        self._waiting: dict[K, list[Deferred[V]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, key: K, call: Callable[[], Awaitable[V]]) -> Deferred[V]:
        """
        What C{call} gives, which is only made when nobody waits for the same already.

        Whoever cancels does not wait any more; the call goes on for the others.
        """
        mine: Deferred[V] = Deferred(lambda _: self._forget(key, mine))
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.append(mine)
            return mine
        self._waiting[key] = [mine]
        calling: Deferred[V] = Deferred.fromCoroutine(_made(call))
        calling.addBoth(self._answered, key)
        return mine

    def _forget(self, key: K, mine: Deferred[V]) -> None:
        waiting = self._waiting.get(key)
        if waiting is not None and mine in waiting:
            waiting.remove(mine)

    def _answered(self, result: V | Failure, key: K) -> None:
        for mine in self._waiting.pop(key, ()):
            if isinstance(result, Failure):
                mine.errback(result)
            else:
                mine.callback(result)


async def _made(call: Callable[[], Awaitable[V]]) -> V:
    return await call()
