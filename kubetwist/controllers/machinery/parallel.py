"""Work on many things, a few at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from twisted.internet.defer import Deferred, gatherResults

from ...api.errors import APIStatusError
from ...storage.errors import StorageError

T = TypeVar("T")

#: Enough for the writes of a storage backend to be committed together, and few enough for others to come in between.
AT_A_TIME: Final = 10


async def each(
    things: Iterable[T],
    work: Callable[[T], Awaitable[object]],
    pause: Callable[[], Awaitable[None]],
    at_a_time: int = AT_A_TIME,
) -> list[APIStatusError | StorageError]:
    """
    Do some work with each of many things; all are tried, whatever becomes of the others.

    @param pause: Awaited before each: L{kubetwist.controllers.machinery.queue.WorkQueue.pause}.
    @return: What went wrong, in no order. That something is not there (404) is nothing wrong.
    """
    left = iter(things)
    errors: list[APIStatusError | StorageError] = []

    async def worker() -> None:
        for thing in left:
            await pause()
            try:
                await work(thing)
            except APIStatusError as error:
                if error.code != 404:
                    errors.append(error)
            except StorageError as error:
                errors.append(error)

    await gatherResults([Deferred.fromCoroutine(worker()) for _ in range(at_a_time)], consumeErrors=True)
    return errors
