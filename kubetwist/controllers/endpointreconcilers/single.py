"""
Reconciles the endpoints of the service C{kubernetes} with the address of the only server of a storage.

Nothing is written while they are correct, so an idle server does not write to its disk.
"""

from __future__ import annotations

from .lease import LeaseEndpointReconciler


class SingleEndpointReconciler(LeaseEndpointReconciler):
    """
    Keeps this server's address in the endpoints. The address remains after a stop, since no other server takes over.
    """

    async def prepare(self) -> None:
        """Do nothing: there is no stale address of another server."""

    async def stop(self) -> None:
        """Stop. The endpoints are not changed."""
        self.end()

    async def _addresses(self) -> list[str]:
        return [self._endpoint()[0]]

    async def _sync_once(self, renew: bool) -> None:
        await self._reconcile()
