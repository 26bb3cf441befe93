"""Tests of proxying to servers of HTTP/2, over TLS."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IProducer
from twisted.trial.unittest import TestCase
from zope.interface import implementer

from kubetwist.client.factory import ClientFactory
from kubetwist.client.http2.connection import Http2BackendConnection
from kubetwist.client.http2.stream import STREAM_WINDOW
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.streaming import DISABLE_HTTP2
from kubetwist.filters.requestinfo import with_request_info
from kubetwist.http.request import HTTP2, KubeRequest
from kubetwist.http.site import KubeSite
from kubetwist.resources.proxy.reverseproxy import proxy_request, run_proxy
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.credentials.tlscontext import ServingContextFactory
from tests.http.http2 import frames as h2
from tests.http.http2.client import get
from tests.http.http2.endless import Endless
from tests.resources.proxy.proxied import UPGRADE, Flood, Proxied, reactor
from tests.wires import Wire, connect

#: What the kernel, TLS and the connections of client and proxy may buffer.
BUFFERED = 16 * 1024 * 1024
LARGE = 64 * 1024 * 1024


@implementer(IConsumer)
class Slow:
    """A consumer of a request body that pauses its producer after the first piece."""

    def __init__(self) -> None:
        self.size = 0
        self.producer: Any = None
        self.paused = False

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """Register the producer."""
        self.producer = producer

    def unregisterProducer(self) -> None:
        """Unregister it."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Count the data, and pause."""
        self.size += len(data)
        if not self.paused:
            self.paused = True
            self.producer.pauseProducing()


class Http2ProxyCase(TestCase):
    """Base of tests with a client of HTTP/1.1, a proxy, and a server that offers HTTP/2."""

    timeout = 30
    protocols: tuple[bytes, ...] = (b"h2", b"http/1.1")

    async def setUp(self) -> None:
        """Start the servers."""
        self.handler: Callable[[KubeRequest], object] = lambda request: request.respond_text(200, "hello\n")
        self.received: list[KubeRequest] = []
        self.back = KubeSite(with_request_info(self._serve), reactor)
        # Otherwise Twisted offers HTTP/2 in any case.
        self.patch(self.back, "acceptableProtocols", lambda: list(self.protocols))
        self.back.streams.append(lambda request: request.method == b"PUT")
        self.front = KubeSite(with_request_info(self._forward), reactor)
        self.front.streams.append(lambda request: True)
        authority = CertificateAuthority.make("back-ca")
        pair = authority.issue(CertConfig("back", names=("127.0.0.1",), server=True))
        self.back_port = reactor.listenSSL(
            0,
            self.back,
            ServingContextFactory(pair, "VersionTLS12", protocols=self.protocols),
            interface="127.0.0.1",
        )
        self.front_port = reactor.listenTCP(0, self.front, interface="127.0.0.1")
        self.outgoing = ClientFactory(reactor, lambda namespace, name: None)
        self.client = self.outgoing.stream_client(
            RESTConfig(url=f"https://127.0.0.1:{self.back_port.getHost().port}", ca=authority.pair.certificate)
        )
        self.wires: list[Wire] = []

    async def tearDown(self) -> None:
        """Stop everything; no connection may remain."""
        for port in (self.front_port, self.back_port):
            await port.stopListening()
        for wire in self.wires:
            if wire.lost is None:
                wire.kill()
                await wire.end()
        await self.outgoing.close()
        await self.settled(lambda: not (self.front.connections.channels or self.back.connections.channels))
        self.assertEqual((self.client.idle, self.client.busy), (0, 0))

    def _serve(self, request: KubeRequest) -> None:
        self.received.append(request)
        self.handler(request)

    def _forward(self, request: KubeRequest) -> None:
        run_proxy(proxy_request(request, self.client, request.uri), request)

    async def settled(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true; the timeout of the test limits the wait."""
        while not condition():
            turn: Deferred[None] = Deferred()
            reactor.callLater(0.001, turn.callback, None)
            await turn

    async def ask(self, head: bytes = b"GET /a HTTP/1.1\r\nHost: front\r\n\r\n") -> Wire:
        """Send a request on a new connection."""
        wire = await connect(reactor, self.front_port.getHost().port)
        self.wires.append(wire)
        wire.send(head)
        return wire

    async def get(self) -> bytes:
        """Return the answer to a small request."""
        wire = await self.ask()
        head = await wire.until(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 OK\r\n"), head)
        return await wire.take(6)


class Http2ProxyTests(Http2ProxyCase):
    """Requests to a server of HTTP/2."""

    async def test_shared(self) -> None:
        """Requests at the same time share one connection of HTTP/2."""
        self.assertEqual(await self.get(), b"hello\n")
        self.handler = lambda request: None
        wires = [await self.ask() for _ in range(20)]
        await self.settled(lambda: len(self.received) == 21)
        self.assertEqual({request.clientproto for request in self.received}, {HTTP2})
        self.assertEqual(len(self.back.connections.channels), 1)
        self.assertEqual((self.client.idle, self.client.busy), (0, 1))
        for request in self.received[1:]:
            request.respond_text(200, "hello\n")
        for wire in wires:
            await wire.until(b"hello\n")
        self.assertEqual((self.client.idle, self.client.busy), (1, 0))

    async def test_burst(self) -> None:
        """Requests that begin before the protocol is known end on one connection."""
        for wire in [await self.ask() for _ in range(10)]:
            await wire.until(b"hello\n")
        await self.settled(lambda: len(self.back.connections.channels) == 1)
        self.assertEqual((self.client.idle, self.client.busy), (1, 0))

    async def test_slow_client(self) -> None:
        """A large response is produced as its client reads it; other requests on the connection continue."""
        responses: list[Endless] = []
        self.handler = lambda request: responses.append(Endless(request, LARGE))
        slow = await self.ask()
        await slow.until(b"\r\n\r\n")
        slow.transport.pauseProducing()
        (response,) = responses
        written = -1
        while written != response.written:
            written = response.written
            for _ in range(20):
                await self.settled(lambda: True)
                turn: Deferred[None] = Deferred()
                reactor.callLater(0.005, turn.callback, None)
                await turn
        self.assertLess(written, BUFFERED)
        self.handler = lambda request: request.respond_text(200, "hello\n")
        for _ in range(3):
            self.assertEqual(await self.get(), b"hello\n")
        self.assertEqual(len(self.back.connections.channels), 1)
        slow.transport.resumeProducing()
        await slow.arrived(LARGE)

    async def test_slow_backend(self) -> None:
        """A request body is read from the client as the backend reads it."""
        consumers: list[Slow] = []

        def serve(request: KubeRequest) -> None:
            consumers.append(Slow())
            request.deliver_body(consumers[0]).addBoth(lambda _: None)

        self.handler = serve
        wire = await self.ask(b"PUT /a HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        self.assertLess(flood.written, BUFFERED)
        (consumer,) = consumers
        size = consumer.size
        consumer.producer.resumeProducing()
        await self.settled(lambda: consumer.size > size + STREAM_WINDOW)
        wire.kill()
        await self.settled(lambda: not self.back.open_requests)

    async def test_watch(self) -> None:
        """Events of a watch arrive one by one; its end by the client resets the stream, and keeps the connection."""
        self.handler = lambda request: request.write(b"first\n")
        wire = await self.ask(b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: front\r\n\r\n")
        await wire.until(b"first\n")
        (request,) = self.received
        request.write(b"second\n")
        await wire.until(b"second\n")
        ended = request.notifyFinish()
        wire.kill()
        await self.assertFailure(ended, Exception)
        self.handler = lambda request: request.respond_text(200, "hello\n")
        self.assertEqual(await self.get(), b"hello\n")
        self.assertEqual(len(self.back.connections.channels), 1)

    async def test_cancelled(self) -> None:
        """A request whose client is lost before the answer is reset at the backend."""
        self.handler = lambda request: None
        wire = await self.ask()
        await self.settled(lambda: self.received)
        ended = self.received[0].notifyFinish()
        wire.kill()
        await self.assertFailure(ended, Exception)
        self.assertEqual(len(self.back.connections.channels), 1)

    async def test_truncated(self) -> None:
        """A response that breaks off at the backend breaks off at the client."""
        self.handler = lambda request: request.write(b"a")
        wire = await self.ask()
        await wire.until(b"1\r\na\r\n")
        self.received[0].truncate_response()
        self.assertEqual(await wire.end(), b"")

    async def test_goaway(self) -> None:
        """A backend that stops finishes its requests, and new ones use another connection."""
        self.handler = lambda request: request.write(b"a")
        wire = await self.ask()
        await wire.until(b"1\r\na\r\n")
        (channel,) = self.back.connections.channels
        channel.disable_keep_alive()
        self.handler = lambda request: request.respond_text(200, "hello\n")
        for _ in range(3):
            self.assertEqual(await self.get(), b"hello\n")
        self.received[0].finish()
        await wire.until(b"0\r\n\r\n")
        await self.settled(lambda: channel not in self.back.connections.channels)
        self.assertEqual(len(self.back.connections.channels), 1)

    async def test_stopped(self) -> None:
        """An idle connection that the backend has closed costs no request."""
        self.assertEqual(await self.get(), b"hello\n")
        self.back.connections.abort_all()
        self.assertEqual(await self.get(), b"hello\n")

    async def test_lost(self) -> None:
        """The loss of the backend before the answer is the error of all its requests."""
        self.assertEqual(await self.get(), b"hello\n")
        self.handler = lambda request: None
        wires = [await self.ask(b"POST /a HTTP/1.1\r\nHost: front\r\nContent-Length: 1\r\n\r\nx") for _ in range(3)]
        await self.settled(lambda: len(self.received) == 4)
        self.back.connections.abort_all()
        for wire in wires:
            await wire.until(b"error trying to reach service: ")

    async def test_upgrade(self) -> None:
        """Upgrades use a connection of HTTP/1.1."""
        self.assertEqual(await self.get(), b"hello\n")
        self.handler = lambda request: request.respond_text(404, "nothing\n")
        wire = await self.ask(UPGRADE)
        await wire.until(b"nothing\n")
        self.assertEqual([request.clientproto for request in self.received], [HTTP2, b"HTTP/1.1"])
        self.assertEqual(self.received[1].getHeader(b"upgrade"), b"websocket")
        self.handler = lambda request: request.respond_text(200, "hello\n")
        self.assertEqual(await self.get(), b"hello\n")
        self.assertEqual(self.received[2].clientproto, HTTP2)

    async def test_limit(self) -> None:
        """Requests beyond the limit of the backend open further connections."""
        self.back.max_streams = 4
        self.assertEqual(await self.get(), b"hello\n")
        self.handler = lambda request: None
        wires = [await self.ask() for _ in range(10)]
        await self.settled(lambda: len(self.received) == 11)
        self.assertEqual(len(self.back.connections.channels), 3)
        for request in self.received[1:]:
            request.respond_text(200, "hello\n")
        for wire in wires:
            await wire.until(b"hello\n")

    async def test_idle_timeout(self) -> None:
        """A closed idle connection is replaced by the next request."""
        self.assertEqual(await self.get(), b"hello\n")
        (connection,) = self.client._open
        self.assertIsInstance(connection, Http2BackendConnection)
        self.client.drop_idle()
        await self.settled(lambda: not self.back.connections.channels)
        self.assertEqual(await self.get(), b"hello\n")


class Http1Tests(Http2ProxyCase):
    """Servers and clients without HTTP/2."""

    async def test_server(self) -> None:
        """A server that does not offer HTTP/2 gets HTTP/1.1."""
        self.protocols = (b"http/1.1",)
        await self.tearDown()
        await self.setUp()
        self.assertEqual(await self.get(), b"hello\n")
        self.assertEqual(self.received[0].clientproto, b"HTTP/1.1")

    async def test_environment(self) -> None:
        """DISABLE_HTTP2 in the environment disables HTTP/2 in clients, as in client-go."""
        self.patch(os, "environ", {**os.environ, DISABLE_HTTP2: "true"})
        await self.tearDown()
        await self.setUp()
        self.assertEqual(await self.get(), b"hello\n")
        self.assertEqual(self.received[0].clientproto, b"HTTP/1.1")


class FromHttp2Tests(Proxied):
    """Requests of clients of HTTP/2 to a server of HTTP/1.1: none contains another request for that server."""

    tls = True
    #: What must not reach the server as a request.
    SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: back\r\n\r\n"

    async def connect_http2(self) -> Wire:
        """Connect a client of HTTP/2, and send its preface."""
        wire = await connect(reactor, self.port.getHost().port, ca=self.ca, protocols=(b"h2",))
        self.wires.append(wire)
        wire.send(h2.PREFACE + h2.settings())
        return wire

    async def forwarded(self, *sent: bytes) -> tuple[Wire, Wire, bytes]:
        """Send frames; return the client, the connection of the server, and the head that the server has received."""
        wire = await self.connect_http2()
        wire.send(b"".join(sent))
        there = await self.backend.connection()
        return wire, there, await there.until(b"\r\n\r\n")

    async def reset_code(self, wire: Wire) -> int:
        """Wait for the reset of the first stream, and return its error code."""

        def look() -> int | None:
            found = [one for one in h2.parse_frames(bytes(wire.data))[0] if one.type == h2.RST_STREAM]
            return int.from_bytes(found[0].payload, "big") if found else None

        code: int = await wire.when(look)
        return code

    async def test_unknown_length(self) -> None:
        """A body without C{Content-Length} is sent in chunks, which its content cannot end."""
        body = b"0\r\n\r\n" + self.SMUGGLED
        _, there, head = await self.forwarded(
            h2.headers(1, get(b"/a", method=b"POST"), end_stream=False), h2.data(1, body, end_stream=True)
        )
        self.assertTrue(head.startswith(b"POST /a HTTP/1.1\r\n"), head)
        self.assertEqual(head.lower().count(b"transfer-encoding: chunked\r\n"), 1)
        self.assertNotIn(b"content-length", head.lower())
        self.assertEqual(await there.until(b"\r\n0\r\n\r\n"), b"%x\r\n0\r\n\r\n" % len(body))
        self.assertEqual(await there.until(b"\r\n0\r\n\r\n"), self.SMUGGLED + b"\r\n0\r\n\r\n")

    async def test_longer_than_announced(self) -> None:
        """Data beyond C{Content-Length} are not sent, and the connection to the server is closed."""
        fields = get(b"/a", (b"content-length", b"3"), method=b"POST")
        wire, there, head = await self.forwarded(h2.headers(1, fields, end_stream=False))
        self.assertIn(b"content-length: 3\r\n", head.lower())
        wire.send(h2.data(1, b"abc" + self.SMUGGLED, end_stream=True))
        self.assertEqual(await self.reset_code(wire), h2.PROTOCOL_ERROR)
        self.assertNotIn(b"smuggled", await there.end())

    async def test_shorter_than_announced(self) -> None:
        """If data are missing, the connection to the server is closed: the next request would complete the body."""
        fields = get(b"/a", (b"content-length", b"300"), method=b"POST")
        wire, there, _ = await self.forwarded(h2.headers(1, fields, end_stream=False), h2.data(1, b"abc"))
        self.assertEqual(await there.take(3), b"abc")
        wire.send(h2.data(1, b"", end_stream=True))
        self.assertEqual(await self.reset_code(wire), h2.PROTOCOL_ERROR)
        self.assertEqual(await there.end(), b"")
        wire.send(h2.headers(3, get(b"/b")))
        other = await self.backend.connection()
        self.assertTrue((await other.until(b"\r\n\r\n")).startswith(b"GET /b HTTP/1.1\r\n"))

    async def test_trailers(self) -> None:
        """Trailers do not reach the server."""
        trailers = [(b"x-trailer", b"x"), (b"content-length", b"0")]
        _, there, head = await self.forwarded(
            h2.headers(1, get(b"/a", method=b"POST"), end_stream=False), h2.data(1, b"abc"), h2.headers(1, trailers)
        )
        self.assertEqual(await there.until(b"0\r\n\r\n"), b"3\r\nabc\r\n0\r\n\r\n")
        self.assertNotIn(b"trailer", head.lower())

    async def test_malformed(self) -> None:
        """Heads that would be several lines or requests in HTTP/1.1, or frame the body in two ways, are not sent."""
        for number, fields in enumerate(
            (
                [*h2.GET, (b"x-a", b"b\r\n\r\n" + self.SMUGGLED)],
                [*h2.GET, (b"x-a\r\nx-b", b"c")],
                [*h2.GET, (b"x-a:", b"b")],
                [*h2.POST, (b"transfer-encoding", b"chunked")],
                [*h2.POST, (b"content-length", b"3"), (b"content-length", b"4")],
                [*h2.POST, (b"content-length", b"3, 4")],
                [*h2.POST, (b"content-length", b"+3")],
                [*h2.GET, (b"connection", b"x-remote-user")],
                get(b"/a HTTP/1.1\r\nx-b: c"),
                get(b"/a", method=b"GET /b HTTP/1.1\r\nx-c:"),
            )
        ):
            wire = await self.connect_http2()
            wire.send(h2.headers(1, fields))
            self.assertEqual((number, await self.reset_code(wire)), (number, h2.PROTOCOL_ERROR))
        self.assertEqual(self.backend.wires, [])
