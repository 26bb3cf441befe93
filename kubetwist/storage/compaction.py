"""Periodic compaction: at each interval, discards everything that was superseded one interval ago."""

from __future__ import annotations

from attrs import define, field

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.logger import Logger
from twisted.python.failure import Failure

from ..interfaces import IStorageBackend
from ._expiry import Timer
from .errors import StorageError
from .wrappers import find_shared_storage


@define(eq=False)
class Compactor:
    """
    Compacts a backend every C{interval} seconds to its revision of one interval before.

    So every state stays readable for at least one interval, as with kube-apiserver's C{--etcd-compaction-interval}; 0
    switches compaction off. Of the servers that share a backend, only one compacts.
    """

    _log = Logger()

    backend: IStorageBackend
    clock: Timer
    interval: float
    _revision: int = field(default=0, init=False)
    _call: IDelayedCall | None = field(default=None, init=False)
    _running: bool = field(default=False, init=False)

    def start(self) -> None:
        """Start the periodic compaction."""
        if self.interval > 0:
            self._running = True
            self._revision = self.backend.revision
            self._wait()

    def stop(self) -> None:
        """Stop the periodic compaction."""
        self._running = False
        if self._call is not None and self._call.active():
            self._call.cancel()

    def _wait(self) -> None:
        if self._running:
            self._call = self.clock.callLater(self.interval, self._run)

    async def _compact(self, revision: int) -> None:
        shared = find_shared_storage(self.backend)
        if shared is None or await shared.claim_compaction(revision):
            await self.backend.compact(revision)

    def _run(self) -> None:
        revision, self._revision = self._revision, self.backend.revision

        def failed(failure: Failure) -> None:
            if failure.check(StorageError):
                self._log.warn(
                    "compaction failed: revision={revision} error={reason}", revision=revision, reason=failure.value
                )
            else:
                self._log.failure("compaction to {revision} failed", failure, revision=revision)

        compaction = Deferred.fromCoroutine(self._compact(revision))
        compaction.addErrback(failed).addCallback(lambda _: self._wait())
