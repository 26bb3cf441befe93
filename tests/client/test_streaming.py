"""Tests of L{kubetwist.client.streaming}."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import TCP4ClientEndpoint

from kubetwist.client.errors import (
    AddressNotAllowed,
    InvalidRESTConfig,
    Unreachable,
)
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.streaming import (
    IDLE_TIMEOUT,
    StreamingClient,
)
from tests.client.streamingcase import OK, Sink, StreamingCase, reactor
from tests.wires import Backend, Wire


class ConnectionTests(StreamingCase):
    """Lifecycle of connections."""

    async def test_kept(self) -> None:
        """A connection is reused after a complete response; a concurrent request opens another one."""
        backend = self.backend()
        client = self.client(backend)
        first, second = self.get(client), self.get(client)
        one, other = await backend.connection(), await backend.connection()
        self.assertEqual((client.idle, client.busy), (0, 2))
        for wire in (one, other):
            wire.send(OK)
        for pending in (first, second):
            self.assertEqual(await (await pending).collect(10), b"ok")
        self.assertEqual((client.idle, client.busy), (2, 0))
        third = self.get(client)
        wire = await self.busy_wire((one, other), 2)
        wire.send(OK)
        await (await third).collect(10)
        self.assertEqual(len(backend.wires), 2)

    async def busy_wire(self, wires: tuple[Wire, ...], count: int) -> Wire:
        """Wait until one of the connections has received C{count} requests; return it."""
        while True:
            for wire in wires:
                if wire.data.count(b"GET /x ") >= count:
                    return wire
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn

    async def test_not_kept(self) -> None:
        """A connection is not reused after C{Connection: close}, HTTP/1.0, or surplus data."""
        for answer in (
            OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
            OK.replace(b"1.1", b"1.0"),
            OK + b"more",
        ):
            client, wire, response = await self.answered(answer)
            self.assertEqual(await response.collect(10), b"ok")
            await wire.end()
            self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_unexpected_data(self) -> None:
        """Data on an idle connection close it."""
        client, wire, response = await self.answered(OK)
        await response.collect(10)
        wire.send(OK)
        await wire.end()
        self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_stale(self) -> None:
        """A request that fails because its reused connection was closed is retried if it is idempotent."""
        backend = self.backend()
        client = self.client(backend)
        for method, repeated in ((b"GET", True), (b"POST", False)):
            pending = self.get(client)
            wire = await backend.connection()
            wire.send(OK)
            await (await pending).collect(10)
            wire.data.clear()
            again = self.get(client, method)
            await wire.until(b"\r\n\r\n")
            wire.kill()
            if not repeated:
                error = await self.assertFailure(again, Unreachable)
                self.assertIn("connection reset by peer", str(error))
                continue
            new_connection = await backend.connection()
            await new_connection.until(b"\r\n\r\n")
            new_connection.send(OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            self.assertEqual(await (await again).collect(10), b"ok")

    async def test_closed_before_the_answer(self) -> None:
        """A new connection that is closed before the response fails the request."""
        backend = self.backend()
        pending = self.get(self.client(backend))
        (await backend.connection()).close()
        self.assertEqual(str(await self.assertFailure(pending, Unreachable)), "EOF")
        self.assertEqual(len(backend.wires), 1)

    async def test_lost_while_idle(self) -> None:
        """A request on a lost connection fails."""
        client, wire, response = await self.answered(OK)
        await response.collect(10)
        (connection,) = client._open
        wire.kill()
        await wire.end()
        while client._open:
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn
        await self.assertFailure(connection.round_trip(b"GET", b"/", [], None, None, False), Unreachable)

    async def test_refused(self) -> None:
        """A refused connection fails with Go's text."""
        backend = self.backend()
        client = self.client(backend)
        port = backend.port
        await backend.stop()
        error = await self.assertFailure(self.get(client), Unreachable)
        self.assertEqual(str(error), f"dial tcp 127.0.0.1:{port}: connect: connection refused")
        self.assertFalse(error.sent)
        self.assertEqual(client.busy, 0)

    async def test_deny_internal(self) -> None:
        """
        SECURITY, CVE-2020-8562: the client connects to the checked address; addresses of this machine are refused.
        """
        backend = self.backend()
        client = self.client(backend, deny_internal=True)
        error = await self.assertFailure(self.get(client), AddressNotAllowed)
        self.assertEqual(str(error), f"dial tcp 127.0.0.1:{backend.port}: address not allowed")
        self.assertEqual(backend.wires, [])
        self.outgoing.address_overrides[("10.0.0.7", 80)] = ("127.0.0.1", backend.port)
        pending = self.get(self.client(backend, url="http://10.0.0.7", deny_internal=True))
        wire = await backend.connection()
        self.assertIn(b"host: 10.0.0.7\r\n", await wire.until(b"\r\n\r\n"))
        pending.cancel()
        await self.assertFailure(pending, CancelledError)

    async def test_max_idle_connections(self) -> None:
        """The oldest idle connection above the maximum number is closed."""
        backend = self.backend()
        client = StreamingClient(reactor, RESTConfig(url=backend.url), max_idle_connections=1)
        self.addCleanup(client.close)
        pending = [self.get(client) for _ in range(2)]
        wires = [await backend.connection() for _ in pending]
        for wire, response in zip(wires, pending, strict=True):
            wire.send(OK)
            await (await response).collect(10)
        await wires[0].end()
        self.assertEqual((client.idle, client.busy), (1, 0))

    async def test_endpoint(self) -> None:
        """A client of an endpoint opens a connection for each request."""
        backend = self.backend()
        host, _, port = backend.url.rpartition("/")[2].rpartition(":")
        endpoint = TCP4ClientEndpoint(reactor, host, int(port))
        client = self.outgoing.stream_client(RESTConfig(url="http://simulated"), endpoint)
        for count in (1, 2):
            pending = self.get(client)
            wire = await backend.connection()
            wire.send(OK)
            self.assertEqual(await (await pending).collect(10), b"ok")
            self.assertEqual((client.idle, len(backend.wires)), (0, count))

    async def test_moved(self) -> None:
        """After a service has moved, its old connection is not reused."""
        old, new = self.backend(), self.backend()
        places = [("127.0.0.1", old.port), ("127.0.0.1", new.port)]
        client = self.client(old, resolve_address=lambda: places.pop(0))
        for backend in (old, new):
            pending = self.get(client)
            (await backend.connection()).send(OK)
            self.assertEqual(await (await pending).collect(10), b"ok")
        self.assertEqual(client.idle, 2)

    async def test_cancelled(self) -> None:
        """Cancelling a request closes its connection."""
        backend = self.backend()
        client = self.client(backend)
        pending = self.get(client)
        wire = await backend.connection()
        await wire.until(b"\r\n\r\n")
        pending.cancel()
        await self.assertFailure(pending, CancelledError)
        await wire.end()
        self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_close(self) -> None:
        """Closing the client fails pending requests and later ones."""
        backend = self.backend()
        client = self.client(backend)
        pending = self.get(client)
        wire = await backend.connection()
        await wire.until(b"\r\n\r\n")
        closing = client.close()
        await self.assertFailure(pending, Unreachable)
        await closing
        await wire.end()
        self.assertEqual((client.idle, client.busy), (0, 0))
        self.assertEqual(str(await self.assertFailure(self.get(client), Unreachable)), "context canceled")

    async def test_retire(self) -> None:
        """A retired client completes pending requests first."""
        backend = self.backend()
        client = self.client(backend)
        pending = self.get(client)
        wire = await backend.connection()
        await wire.until(b"\r\n\r\n")
        client.retire()
        wire.send(OK)
        self.assertEqual(await (await pending).collect(10), b"ok")
        await wire.end()
        await self.assertFailure(self.get(client), Unreachable)

    async def test_idle(self) -> None:
        """Idle connections are closed after a timeout."""
        client, wire, response = await self.answered(OK)
        await response.collect(10)
        self.assertEqual(client.idle, 1)
        (sweep,) = [call for call in reactor.getDelayedCalls() if call.func == client._close_idle]
        client._idle[0].idle_since -= IDLE_TIMEOUT
        sweep.reset(0)
        await wire.end()
        self.assertEqual((client.idle, client.busy), (0, 0))

    def test_invalid_settings(self) -> None:
        """Invalid settings are refused when the client is created."""
        for url in ("ftp://x", "https://", "http://x:99999999", "nonsense", "http://[127.0.0.1:80]:443", "http://[x"):
            self.assertRaises(InvalidRESTConfig, self.outgoing.stream_client, RESTConfig(url=url))

    async def test_header_injection(self) -> None:
        """SECURITY, twisted#12754: a request with a line break or NUL in its head is not sent."""
        backend = self.backend()
        client = self.client(backend)
        for target, fields in (
            (b"/x HTTP/1.1\r\nA: b", []),
            (b"/x", [(b"a", b"b\r\nc: d")]),
            (b"/x", [(b"a", b"b\n")]),
            (b"/x", [(b"a\r", b"b")]),
            (b"/x", [(b"a", b"\0")]),
        ):
            pending = Deferred.fromCoroutine(client.request(b"GET", target, fields))
            self.assertIn("invalid header", str(await self.assertFailure(pending, Unreachable)))
            self.assertEqual(await (await backend.connection()).end(), b"")


class TLSTests(StreamingCase):
    """TLS: trust in servers, and client certificates."""

    async def tls_answer(self, backend: Backend, **settings: Any) -> bytes:
        """Return the body of a response over TLS."""
        pending = self.get(self.client(backend, **settings))
        pending.addErrback(lambda failure: failure)
        waiting = backend.connection()
        waiting.addCallback(lambda wire: wire.when(lambda: wire.data or wire.lost))
        waiting.addCallbacks(lambda _: backend.wires[-1].send(OK), lambda _: None)
        answer = await pending
        return await answer.collect(10)

    async def test_trusted(self) -> None:
        """A certificate of a trusted authority for the host, or for the configured server name, is accepted."""
        self.assertEqual(await self.tls_answer(self.backend(tls=True)), b"ok")
        elsewhere = self.backend(tls=True, names=("a.b.svc",))
        self.assertEqual(await self.tls_answer(elsewhere, server_name="a.b.svc"), b"ok")

    async def test_not_trusted(self) -> None:
        """Other certificates are refused."""
        for backend, settings, text in (
            (self.backend(tls=True), {"ca": Backend(reactor, tls=True).ca}, "signed by unknown authority"),
            (self.backend(tls=True, names=("a.b.svc",)), {}, "cannot validate certificate for 127.0.0.1"),
            (self.backend(tls=True), {"server_name": "c.d.svc"}, "certificate is"),
        ):
            client = self.client(backend, **settings)
            error = await self.assertFailure(self.get(client), Unreachable)
            self.assertIn("tls: failed to verify certificate: x509: ", str(error))
            self.assertIn(text, str(error))
            self.assertEqual(client.busy, 0)

    async def test_insecure(self) -> None:
        """With C{insecure} every certificate is accepted."""
        backend = self.backend(tls=True, names=("other",))
        self.assertEqual(await self.tls_answer(backend, ca=b"", insecure=True), b"ok")

    async def test_client_certificate(self) -> None:
        """The client presents its certificate if the server requests it."""
        backend = self.backend(tls=True, require_client=True)
        pair = backend.client_pair("front-proxy")
        self.assertEqual(await self.tls_answer(backend, certificate=pair.certificate, key=pair.key), b"ok")

    async def test_handshake_timeout(self) -> None:
        """A TLS handshake that does not complete in time fails the request."""
        backend = self.backend()
        pending = self.get(self.client(backend, url=backend.url.replace("http:", "https:"), dial_timeout=0.05))
        wire = await backend.connection()
        self.assertEqual(str(await self.assertFailure(pending, Unreachable)), "net/http: TLS handshake timeout")
        await wire.end()

    async def test_no_tls(self) -> None:
        """A server without TLS fails the request with Go's text."""
        backend = self.backend()
        pending = self.get(self.client(backend, url=backend.url.replace("http:", "https:")))
        (await backend.connection()).send(OK)
        error = await self.assertFailure(pending, Unreachable)
        self.assertEqual(str(error), "http: server gave HTTP response to HTTPS client")

    async def test_truncated(self) -> None:
        """A body that ends with the connection is complete only after a TLS close notification."""
        for end, complete in (("close", True), ("kill", False)):
            backend = self.backend(tls=True)
            pending = self.get(self.client(backend))
            wire = await backend.connection()
            await wire.until(b"\r\n\r\n")
            wire.send(b"HTTP/1.1 200 OK\r\n\r\nall")
            answer = await pending
            sink = Sink()
            done = answer.deliver(sink)
            if end == "kill":
                # The plain connection ends below TLS.
                wire.transport.transport.loseConnection()
            else:
                wire.close()
            if complete:
                await done
            else:
                await self.assertFailure(done, Unreachable)
            self.assertEqual(sink.data, b"all")
