"""Coalescing of concurrent calls with the same key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Pending calls by key; callers with the same key share one result."""

    def __init__(self) -> None:
        self._calls: dict[K, list[Deferred[V]]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def do(self, key: K, call: Callable[[], Awaitable[V]]) -> Deferred[V]:
        """
        Return the result of C{call}, which is called if no call with the same key is pending.

        A cancelled caller stops waiting; the call continues for the other callers.
        """
        waiter: Deferred[V] = Deferred(lambda _: self._remove_waiter(key, waiter))
        waiters = self._calls.get(key)
        if waiters is not None:
            waiters.append(waiter)
            return waiter
        self._calls[key] = [waiter]
        calling: Deferred[V] = Deferred.fromCoroutine(_as_coroutine(call))
        calling.addBoth(self._call_finished, key)
        return waiter

    def _remove_waiter(self, key: K, waiter: Deferred[V]) -> None:
        waiters = self._calls.get(key)
        if waiters is not None and waiter in waiters:
            waiters.remove(waiter)

    def _call_finished(self, result: V | Failure, key: K) -> None:
        for waiter in self._calls.pop(key, ()):
            if isinstance(result, Failure):
                waiter.errback(result)
            else:
                waiter.callback(result)


async def _as_coroutine(call: Callable[[], Awaitable[V]]) -> V:
    return await call()
