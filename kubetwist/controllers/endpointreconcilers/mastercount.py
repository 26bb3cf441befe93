"""
C{--endpoint-reconciler-type=master-count}: behind the service C{kubernetes} are as many servers as there should be.

Each adds its own address, and takes away others where there are too many. One that has died stays until another one
comes: what L{endpointleases<kubetwist.controllers.endpointreconcilers.lease>} does better.

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
    Return the addresses there should be: C{own}, and of the others those that come before it, in a circle.

    @param known: Those that there are.
    """
    if own in known:
        return list(known)
    ordered = sorted({*known, own})
    index = ordered.index(own)
    return sorted(ordered[(index - step) % len(ordered)] for step in range(min(count, len(ordered))))


class MasterCountEndpointReconciler(LeaseEndpointReconciler):
    """Keeps this server among the endpoints, and no more than there should be."""

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
        @param count: How many servers there are.
        """
        super().__init__(stores, backend, prefix, reactor, endpoint)
        self._count = count
        self._leaving = False

    def _known(self) -> list[str]:
        obj = self._stores.get("", "endpoints").get_copy(NAMESPACE, NAME) or {}
        return [one["ip"] for subset in obj.get("subsets") or () for one in subset.get("addresses") or ()]

    async def _addresses(self) -> list[str]:
        own, _ = self._endpoint()
        known = self._known()
        if self._leaving:
            return [one for one in known if one != own]
        return limit_addresses(known, own, self._count)

    async def _remove_self(self) -> None:
        self._leaving = True
        try:
            await self._reconcile()
        finally:
            self._leaving = False

    async def _sync_once(self, renew: bool) -> None:
        await self._reconcile()
