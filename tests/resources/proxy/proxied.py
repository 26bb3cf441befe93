"""Test case for proxying: a client, the server, and a backend, with one request after the other."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from kubetwist.client.factory import ClientFactory
from kubetwist.client.restconfig import RESTConfig
from kubetwist.filters.requestinfo import with_request_info
from kubetwist.http.request import KubeRequest
from kubetwist.http.site import KubeSite
from kubetwist.resources.proxy.reverseproxy import proxy_request, run_proxy
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.tlscontext import ServingContextFactory
from tests.wires import Backend, Wire, connect

reactor: Any = installed_reactor


class Proxied(TestCase):
    """Test case with a server that forwards all requests to one backend."""

    timeout = 20
    tls = False

    async def setUp(self) -> None:
        """Start client, server and backend."""
        self.options: dict[str, Any] | None = {}
        self.backend = Backend(reactor, tls=self.tls).start()
        self.outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.client = self.outgoing.stream_client(RESTConfig(url=self.backend.url, ca=self.backend.ca))
        self.requests: list[KubeRequest] = []
        self.over: list[Deferred[None]] = []
        self.site = KubeSite(with_request_info(self._answer), reactor)
        self.site.streams.append(lambda request: True)
        self.ca = b""
        if self.tls:
            authority = CertificateAuthority.make("front-ca")
            self.ca = authority.pair.certificate
            pair = authority.issue(CertConfig("front", names=("127.0.0.1",), server=True))
            self.port = reactor.listenSSL(
                0, self.site, ServingContextFactory(pair, "VersionTLS12"), interface="127.0.0.1"
            )
        else:
            self.port = reactor.listenTCP(0, self.site, interface="127.0.0.1")
        self.wires: list[Wire] = []

    async def tearDown(self) -> None:
        """Stop everything; no connection may remain."""
        await self.port.stopListening()
        for wire in self.wires:
            if wire.lost is None:
                wire.kill()
                await wire.end()
        await self.outgoing.close()
        await self.backend.stop()
        await self.settled(lambda: not self.site.connections.channels)
        self.assertEqual((self.client.idle, self.client.busy), (0, 0))

    def _answer(self, request: KubeRequest) -> None:
        self.requests.append(request)
        request.audit_id = "the-id"
        request.cache_control = b"no-cache, private"
        if self.options is not None:
            run_proxy(proxy_request(request, self.client, request.uri, **self.options), request)

    async def settled(self, condition: Any) -> None:
        """Wait until a condition is true; the timeout of the test limits the wait."""
        while not condition():
            turn: Deferred[None] = Deferred()
            reactor.callLater(0.001, turn.callback, None)
            await turn

    async def connect(self) -> Wire:
        """Connect a client."""
        wire = await connect(reactor, self.port.getHost().port, ca=self.ca)
        self.wires.append(wire)
        return wire

    async def ask(self, head: bytes) -> tuple[Wire, Wire, bytes]:
        """
        Send a request; return the client, the backend's connection, and the request head that the backend received.
        """
        wire = await self.connect()
        wire.send(head)
        there = await self.backend.connection()
        return wire, there, await there.until(b"\r\n\r\n")

    async def wait_until_idle(self) -> None:
        """Wait until no request is open and no connection is in use."""
        await self.settled(lambda: not self.site.open_requests and not self.client.busy)


class Flood:
    """
    A producer that writes until the transport is full.

    @ivar stuck: Fires when the transport accepts no more data.
    """

    def __init__(self, transport: Any, piece: bytes = b"x" * 65536) -> None:
        self._transport = transport
        self._piece = piece
        self._call: Any = None
        self._go = True
        self.written = 0
        self.stuck: Deferred[None] = Deferred()
        transport.registerProducer(self, True)
        self._write()

    def _write(self) -> None:
        self._call = None
        if self._go:
            self._transport.write(self._piece)
            self.written += len(self._piece)
        if self._go:
            self._call = reactor.callLater(0, self._write)
        else:
            self._wait(100)

    def _wait(self, turns: int) -> None:
        """Wait for some iterations of the reactor, so that a short pause does not count as stuck."""
        self._call = None
        if turns:
            self._call = reactor.callLater(0, self._wait, turns - 1)
        elif not self.stuck.called:
            self.stuck.callback(None)

    def pauseProducing(self) -> None:
        """Pause writing."""
        self._go = False

    def resumeProducing(self) -> None:
        """Resume writing."""
        self._go = True
        if self._call is not None:
            self._call.cancel()
        self._call = reactor.callLater(0, self._write)

    def stopProducing(self) -> None:
        """Handle the loss of the connection."""
        self._go = False
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def stop(self) -> None:
        """Stop writing."""
        self.stopProducing()
        self._transport.unregisterProducer()


UPGRADE = b"GET /x HTTP/1.1\r\nHost: front\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: a\r\n\r\n"
)
