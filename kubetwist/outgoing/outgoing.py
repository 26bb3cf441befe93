"""Everybody whom one server calls."""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

from .client import LIMIT, WebhookClient
from .services import FindService, Services
from .settings import CallSettings


class Outgoing:
    """
    Makes the clients of a server, and ends them with it.

    @ivar services: Finds services by their names.
    @ivar diversions: Where checked addresses are really found, by host and port: for tests.
    """

    def __init__(self, reactor: Any, find_service: FindService) -> None:
        self._reactor = reactor
        self._clients: WeakSet[WebhookClient] = WeakSet()
        self.services = Services(find_service)
        self.diversions: dict[tuple[str, int], tuple[str, int]] = {}

    def client(self, settings: CallSettings, *, limit: int = LIMIT) -> WebhookClient:
        """
        A client; whoever asks for it closes it when its settings are no longer those of a caller.

        @param limit: Bytes that an answer may have.
        @raise BadSettings: They can not be used.
        """
        client = WebhookClient(self._reactor, settings, limit=limit, diversions=self.diversions)
        self._clients.add(client)
        return client

    async def close(self) -> None:
        """End calls that are under way, and close all connections. Idempotent."""
        for client in list(self._clients):
            await client.close()
