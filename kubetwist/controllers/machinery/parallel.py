"""Work on many things, a few at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from twisted.internet.defer import Deferred, gatherResults

from ...api.errors import APIStatusError
from ...storage.errors import StorageError

T = TypeVar("T")

#: Enough for the writes of a storage backend to be committed together, and few enough for others to come in between.
DEFAULT_CONCURRENCY: Final = 10


async def parallelize(
    items: Iterable[T],
    do: Callable[[T], Awaitable[object]],
    yield_to_reactor: Callable[[], Awaitable[None]],
    concurrency: int = DEFAULT_CONCURRENCY,
) -> list[APIStatusError | StorageError]:
    """
    Do some work with each of many things; all are tried, whatever becomes of the others.

    @param yield_to_reactor: Awaited before each: L{kubetwist.controllers.machinery.queue.WorkQueue.yield_to_reactor}.
    @return: What went wrong, in no order. That something is not there (404) is nothing wrong.
    """
    left = iter(items)
    errors: list[APIStatusError | StorageError] = []

    async def worker() -> None:
        for item in left:
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
