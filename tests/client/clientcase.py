"""Clients, and servers that they call."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.trial.unittest import TestCase

from kubetwist.client.errors import (
    CallError,
)
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import RESTConfig
from kubetwist.testing.webhooks import WebhookServer


async def turns() -> None:
    """Let the reactor turn."""
    for _ in range(3):
        turn: Deferred[None] = Deferred()
        reactor.callLater(0, turn.callback, None)  # type: ignore[attr-defined]
        await turn


class ClientCase(TestCase):
    """Calls to a L{WebhookServer}."""

    def setUp(self) -> None:
        """Connections that are broken off are told of in a later turn."""
        self.addCleanup(lambda: Deferred.fromCoroutine(turns()))

    async def serve(self, answer: Any, **options: Any) -> WebhookServer:
        """A server until the test ends."""
        server = WebhookServer(reactor, answer, **options)
        await server.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(server.stop()))
        return server

    def client(self, server: WebhookServer, path: str = "/hook", limit: int = 10_000, **others: Any) -> WebhookClient:
        """A client of it until the test ends."""
        others.setdefault("ca", server.ca)
        others.setdefault("url", server.url + path)
        return self.client_of(RESTConfig(**others), limit)

    def client_of(self, settings: RESTConfig, limit: int = 10_000, **others: Any) -> WebhookClient:
        """A client until the test ends."""
        client = WebhookClient(reactor, settings, limit=limit, **others)
        self.addCleanup(client.close)
        return client

    def raw(self, *answer: bytes, close: bool = False) -> int:
        """A port at which a connection is answered by C{answer}, the last part of it for ever if there are two."""

        class Raw(Protocol):
            def dataReceived(self, data: bytes) -> None:
                assert self.transport is not None
                self.transport.write(answer[0])
                if close:
                    self.transport.loseConnection()
                elif len(answer) > 1:
                    self.transport.registerProducer(self, False)  # type: ignore[attr-defined]

            def resumeProducing(self) -> None:
                assert self.transport is not None
                self.transport.write(answer[1])

            def stopProducing(self) -> None:
                pass

        factory = Factory.forProtocol(Raw)
        factory.noisy = False
        port = reactor.listenTCP(0, factory, interface="127.0.0.1")  # type: ignore[attr-defined]
        self.addCleanup(port.stopListening)
        return port.getHost().port  # type: ignore[no-any-return]

    async def refusal(self, client: WebhookClient, timeout: float = 10.0) -> CallError:
        """Why a call fails."""
        try:
            answer = await client.post(b"{}", timeout=timeout)
        except CallError as error:
            return error
        raise AssertionError(f"it was answered: {answer}")
