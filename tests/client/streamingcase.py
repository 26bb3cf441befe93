"""Clients that stream, and servers that answer bytes."""

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
    """Takes what is delivered, and can have enough."""

    def __init__(self) -> None:
        self.data = b""
        self.producer: Any = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """One at a time."""
        assert self.producer is None
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        """It is done."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Keep it."""
        self.data += data


class StreamingCase(TestCase):
    """A client and what it calls."""

    timeout = 20

    async def setUp(self) -> None:
        """Both."""
        self.outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.backends: list[Backend] = []

    async def tearDown(self) -> None:
        """Nothing may be left."""
        await self.outgoing.close()
        for backend in self.backends:
            await backend.stop()

    def backend(self, *, tls: bool = False, require_client: bool = False, names: Any = ("127.0.0.1",)) -> Backend:
        """One that listens."""
        backend = Backend(reactor, tls=tls, names=names).start(require_client=require_client)
        self.backends.append(backend)
        return backend

    def client(self, backend: Backend, **others: Any) -> StreamingClient:
        """A client of it."""
        return self.outgoing.stream_client(RESTConfig(**{"url": backend.url, "ca": backend.ca, **others}))

    def get(self, client: StreamingClient, method: bytes = b"GET", body: Any = None) -> Deferred[StreamingResponse]:
        """Ask for something."""
        return Deferred.fromCoroutine(client.request(method, b"/x", [], body))

    async def answered(self, *pieces: bytes, method: bytes = b"GET") -> tuple[StreamingClient, Wire, Any]:
        """The client, the backend and the answer, or the error, to a request that is answered by C{pieces}."""
        backend = self.backend()
        client = self.client(backend)
        asked = self.get(client, method)
        there = await backend.connection()
        await there.until(b"\r\n\r\n")
        for piece in pieces:
            there.send(piece)
        try:
            return client, there, await asked
        except Unreachable as error:
            return client, there, error
