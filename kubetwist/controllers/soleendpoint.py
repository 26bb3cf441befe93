"""
The endpoints of the service C{kubernetes} where a store has one server: that server's address, and nothing else.

Nothing is written while they are as they should be, so a server that is idle leaves its disk alone.
"""

from __future__ import annotations

from .endpointleases import EndpointReconciler


class SoleEndpoint(EndpointReconciler):
    """Keeps this server's address in the endpoints; it stays when the server stops, since no other takes over."""

    async def prepare(self) -> None:
        """Do nothing: there are no others that could take the address away."""

    async def stop(self) -> None:
        """End, and leave the endpoints as they are."""
        self.end()

    async def _addresses(self) -> list[str]:
        return [self._endpoint()[0]]

    async def _round(self, renew: bool) -> None:
        await self._reconcile()
