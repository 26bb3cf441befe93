"""Bounded concurrency (client-go: workqueue.ParallelizeUntil)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from twisted.internet.defer import Deferred, gatherResults

from ...api.errors import APIStatusError
from ...storage.errors import StorageError

T = TypeVar("T")

#: Enough for a storage backend to batch commits, few enough to let other writes proceed.
DEFAULT_CONCURRENCY: Final = 10


async def parallelize(
    items: Iterable[T],
    do: Callable[[T], Awaitable[object]],
    yield_to_reactor: Callable[[], Awaitable[None]],
    concurrency: int = DEFAULT_CONCURRENCY,
) -> list[APIStatusError | StorageError]:
    """
    Call a function for each item with bounded concurrency. An error does not stop the other calls.

    @param items: The items.
    @param do: Called with each item.
    @param yield_to_reactor: Awaited before each: L{kubetwist.controllers.machinery.queue.WorkQueue.yield_to_reactor}.
    @param concurrency: Maximum number of concurrent calls.
    @return: The errors except 404, in no order.
    """
    iterator = iter(items)
    errors: list[APIStatusError | StorageError] = []

    async def worker() -> None:
        for item in iterator:
            await yield_to_reactor()
            try:
                await do(item)
            except APIStatusError as error:
                if error.code != 404:
                    errors.append(error)
            except StorageError as error:
                errors.append(error)

    await gatherResults([Deferred.fromCoroutine(worker()) for _ in range(concurrency)], consumeErrors=True)
    return errors
