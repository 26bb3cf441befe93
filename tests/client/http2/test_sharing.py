"""Tests of L{kubetwist.client.streaming} with servers of HTTP/2: sharing of connections, and retries."""

from __future__ import annotations

from typing import Any

from hpack import Decoder

from twisted.internet.defer import Deferred, gatherResults

from kubetwist.client.errors import Unreachable
from kubetwist.client.restconfig import RESTConfig
from kubetwist.client.streaming import MAX_RETRIES, StreamingClient
from tests.client.http2.http2case import OK, Source
from tests.client.streamingcase import StreamingCase, reactor
from tests.http.http2 import frames as h2
from tests.http.http2.frames import Frame
from tests.wires import Backend, Wire


class Accepted:
    """The server's end of a connection of HTTP/2, frame by frame."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._decoder = Decoder()

    async def start(self, *settings: tuple[int, int]) -> Accepted:
        """Read the preface, and send settings."""
        assert await self.wire.take(len(h2.PREFACE)) == h2.PREFACE
        self.wire.send(h2.settings(*settings))
        return self

    async def frame(self, kind: int) -> Frame:
        """Return the next frame of a type, and discard the frames before it."""
        while True:
            head = await self.wire.take(9)
            payload = await self.wire.take(int.from_bytes(head[:3], "big"))
            if head[3] == kind:
                return Frame(kind, head[4], int.from_bytes(head[5:], "big"), payload)

    async def request(self) -> tuple[int, dict[str, str]]:
        """Return the stream and the header fields of the next request."""
        frame = await self.frame(h2.HEADERS)
        return frame.stream, dict(self._decoder.decode(frame.payload))

    def answer(self, stream: int) -> None:
        """Answer a request."""
        self.wire.send(h2.headers(stream, OK, end_stream=False) + h2.data(stream, b"ok", end_stream=True))


class SharingCase(StreamingCase):
    """Base of tests with a backend of HTTP/2."""

    def http2(self, **options: Any) -> tuple[Backend, StreamingClient]:
        """Start a backend; return it with a client of it."""
        backend = self.backend(tls=True, protocols=(b"h2", b"http/1.1"))
        return backend, self.client(backend, **options)

    async def accept(self, backend: Backend, *settings: tuple[int, int]) -> Accepted:
        """Accept the next connection."""
        return await Accepted(await backend.connection()).start(*settings)

    async def used(self, *settings: tuple[int, int]) -> tuple[Backend, StreamingClient, Accepted]:
        """Return a backend, and a client with a connection that has had a request."""
        backend, client = self.http2()
        pending = self.get(client)
        server = await self.accept(backend, *settings)
        stream, _ = await server.request()
        server.answer(stream)
        self.assertEqual(await (await pending).collect(10), b"ok")
        return backend, client, server


class ConnectionTests(SharingCase):
    """Connections."""

    async def test_request(self) -> None:
        """Requests have the header fields that they have over HTTP/1.1."""
        backend, client = self.http2(token="t")
        pending = self.get(client)
        server = await self.accept(backend)
        stream, fields = await server.request()
        self.assertEqual(
            fields,
            {
                ":method": "GET",
                ":scheme": "https",
                ":path": "/x",
                ":authority": f"127.0.0.1:{backend.port}",
                "authorization": "Bearer t",
            },
        )
        server.answer(stream)
        response = await pending
        self.assertEqual((response.code, response.minor), (200, 1))
        self.assertEqual((client.idle, client.busy), (1, 0))

    async def test_one_dial(self) -> None:
        """Once HTTP/2 is known, one request connects, and further ones wait for it."""
        backend, client, first = await self.used()
        first.wire.send(h2.goaway(1))
        await first.wire.end()
        pending = [self.get(client) for _ in range(5)]
        self.assertEqual(client.busy, 1)
        cancelled = self.get(client)
        cancelled.addErrback(lambda _: None)
        cancelled.cancel()
        server = await self.accept(backend)
        for _ in range(5):
            server.answer((await server.request())[0])
        for response in await gatherResults(pending):
            self.assertEqual(response.code, 200)
        self.assertEqual(len(backend.wires), 2)

    async def test_one_dial_for_one_stream(self) -> None:
        """Requests that have waited connect when the new connection has no room for them."""
        limit = (h2.MAX_CONCURRENT_STREAMS, 1)
        backend, client, first = await self.used(limit)
        first.wire.send(h2.goaway(1))
        await first.wire.end()
        pending = [self.get(client) for _ in range(3)]
        servers = []
        for _ in range(3):
            servers.append(server := await self.accept(backend, limit))
            stream, _ = await server.request()
            self.assertEqual(stream, 1)
        for server in servers:
            server.answer(1)
        self.assertEqual([response.code for response in await gatherResults(pending)], [200] * 3)

    async def test_dial_fails(self) -> None:
        """Requests that wait for a connection fail with its error."""
        backend, client, _ = await self.used()
        await backend.stop()
        await self.until(lambda: not client._open)
        for pending in [self.get(client) for _ in range(3)]:
            error = await self.assertFailure(pending, Unreachable)
            self.assertIn("connection refused", str(error))
            self.assertFalse(error.sent)

    async def test_dial_cancelled(self) -> None:
        """If the request that connects is cancelled, another one connects."""
        backend, client, first = await self.used()
        first.wire.send(h2.goaway(1))
        await first.wire.end()
        connecting, waiting = self.get(client), self.get(client)
        connecting.addErrback(lambda _: None)
        connecting.cancel()
        while True:
            wire = await backend.connection()
            try:
                server = await Accepted(wire).start()
                break
            except AssertionError:
                # This is the connection of the cancelled request.
                continue
        server.answer((await server.request())[0])
        self.assertEqual((await waiting).code, 200)

    async def until(self, condition: Any) -> None:
        """Wait until a condition is true; the timeout of the test limits the wait."""
        while not condition():
            turn: Deferred[None] = Deferred()
            reactor.callLater(0, turn.callback, None)
            await turn

    async def test_no_settings(self) -> None:
        """A server that sends no settings fails the request, as one that does not finish the handshake."""
        backend, client = self.http2(dial_timeout=0.05)
        error = await self.assertFailure(self.get(client), Unreachable)
        self.assertEqual(str(error), "http2: timeout awaiting SETTINGS")
        self.assertFalse(error.sent)
        await (await backend.connection()).end()
        self.assertEqual(client.busy, 0)

    async def test_no_streams(self) -> None:
        """A server that accepts no streams fails the request."""
        backend, client = self.http2()
        pending = self.get(client)
        server = await self.accept(backend, (h2.MAX_CONCURRENT_STREAMS, 0))
        error = await self.assertFailure(pending, Unreachable)
        self.assertEqual(str(error), "http2: the server accepts no streams")
        await server.wire.end()

    async def test_no_http2(self) -> None:
        """A server that chooses HTTP/2 and does not speak it fails the request."""
        backend, client = self.http2()
        pending = self.get(client)
        (await backend.connection()).send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        error = await self.assertFailure(pending, Unreachable)
        self.assertTrue(str(error).startswith("connection error: "), error)

    async def test_idle(self) -> None:
        """An idle connection is closed after the timeout."""
        backend = self.backend(tls=True, protocols=(b"h2",))
        client = StreamingClient(reactor, RESTConfig(url=backend.url, ca=backend.ca), idle_timeout=0.01)
        pending = self.get(client)
        server = await self.accept(backend)
        server.answer((await server.request())[0])
        await pending
        await server.wire.end()
        await self.until(lambda: not client._open)
        self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_closed_by_server(self) -> None:
        """A server may close a connection without GOAWAY: an incomplete response fails, and later requests connect."""
        backend, client, server = await self.used()
        pending = self.get(client)
        stream, _ = await server.request()
        server.wire.send(h2.headers(stream, OK, end_stream=False) + h2.data(stream, b"a"))
        response = await pending
        server.wire.close()
        error = await self.assertFailure(Deferred.fromCoroutine(response.collect(10)), Unreachable)
        self.assertEqual(str(error), "unexpected EOF")
        await self.until(lambda: not client._open)
        pending = self.get(client)
        server = await self.accept(backend)
        server.answer((await server.request())[0])
        await (await pending).collect(10)
        server.wire.close()
        await self.until(lambda: not client._open)
        self.assertEqual((client.idle, client.busy), (0, 0))

    async def test_closed_while_sending(self) -> None:
        """The loss of a server that does not read is detected while a body is sent to it."""
        _, client, server = await self.used((h2.INITIAL_WINDOW_SIZE, h2.MAX_WINDOW))
        server.wire.send(h2.window_update(0, h2.MAX_WINDOW - h2.DEFAULT_WINDOW))
        pending = self.get(client, b"POST", b"x" * 50_000_000)
        await server.request()
        server.wire.transport.pauseProducing()
        server.wire.transport.abortConnection()
        await self.assertFailure(pending, Unreachable)
        await self.until(lambda: not client._open)

    async def test_retire(self) -> None:
        """A retired client finishes its requests, and closes the connection then."""
        _, client, server = await self.used()
        pending = self.get(client)
        stream, _ = await server.request()
        client.retire()
        server.answer(stream)
        self.assertEqual(await (await pending).collect(10), b"ok")
        await server.wire.end()
        await self.assertFailure(self.get(client), Unreachable)

    async def test_close(self) -> None:
        """Closing the client fails its requests."""
        _, client, server = await self.used()
        pending = self.get(client)
        await server.request()
        failed = self.assertFailure(pending, Unreachable)
        await client.close()
        await failed


class RetryTests(SharingCase):
    """Requests that are sent again."""

    async def test_refused(self) -> None:
        """A refused request is repeated on another connection, with any method, if its body is in memory."""
        for method, body in ((b"GET", None), (b"POST", b"body")):
            backend, client, first = await self.used()
            pending = self.get(client, method, body)
            stream, _ = await first.request()
            first.wire.send(h2.reset(stream, h2.REFUSED_STREAM))
            second = await self.accept(backend)
            stream, fields = await second.request()
            self.assertEqual(fields[":method"], method.decode())
            if body:
                self.assertEqual((await second.frame(h2.DATA)).payload, body)
            second.answer(stream)
            self.assertEqual((await pending).code, 200)

    async def test_refused_upload(self) -> None:
        """A body that was streamed cannot be repeated."""
        _, client, first = await self.used()
        source = Source(None)
        pending = self.get(client, b"POST", source.upload)
        stream, _ = await first.request()
        first.wire.send(h2.reset(stream, h2.REFUSED_STREAM))
        error = await self.assertFailure(pending, Unreachable)
        self.assertEqual(str(error), "stream error: stream ID 3; REFUSED_STREAM; received from peer")
        self.assertTrue(source.cancelled)

    async def test_refused_again(self) -> None:
        """A server that refuses all requests is not asked endlessly."""
        backend, client = self.http2()
        pending = self.get(client)
        for _ in range(MAX_RETRIES + 1):
            server = await self.accept(backend)
            stream, _ = await server.request()
            server.wire.send(h2.reset(stream, h2.REFUSED_STREAM))
        error = await self.assertFailure(pending, Unreachable)
        self.assertIn("REFUSED_STREAM", str(error))
        self.assertEqual(len(backend.wires), MAX_RETRIES + 1)

    async def test_goaway(self) -> None:
        """A request that GOAWAY leaves unprocessed is repeated."""
        backend, client, first = await self.used()
        pending = self.get(client, b"PATCH", b"{}")
        await first.request()
        first.wire.send(h2.goaway(1))
        second = await self.accept(backend)
        stream, _ = await second.request()
        second.answer(stream)
        self.assertEqual((await pending).code, 200)
        await first.wire.end()

    async def test_stale(self) -> None:
        """A request on a connection that turns out to be closed is repeated if it is idempotent."""
        for method, repeated in ((b"GET", True), (b"POST", False)):
            backend, client, first = await self.used()
            pending = self.get(client, method)
            await first.request()
            first.wire.kill()
            if not repeated:
                await self.assertFailure(pending, Unreachable)
                continue
            second = await self.accept(backend)
            stream, _ = await second.request()
            second.answer(stream)
            self.assertEqual((await pending).code, 200)
