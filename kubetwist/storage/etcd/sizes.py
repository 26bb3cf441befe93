"""The sizes of the databases of etcd's members, polled periodically."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from ..errors import StorageError
from ._errors import (
    NoResponse,
    NotSent,
    RPCError,
)
from ._interfaces import IEtcdMember
from ._metrics import EtcdMetrics

#: The timeout of a member's response, in seconds.
_TIMEOUT: Final = 10.0


T = TypeVar("T")


class EtcdSizes:
    """Polls the members, one after the other, and records their sizes in the metrics."""

    def __init__(
        self, members: Sequence[IEtcdMember], reactor: IReactorTime, interval: float, metrics: EtcdMetrics
    ) -> None:
        """
        @param interval: Seconds between two polls.
        """
        self._members = members
        self._reactor = reactor
        self._interval = interval
        self._metrics = metrics
        self._call: IDelayedCall | None = None
        self._stopped = False

    def start(self) -> None:
        """Start the polling."""
        self._call = None
        Deferred.fromCoroutine(self._poll_members()).addBoth(self._later)

    def stop(self) -> None:
        """Stop the polling. Idempotent."""
        self._stopped = True
        call, self._call = self._call, None
        if call is not None:
            call.cancel()

    def _later(self, result: T) -> T:
        if not self._stopped:
            self._call = self._reactor.callLater(self._interval, self.start)
        return result

    async def _poll_members(self) -> None:
        for member in self._members:
            url = member.address.url
            try:
                status = await member.status(_TIMEOUT)
            except (RPCError, NotSent, NoResponse, StorageError):
                # The failure is reported by the calls that need a response. The previous size is outdated.
                self._metrics.sizes.pop(url, None)
            else:
                self._metrics.sizes[url] = status.db_size or 0
            if self._stopped:
                return
