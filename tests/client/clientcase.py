"""Base of tests with webhook clients and the servers that they call."""

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
    """Wait for some iterations of the reactor."""
    for _ in range(3):
        turn: Deferred[None] = Deferred()
        reactor.callLater(0, turn.callback, None)  # type: ignore[attr-defined]
        await turn


class ClientCase(TestCase):
    """Base of tests that call a L{WebhookServer}."""

    def setUp(self) -> None:
        """Wait at the end for lost connections, which are reported in a later iteration."""
        self.addCleanup(lambda: Deferred.fromCoroutine(turns()))

    async def serve(self, answer: Any, **options: Any) -> WebhookServer:
        """Start a server; it stops at the end of the test."""
        server = WebhookServer(reactor, answer, **options)
        await server.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(server.stop()))
        return server

    def client(self, server: WebhookServer, path: str = "/hook", limit: int = 10_000, **options: Any) -> WebhookClient:
        """Return a client of a server; it is closed at the end of the test."""
        options.setdefault("ca", server.ca)
        options.setdefault("url", server.url + path)
        return self.client_of(RESTConfig(**options), limit)

    def client_of(self, settings: RESTConfig, limit: int = 10_000, **options: Any) -> WebhookClient:
        """Return a client with these settings; it is closed at the end of the test."""
        client = WebhookClient(reactor, settings, limit=limit, **options)
        self.addCleanup(client.close)
        return client

    def raw(self, *answer: bytes, close: bool = False) -> int:
        """
        Listen with raw TCP and answer each connection with C{answer}; repeat the second part endlessly if there is
        one. Return the port.
        """

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
        """Return the error of a failing call."""
        try:
            answer = await client.post(b"{}", timeout=timeout)
        except CallError as error:
            return error
        raise AssertionError(f"it was answered: {answer}")
