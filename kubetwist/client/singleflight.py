"""One call for all callers that make the same call at the same time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """The calls under way, by key: callers with the same key share one result."""

    def __init__(self) -> None:
        self._waiting: dict[K, list[Deferred[V]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def ask(self, key: K, call: Callable[[], Awaitable[V]]) -> Deferred[V]:
        """
        Return the result of C{call}, which is only called when no such call is under way.

        A cancelled caller stops waiting; the call goes on for the other callers.
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
