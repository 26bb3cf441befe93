"""
C{--endpoint-reconciler-type=master-count}: the service C{kubernetes} has a fixed number of endpoints.

Each server adds its address, and removes surplus addresses. The address of a dead server remains until another server
replaces it; L{kubetwist.controllers.endpointreconcilers.lease} avoids that.

@see: kubernetes, C{pkg/controlplane/reconcilers/instancecount.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from twisted.internet.interfaces import IReactorTime

from ...interfaces import IStorageBackend
from .lease import (
    NAME,
    NAMESPACE,
    LeaseEndpointReconciler,
)

if TYPE_CHECKING:
    from ...registry.stores import Stores


def limit_addresses(known: Sequence[str], own: str, count: int) -> list[str]:
    """
    Return the new addresses: C{own}, and as many of the known addresses before it in circular order as fit.

    @param known: The current addresses.
    @param own: The address of this server.
    @param count: The number of addresses.
    """
    if own in known:
        return list(known)
    ordered = sorted({*known, own})
    index = ordered.index(own)
    return sorted(ordered[(index - step) % len(ordered)] for step in range(min(count, len(ordered))))


class MasterCountEndpointReconciler(LeaseEndpointReconciler):
    """Keeps this server in the endpoints, and limits their number."""

    def __init__(
        self,
        stores: Stores,
        backend: IStorageBackend,
        prefix: str,
        reactor: IReactorTime,
        endpoint: Callable[[], tuple[str, int]],
        count: int,
    ) -> None:
        """
        @param backend: The storage of the servers.
        @param stores: The stores of the server.
        @param reactor: The clock.
        @param prefix: The prefix of all keys in the storage.
        @param endpoint: Returns the address and port of this server. The address is C{""} before it listens.
        @param count: The number of servers.
        """
        super().__init__(stores, backend, prefix, reactor, endpoint)
        self._count = count
        self._leaving = False

    def _current_addresses(self) -> list[str]:
        obj = self._stores.get("", "endpoints").get_copy(NAMESPACE, NAME) or {}
        return [one["ip"] for subset in obj.get("subsets") or () for one in subset.get("addresses") or ()]

    async def _addresses(self) -> list[str]:
        address, _ = self._endpoint()
        current = self._current_addresses()
        if self._leaving:
            return [one for one in current if one != address]
        return limit_addresses(current, address, self._count)

    async def _remove_self(self) -> None:
        self._leaving = True
        try:
            await self._reconcile()
        finally:
            self._leaving = False

    async def _sync_once(self, renew: bool) -> None:
        await self._reconcile()
