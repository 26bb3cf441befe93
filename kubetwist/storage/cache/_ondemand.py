"""The fill of a cache that is postponed until the cache is needed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..errors import StorageUnavailable


class OnDemandFill:
    """
    The postponed fill of a watch cache.

    @ivar pending: Whether the cache is started, but not filled yet; reads of it fail then.
    """

    _log = Logger()

    __slots__ = ("_fill", "_filling", "_prefix", "_stopped", "_waiting", "pending")

    def __init__(self, prefix: str, fill: Callable[[], Awaitable[object]]) -> None:
        """
        @param prefix: The prefix of the keys of the cache, for messages.
        @param fill: Fills the cache.
        """
        self.pending = False
        self._prefix = prefix
        self._fill = fill
        self._filling = False
        self._stopped = False
        self._waiting: list[Deferred[None]] = []

    def wait(self) -> Deferred[None]:
        """
        Return a Deferred that fires when the cache is filled.

        It fails with L{StorageError<kubetwist.storage.errors.StorageError>} if the cache cannot be filled, or is
        stopped before.
        """
        if not self.pending:
            return succeed(None)
        if self._stopped:
            return fail(self._stopped_error())
        waiter: Deferred[None] = Deferred(self._waiting.remove)
        self._waiting.append(waiter)
        return waiter

    def ensure(self) -> Deferred[None]:
        """Do the same as L{wait}, and begin the fill unless it has begun; after a failure, it begins again."""
        waiter = self.wait()
        if self.pending and not self._filling and not self._stopped:
            self._filling = True
            Deferred.fromCoroutine(self._run()).addBoth(self._ended)
        return waiter

    def begin(self) -> None:
        """Begin the fill without waiting for it."""
        self.ensure().addErrback(lambda _: None)

    def stop(self) -> None:
        """End all waits."""
        self._stopped = True
        if not self._filling:
            self._ended(Failure(self._stopped_error()))

    async def _run(self) -> None:
        await self._fill()
        if self._stopped:
            raise self._stopped_error()
        self.pending = False

    def _ended(self, result: Failure | None) -> None:
        self._filling = False
        waiting, self._waiting = self._waiting, []
        if isinstance(result, Failure) and not self._stopped:
            self._log.warn("{prefix} cannot be read: {reason}", prefix=self._prefix, reason=result.value)
        for waiter in waiting:
            waiter.callback(result)

    def _stopped_error(self) -> StorageUnavailable:
        return StorageUnavailable(f"the cache of {self._prefix} is stopped")
