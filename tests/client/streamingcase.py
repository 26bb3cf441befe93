"""Base of tests with streaming clients and raw backends."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from kubetwist.client.errors import (
    Unreachable,
)
from kubetwist.client.factory import ClientFactory
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.streaming import (
    StreamingClient,
    StreamingResponse,
)
from tests.wires import Backend, Wire

reactor: Any = installed_reactor


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Sink:
    """A consumer that collects the data and may pause its producer."""

    def __init__(self) -> None:
        self.data = b""
        self.producer: Any = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Register the only producer."""
        assert self.producer is None
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        """Unregister the producer."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Collect the data."""
        self.data += data


class StreamingCase(TestCase):
    """Base of tests with a streaming client and its backends."""

    timeout = 20

    async def setUp(self) -> None:
        """Create a client factory."""
        self.outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.backends: list[Backend] = []

    async def tearDown(self) -> None:
        """Close all clients and backends."""
        await self.outgoing.close()
        for backend in self.backends:
            await backend.stop()

    def backend(
        self,
        *,
        tls: bool = False,
        require_client: bool = False,
        names: Any = ("127.0.0.1",),
        protocols: tuple[bytes, ...] = (b"http/1.1",),
    ) -> Backend:
        """
        Start a backend.

        @param tls: Whether it uses TLS.
        @param require_client: Whether it requires a client certificate.
        @param names: The names in its certificate.
        @param protocols: The protocols that it accepts over TLS.
        """
        backend = Backend(reactor, tls=tls, names=names, protocols=protocols).start(require_client=require_client)
        self.backends.append(backend)
        return backend

    def client(self, backend: Backend, **options: Any) -> StreamingClient:
        """Return a client of a backend."""
        return self.outgoing.stream_client(RESTConfig(**{"url": backend.url, "ca": backend.ca, **options}))

    def get(self, client: StreamingClient, method: bytes = b"GET", body: Any = None) -> Deferred[StreamingResponse]:
        """Send a request."""
        return Deferred.fromCoroutine(client.request(method, b"/x", [], body))

    async def answered(self, *pieces: bytes, method: bytes = b"GET") -> tuple[StreamingClient, Wire, Any]:
        """
        Return the client, the backend's connection, and the response or error for a request that is answered with
        C{pieces}.
        """
        backend = self.backend()
        client = self.client(backend)
        pending = self.get(client, method)
        wire = await backend.connection()
        await wire.until(b"\r\n\r\n")
        for piece in pieces:
            wire.send(piece)
        try:
            return client, wire, await pending
        except Unreachable as error:
            return client, wire, error
