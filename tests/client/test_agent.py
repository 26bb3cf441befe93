"""Tests of L{kubetwist.client.agent}, over real connections to backends that the tests control."""

from __future__ import annotations

from gzip import compress
from io import BytesIO
from typing import Any

from treq.client import HTTPClient
from treq.testing import RequestTraversalAgent
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import FileBodyProducer, ResponseDone
from twisted.web.http_headers import Headers
from twisted.web.iweb import UNKNOWN_LENGTH, IAgent, IBodyProducer, IClientRequest, IResponse
from twisted.web.resource import Resource
from twisted.web.static import Data
from zope.interface.verify import verifyObject

from kubetwist.client.agent import BytesProducer, NoCookies, StreamingAgent, request_url
from kubetwist.client.errors import CallError, Unreachable
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import RESTConfig
from kubetwist.testing.webhooks import Reply
from tests.client.clientcase import ClientCase
from tests.client.streamingcase import OK, StreamingCase, reactor
from tests.wires import Backend, Wire

BROKEN = "net/http: HTTP/1.x transport connection broken: "


class Recorder(Protocol):
    """A protocol that records the body that is delivered to it."""

    transport: Any

    def __init__(self) -> None:
        self.data = b""
        self.ended: Deferred[BaseException] = Deferred()

    def dataReceived(self, data: bytes) -> None:
        """Record the data."""
        self.data += data

    def connectionLost(self, reason: Failure = Failure(Exception())) -> None:  # noqa: B008
        """Record the end of the body."""
        assert reason.value is not None
        self.ended.callback(reason.value)


class AgentTests(StreamingCase):
    """L{StreamingAgent} alone."""

    def agent(self, backend: Backend, **options: Any) -> StreamingAgent:
        """Return an agent that calls a backend."""
        return StreamingAgent(self.client(backend, **options))

    async def response(self, *pieces: bytes) -> tuple[Any, Wire]:
        """Return the response that a backend sends in C{pieces}, and the backend's connection."""
        backend = self.backend()
        pending = self.agent(backend).request(b"GET", backend.url.encode() + b"/x")
        wire = await backend.connection()
        await wire.until(b"\r\n\r\n")
        for piece in pieces:
            wire.send(piece)
        return await pending, wire

    async def test_interfaces(self) -> None:
        """The agent, its responses and bodies provide the interfaces of Twisted."""
        verifyObject(IAgent, self.agent(self.backend()))
        verifyObject(IBodyProducer, BytesProducer(b""))
        response, _ = await self.response(OK)
        verifyObject(IResponse, response)
        verifyObject(IClientRequest, response.request)
        response.deliverBody(Recorder())

    async def test_request(self) -> None:
        """A request has the path and query of its URL, and its header fields without C{Accept-Encoding}."""
        backend = self.backend()
        agent = self.agent(backend)
        wire: Wire | None = None
        for url, target in (
            (b"http://a/b%2fc/?d=e%20f&g", b"/b%2fc/?d=e%20f&g"),
            (b"https://user:pass@a:1", b"/"),
            (b"https://a?b=/c", b"/?b=/c"),
        ):
            headers = Headers({b"host": [b"a"], b"x-one": [b"1", b"2"], b"accept-encoding": [b"gzip"]})
            pending = agent.request(b"GET", url, headers)
            wire = wire or await backend.connection()
            head = await wire.until(b"\r\n\r\n")
            self.assertEqual(head, b"GET %b HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nX-One: 2\r\n\r\n" % target)
            wire.send(OK)
            recorder = Recorder()
            (await pending).deliverBody(recorder)
            await recorder.ended
        self.assertEqual(len(backend.wires), 1)

    async def test_invalid_url(self) -> None:
        """SECURITY: a URL with spaces, line breaks or characters that are not ASCII is not requested."""
        backend = self.backend()
        for url in (b"http://a/ b", b"http://a/b\r\nX: y", b"http://a/\xe9", b"ftp://a/", b"/a"):
            pending = self.agent(backend).request(b"GET", url)
            self.assertEqual(str(await self.assertFailure(pending, Unreachable)), "invalid URL")
        self.assertRaises(Unreachable, request_url, "http://a:b/")
        self.assertEqual(backend.wires, [])

    async def test_bodies(self) -> None:
        """A body in memory and a body that is produced are sent with their lengths, an unknown length in chunks."""
        unknown = FileBodyProducer(BytesIO(b"hello"))
        unknown.length = UNKNOWN_LENGTH
        for body, field, sent in (
            (BytesProducer(b"hello"), b"content-length: 5\r\n", b"hello"),
            (FileBodyProducer(BytesIO(b"hello")), b"content-length: 5\r\n", b"hello"),
            (unknown, b"transfer-encoding: chunked\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
            (None, b"content-length: 0\r\n", b""),
        ):
            backend = self.backend()
            pending = self.agent(backend).request(b"POST", b"http://a/", None, body)
            wire = await backend.connection()
            self.assertIn(field, await wire.until(b"\r\n\r\n"))
            self.assertEqual(await wire.take(len(sent)), sent)
            wire.send(OK)
            (await pending).deliverBody(Recorder())

    def test_bytes_producer(self) -> None:
        """A body in memory can be sent by other agents."""

        class Echo(Resource):
            isLeaf = True

            def render_POST(self, request: Any) -> bytes:
                return request.content.read()  # type: ignore[no-any-return]

        agent = RequestTraversalAgent(Echo())
        response = self.successResultOf(agent.request(b"POST", b"http://a/", Headers(), BytesProducer(b"hello")))
        recorder = Recorder()
        response.deliverBody(recorder)
        agent.flush()
        self.assertEqual(recorder.data, b"hello")

    async def test_response(self) -> None:
        """A response has the version, code, phrase, length and header fields of its head."""
        response, _ = await self.response(
            b"HTTP/1.0 404 Not here\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\nX-One: 1\r\nx-one: 2\r\n\r\nok"
        )
        self.assertEqual(
            (response.version, response.code, response.phrase, response.length), ((b"HTTP", 1, 0), 404, b"Not here", 2)
        )
        self.assertEqual(response.fields, [(b"content-encoding", b"gzip"), (b"x-one", b"1"), (b"x-one", b"2")])
        self.assertEqual(list(response.headers.getAllRawHeaders()), [(b"X-One", [b"1", b"2"])])
        self.assertEqual(response.request.method, b"GET")
        self.assertTrue(response.request.absoluteURI.endswith(b"/x"))
        self.assertIsNone(response.previousResponse)
        response.deliverBody(Recorder())
        response, _ = await self.response(b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        self.assertEqual((response.phrase, response.length), (b"", UNKNOWN_LENGTH))
        response.deliverBody(Recorder())

    async def test_body(self) -> None:
        """A body ends with L{ResponseDone}, whether it has a length, chunks, or the end of the connection."""
        for pieces in (
            (OK,),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", b"o", b"k"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\no\r\n1\r\n", b"k\r\n0\r\n\r\n"),
            (b"HTTP/1.1 200 OK\r\n\r\nok",),
        ):
            response, wire = await self.response(*pieces)
            recorder = Recorder()
            response.deliverBody(recorder)
            if b"Content-Length" not in pieces[0] and b"chunked" not in pieces[0]:
                wire.close()
            self.assertIsInstance(await recorder.ended, ResponseDone)
            self.assertEqual(recorder.data, b"ok")

    async def test_truncated_body(self) -> None:
        """A body that breaks off fails with Go's text."""
        response, wire = await self.response(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok")
        recorder = Recorder()
        response.deliverBody(recorder)
        wire.close()
        reason = await recorder.ended
        self.assertEqual((recorder.data, str(reason)), (b"ok", "unexpected EOF"))
        self.assertIsInstance(reason, Unreachable)

    async def test_paused(self) -> None:
        """The protocol controls the rate of the body, and can discard the rest of it."""
        response, wire = await self.response(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
        recorder = Recorder()
        response.deliverBody(recorder)
        self.assertEqual(recorder.data, b"one")
        recorder.transport.pauseProducing()
        wire.send(b"tw")
        recorder.transport.resumeProducing()
        recorder.transport.abortConnection()
        await recorder.ended
        await wire.end()

    async def test_discarded(self) -> None:
        """The connection of a discarded body is not reused, also if the rest arrives with the discarded data."""
        backend = self.backend()
        client = self.client(backend)
        released: list[Any] = []
        self.patch(client, "released", released.append)
        pending = StreamingAgent(client).request(b"GET", b"http://a/")
        wire = await backend.connection()
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
        recorder = Recorder()
        recorder.dataReceived = lambda data: recorder.transport.loseConnection()  # type: ignore[method-assign]
        (await pending).deliverBody(recorder)
        wire.send(b"ok")
        await recorder.ended
        await wire.end()
        self.assertEqual(released, [])

    async def test_cancelled(self) -> None:
        """Cancelling a request closes its connection."""
        backend = self.backend()
        pending = self.agent(backend).request(b"GET", b"http://a/")
        wire = await backend.connection()
        await wire.until(b"\r\n\r\n")
        pending.cancel()
        await self.assertFailure(pending, CancelledError)
        await wire.end()


class CallTests(StreamingCase):
    """Calls of L{WebhookClient} with treq over the agent."""

    async def calls(self, *responses: bytes, limit: int = 1000, timeout: float = 10) -> tuple[list[bytes], list[Any]]:
        """
        Call a backend once for each of C{responses}. Return the heads of the requests, and for each call the response
        or the L{CallError}.
        """
        self.server = self.backend()
        client = WebhookClient(reactor, RESTConfig(url=self.server.url), limit=limit)
        self.addCleanup(client.close)
        heads, results = [], []
        for data in responses:
            calling: Deferred[Any] = Deferred.fromCoroutine(client.post(b"{}", timeout=timeout))
            calling.addErrback(lambda failure: failure.trap(CallError) and failure.value)
            if not self.server.wires or self.server.wires[-1].lost is not None:
                wire = await self.server.connection()
            heads.append(await wire.until(b"\r\n\r\n"))
            await wire.take(2)
            wire.send(data)
            results.append(await calling)
        return heads, results

    async def test_http_client(self) -> None:
        """Each call is a call of L{HTTPClient.request}."""
        calls: list[str] = []
        original = HTTPClient.request

        def request(client: HTTPClient, method: str, url: Any, **options: Any) -> Any:
            calls.append(f"{method} {url.to_text().rpartition('/')[2]} {options['allow_redirects']}")
            return original(client, method, url, **options)

        self.patch(HTTPClient, "request", request)
        await self.calls(OK, OK)
        self.assertEqual(calls, ["POST ?timeout=10s False"] * 2)

    async def test_redirects(self) -> None:
        """CVE-2020-8561: a redirect is not followed."""
        other = self.backend()
        redirect = b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: %b/x\r\n\r\n" % other.url.encode()
        _, (error,) = await self.calls(redirect)
        self.assertEqual(error.reason, "the answer is a redirect (302), which is not followed")
        self.assertEqual((len(self.server.wires), other.wires), (1, []))

    async def test_cookies(self) -> None:
        """A cookie of a response is not sent with the next request of the connection."""
        cookie = OK.replace(b"\r\n\r\n", b"\r\nSet-Cookie: a=b; Path=/\r\n\r\n")
        heads, results = await self.calls(cookie, cookie)
        self.assertNotIn(b"cookie", b"".join(heads).lower())
        self.assertEqual([result.headers["set-cookie"] for result in results], ["a=b; Path=/"] * 2)

    async def test_content_coding(self) -> None:
        """
        SECURITY: gzip is not requested, and a response with gzip is not decoded: its size limit could be exceeded.
        """
        body = compress(b"0" * 100_000)
        head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
        heads, (response,) = await self.calls(head + body)
        self.assertNotIn(b"accept-encoding", heads[0].lower())
        self.assertEqual((response.body, response.headers), (body, {"content-encoding": "gzip"}))

    async def test_headers(self) -> None:
        """The last value of a field is returned; the fields that treq adds are not returned."""
        _, (response,) = await self.calls(OK.replace(b"\r\n\r\n", b"\r\nWarning: a\r\nWARNING: b\r\n\r\n"))
        self.assertEqual((response.code, response.headers, response.body), (200, {"warning": "b"}, b"ok"))

    async def test_size_limit(self) -> None:
        """A response may have as many bytes as the limit; one with more is refused, with or without a length."""
        for size, refused in ((1000, False), (1001, True)):
            body = b"x" * size
            for response in (
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, body),
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (size, body),
            ):
                _, (result,) = await self.calls(response)
                if refused:
                    self.assertEqual(result.reason, "the answer is longer than 1000 bytes")
                else:
                    self.assertEqual(result.body, body)

    async def test_deadline(self) -> None:
        """A response that is incomplete at the deadline fails the call, and closes its connection."""
        for response in (b"", b"HTTP/1.1 200 OK\r\nContent-Len", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no"):
            _, (error,) = await self.calls(response, timeout=0.05)
            self.assertTrue(error.timed_out)
            self.assertEqual(error.reason, "context deadline exceeded")
            await self.server.wires[0].end()

    async def test_malformed_heads(self) -> None:
        """SECURITY: a head that two parsers could read differently fails the call."""
        for response in (
            b"nonsense\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n",
        ):
            _, (error,) = await self.calls(response)
            self.assertTrue(error.reason.startswith(BROKEN), error.reason)
            self.assertFalse(error.retriable)
            await self.server.wires[0].end()

    async def test_stale_connection(self) -> None:
        """
        A POST on a kept connection that the server has reset fails with a retriable error; a GET is sent again.
        """
        for method in ("POST", "GET"):
            backend = self.backend()
            client = WebhookClient(reactor, RESTConfig(url=backend.url))
            self.addCleanup(client.close)
            for last in (False, True):
                calling: Deferred[Any] = Deferred.fromCoroutine(client.fetch("/", timeout=10, method=method))
                wire = backend.wires[0] if last else await backend.connection()
                await wire.until(b"\r\n\r\n")
                if not last:
                    wire.send(OK)
                    await calling
            wire.kill()
            if method == "POST":
                error = await self.assertFailure(calling, CallError)
                self.assertIn("connection reset by peer", error.reason)
                self.assertTrue(error.retriable)
            else:
                again = await backend.connection()
                await again.until(b"\r\n\r\n")
                again.send(OK)
                self.assertEqual((await calling).body, b"ok")

    async def test_invalid_header(self) -> None:
        """A header field with an invalid name fails the call."""
        client = WebhookClient(reactor, RESTConfig(url=self.backend().url))
        self.addCleanup(client.close)
        error = await self.assertFailure(
            Deferred.fromCoroutine(client.fetch("/", timeout=10, headers={"a b": ["c"]})), CallError
        )
        self.assertEqual(error.reason, "net/http: invalid header field name")


class TLSTests(ClientCase):
    """Calls over TLS."""

    async def test_connected(self) -> None:
        """The set of connected clients has a webhook client once, while it has connections."""
        server = await self.serve(lambda call: Reply(200, b"{}"))
        connected: set[Any] = set()
        client = self.client_of(RESTConfig(url=server.url, ca=server.ca), connected=connected)
        self.assertEqual(connected, set())
        await client.post(b"{}", timeout=10)
        self.assertEqual(connected, {client})
        await client.close()
        self.assertEqual(connected, set())


class TreqTests(SynchronousTestCase):
    """The parts of the agent that treq uses, with an agent in memory."""

    def test_no_cookies(self) -> None:
        """The cookie jar stores no cookies and sends none."""

        class Cookie(Data):
            def render_GET(self, request: Any) -> bytes:
                request.addCookie(b"a", b"b")
                received.append(request.getCookie(b"a"))
                return b""

        received: list[bytes | None] = []
        root = Resource()
        root.putChild(b"x", Cookie(b"", "text/plain"))
        jar = NoCookies()
        agent = RequestTraversalAgent(root)
        client = HTTPClient(agent, jar)  # type: ignore[arg-type]
        for cookies in (jar, {"a": "c"}):
            self.successResultOf(
                client.request("GET", request_url("http://a/x"), cookies=cookies, reactor=object())  # type: ignore[arg-type]
            )
            agent.flush()
        self.assertEqual(received, [None, None])
        self.assertEqual(list(jar), [])

    def test_url(self) -> None:
        """A URL is requested exactly as it is written; equal URLs are parsed once."""
        for text in ("https://a:443/b%2Fc/../d//?e=%7e&f", "http://[::1]:80/"):
            url = request_url(text)
            self.assertEqual(url.to_uri().to_text(), text)
            self.assertIs(request_url(text), url)
