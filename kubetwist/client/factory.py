"""The factory of all clients of one server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakSet

from ..api.renamed import renamed_names
from ..interfaces import IServerReactor
from ..metrics.registry import MetricSnapshot
from .metrics import CallMetrics
from .restconfig import (
    Network,
    RESTConfig,
)
from .services import (
    FindService,
    Services,
)

if TYPE_CHECKING:
    from twisted.internet.interfaces import IStreamClientEndpoint

    from .dialing import Closable
    from .httpclient import WebhookClient
    from .streaming import StreamingClient


class ClientFactory:
    """
    Factory of the clients of a server, which are closed when it stops.

    @ivar services: Finds services by their names.
    @ivar denied_networks: Networks that are forbidden for URLs in API objects.
    @ivar traced: Whether calls carry the trace context.
    @ivar address_overrides: Replacements of checked addresses, by host and port: for tests.
    """

    def __init__(
        self, reactor: IServerReactor, find_service: FindService, denied_networks: tuple[Network, ...] = ()
    ) -> None:
        self._reactor = reactor
        self._clients: WeakSet[WebhookClient | StreamingClient] = WeakSet()
        # Clients with open connections are kept, even if their callers have dropped them.
        self._connected: set[Closable] = set()
        self.services = Services(find_service)
        self.denied_networks = denied_networks
        self.address_overrides: dict[tuple[str, int], tuple[str, int]] = {}
        self.traced = False
        self._metrics = CallMetrics()

    def client(self, settings: RESTConfig, *, limit: int | None = None) -> WebhookClient:
        """
        Return a client; the caller retires it when its settings are not in use any more.

        @param limit: Maximum size of a response in bytes; L{None} for the default.
        @raise InvalidRESTConfig: The settings are invalid.
        """
        # Imported late: most servers call no webhook.
        from .httpclient import (
            MAX_RESPONSE_SIZE,
            WebhookClient,
        )

        limit = MAX_RESPONSE_SIZE if limit is None else limit
        make = WebhookClient
        if self.traced:
            from .tracing import TracedClient

            make = TracedClient
        client = make(
            self._reactor,
            settings,
            limit=limit,
            address_overrides=self.address_overrides,
            connected=self._connected,
            metrics=self._metrics,
        )
        self._metrics.clients += 1
        self._clients.add(client)
        return client

    def stream_client(self, settings: RESTConfig, endpoint: IStreamClientEndpoint | None = None) -> StreamingClient:
        """
        Return a client that streams bodies; the caller retires it as with L{client}.

        @param endpoint: Connects to the server for each request; L{None} for the address in the settings.
        @raise InvalidRESTConfig: The settings are invalid.
        """
        from .streaming import MAX_IDLE_CONNECTIONS, StreamingClient

        client = StreamingClient(
            self._reactor,
            settings,
            address_overrides=self.address_overrides,
            connected=self._connected,
            endpoint=endpoint,
            # An endpoint connects in memory, and decides for each request whether the server is reachable.
            max_idle_connections=MAX_IDLE_CONNECTIONS if endpoint is None else 0,
        )
        self._clients.add(client)
        return client

    def collect(self) -> Iterator[MetricSnapshot]:
        """Yield the metrics of calls."""
        return self._metrics.collect(len({*self._clients, *self._connected}))

    async def close(self) -> None:
        """Abort calls and close all connections. Idempotent."""
        for client in {*self._clients, *self._connected}:
            await client.close()


if not TYPE_CHECKING:
    __getattr__ = renamed_names(__name__, {"Outgoing": "ClientFactory"})
