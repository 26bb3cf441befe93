"""Tests for L{kubetwist.server.etcdgateway}, with a server of HTTP."""

from __future__ import annotations

from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site
from zope.interface.verify import verifyObject

from kubetwist.client.restconfig import RESTConfig
from kubetwist.server import etcdgateway
from kubetwist.server.etcdgateway import gateway_transports
from kubetwist.storage.etcd.address import Address
from kubetwist.storage.etcd.gateway import IGatewayTransport, NoResponse, NotSent, ResponseTimeout


class Member(Resource):
    """A resource whose responses are given by the test."""

    isLeaf = True

    def __init__(self, respond: Any) -> None:
        super().__init__()
        self.respond = respond
        self.requests: list[Any] = []

    def render_POST(self, request: Any) -> Any:
        """Record a request, and respond."""
        self.requests.append((request.path, request.content.read(), request.getHeader("content-type")))
        return self.respond(request)


class TransportTests(TestCase):
    """The connections to a member."""

    def member(self, respond: Any) -> tuple[Any, Member]:
        """Return a transport, and the resource that it calls."""
        resource = Member(respond)
        site = Site(resource)
        port = reactor.listenTCP(0, site, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        make = gateway_transports(reactor, RESTConfig(url="", dial_timeout=2.0))
        transport = make(Address.parse(f"http://127.0.0.1:{port.getHost().port}"))
        self.addCleanup(transport._calls.close)
        self.addCleanup(transport._streams.close)
        return transport, resource

    async def test_post(self) -> None:
        """A request is JSON; every status is a result, and redirects are not followed."""

        def respond(request: Any) -> bytes:
            request.setResponseCode(302)
            request.setHeader("location", "/elsewhere")
            return b"{}"

        transport, resource = self.member(respond)
        verifyObject(IGatewayTransport, transport)
        self.assertEqual(await transport.post("/v3/kv/put", b'{"key":1}', 5.0), (302, b"{}"))
        self.assertEqual(resource.requests, [(b"/v3/kv/put", b'{"key":1}', "application/json")])

    async def test_unreachable(self) -> None:
        """A request for which there is no connection was certainly not sent."""
        port = reactor.listenTCP(0, Site(Resource()), interface="127.0.0.1")
        number = port.getHost().port
        await port.stopListening()
        transport = gateway_transports(reactor, RESTConfig(url="", dial_timeout=2.0))(
            Address.parse(f"127.0.0.1:{number}")
        )
        for call in (
            lambda: transport.post("/v3/kv/put", b"{}", 5.0),
            lambda: transport.stream("/v3/watch", b"{}", self.fail, lambda status, body: ValueError()),
        ):
            with self.assertRaises(NotSent) as caught:
                await call()
            self.assertIn("connection refused", str(caught.exception))

    async def test_no_response(self) -> None:
        """The outcome of a request whose response is lost, late or too long is unknown."""

        def lose(request: Any) -> int:
            request.transport.abortConnection()
            return NOT_DONE_YET

        transport, _ = self.member(lose)
        with self.assertRaises(NoResponse):
            await transport.post("/v3/kv/put", b"{}", 5.0)
        with self.assertRaises(NoResponse):
            await transport.stream("/v3/watch", b"{}", self.fail, lambda status, body: ValueError())
        silent, _ = self.member(lambda request: NOT_DONE_YET)
        with self.assertRaises(ResponseTimeout):
            await silent.post("/v3/kv/put", b"{}", 0.0)
        self.patch(etcdgateway, "MAX_RESPONSE_BYTES", 10)
        long, _ = self.member(lambda request: b"x" * 11)
        with self.assertRaises(NoResponse) as caught:
            await long.post("/v3/kv/range", b"{}", 5.0)
        self.assertIn("longer than 10 bytes", str(caught.exception))

    async def test_stream(self) -> None:
        """A stream passes the pieces as they arrive, until it is cancelled, also by the receiver."""
        for within in (True, False):
            await self.check_cancelled(within)

    async def check_cancelled(self, within: bool) -> None:
        """
        Assert that a stream is closed when it is cancelled.

        @param within: Whether the receiver cancels it.
        """
        lost: Deferred[None] = Deferred()
        arrived: Deferred[None] = Deferred()

        def respond(request: Any) -> int:
            request.notifyFinish().addErrback(lambda _: lost.callback(None))
            request.write(b"one")
            return NOT_DONE_YET

        transport, resource = self.member(respond)
        pieces: list[bytes] = []

        def receive(piece: bytes) -> None:
            pieces.append(piece)
            if within:
                streaming.cancel()
            reactor.callLater(0, arrived.callback, None)

        streaming = transport.stream("/v3/watch", b"{}", receive, lambda status, body: ValueError())
        await arrived
        self.assertEqual((pieces, resource.requests), ([b"one"], [(b"/v3/watch", b"{}", "application/json")]))
        streaming.cancel()
        with self.assertRaises(CancelledError):
            await streaming
        await lost

    async def test_end_of_stream(self) -> None:
        """A stream ends with the response."""
        transport, _ = self.member(lambda request: b"all")
        pieces: list[bytes] = []
        await transport.stream("/v3/watch", b"{}", pieces.append, lambda status, body: ValueError())
        self.assertEqual(b"".join(pieces), b"all")

    async def test_refused_stream(self) -> None:
        """Another status than 200 ends a stream with the error for it."""

        def respond(request: Any) -> bytes:
            request.setResponseCode(503)
            return b"later"

        transport, _ = self.member(respond)
        with self.assertRaises(ValueError) as caught:
            await transport.stream("/v3/watch", b"{}", self.fail, lambda status, body: ValueError(status, body))
        self.assertEqual(caught.exception.args, (503, b"later"))
