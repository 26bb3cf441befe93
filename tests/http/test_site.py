"""Tests of L{kubetwist.http.site}: requests and their responses."""

from __future__ import annotations

import re

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource

from kubetwist.api.errors import APIStatusError
from kubetwist.http.request import KubeRequest
from kubetwist.http.site import traverse

from .harness import Client, Leaf, echo, make_site


class ResponseTests(SynchronousTestCase):
    """Ways to respond."""

    def client(self, handle: object) -> Client:
        """Return a connection to a site with one handler."""
        return Client(make_site(handle))  # type: ignore[arg-type]

    def test_respond(self) -> None:
        """A response has length, content type and date."""
        answer = self.client(lambda request: request.respond(201, b"{}", b"application/json")).request("GET", "/")
        self.assertEqual((answer.code, answer.body), (201, b"{}"))
        self.assertEqual(answer.header("content-type"), "application/json")
        self.assertEqual(answer.header("content-length"), "2")
        self.assertTrue(re.fullmatch(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", answer.header("date") or ""))
        self.assertIsNone(answer.header("server"))

    def test_headers_of_the_handler(self) -> None:
        """Headers of the handler replace those of filters."""

        def handle(request: KubeRequest) -> None:
            request.cache_control = b"no-cache, private"
            request.audit_id = "some-id"
            request.setHeader(b"cache-control", b"public")
            request.responseHeaders.addRawHeader(b"vary", b"Accept")
            request.respond(200, b"ok", b"text/plain")

        answer = self.client(handle).request("GET", "/")
        self.assertEqual(answer.headers["cache-control"], ["public"])
        self.assertEqual(answer.headers["vary"], ["Accept"])
        self.assertEqual(answer.headers["audit-id"], ["some-id"])
        self.assertEqual(answer.headers["content-type"], ["text/plain"])

    def test_second_response(self) -> None:
        """Only the first of several responses is sent."""

        def handle(request: KubeRequest) -> None:
            request.respond(200, b"first", b"text/plain")
            request.respond(500, b"second", b"text/plain")
            request.write(b"third")
            request.finish()

        client = self.client(handle)
        self.assertEqual(client.request("GET", "/").body, b"first")
        self.assertEqual(client.request("GET", "/").body, b"first")

    def test_disconnected(self) -> None:
        """A response to a disconnected client is dropped."""
        waiting: list[KubeRequest] = []
        client = self.client(waiting.append)
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        ended = waiting[0].notifyFinish()
        client.channel.connectionLost(RuntimeError("gone"))
        self.failureResultOf(ended, RuntimeError)
        waiting[0].respond(200, b"", b"text/plain")
        waiting[0].write(b"x")
        waiting[0].finish()
        self.assertEqual(client.transport.value(), b"")

    def test_chunks(self) -> None:
        """A response without a length is sent in chunks."""
        waiting: list[KubeRequest] = []
        client = self.client(waiting.append)
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        request = waiting[0]
        request.setHeader(b"content-type", b"application/json")
        request.write(b"")
        self.assertIn(b"\r\nTransfer-Encoding: chunked\r\n", client.transport.value())
        client.transport.clear()
        request.write(b"x" * 20)
        self.assertEqual(client.transport.value(), b"14\r\n" + b"x" * 20 + b"\r\n")
        finished = request.notifyFinish()
        request.finish()
        self.assertTrue(client.transport.value().endswith(b"0\r\n\r\n"))
        self.assertIsNone(self.successResultOf(finished))

    def test_known_length(self) -> None:
        """A response in pieces with a known length is sent without chunks."""

        def handle(request: KubeRequest) -> None:
            request.setHeader(b"content-length", b"4")
            request.write(b"ab")
            request.write(b"cd")
            request.finish()

        client = self.client(handle)
        self.assertEqual(client.request("GET", "/").body, b"abcd")
        self.assertEqual(client.request("HEAD", "/").body, b"")

    def test_pieces_for_http_1_0(self) -> None:
        """A response in pieces to HTTP/1.0 ends with the connection."""

        def handle(request: KubeRequest) -> None:
            request.write(b"ab")
            request.finish()

        client = self.client(handle)
        client.send(b"GET / HTTP/1.0\r\n\r\n")
        self.assertTrue(client.transport.value().endswith(b"\r\n\r\nab"))
        self.assertTrue(client.transport.disconnecting)

    def test_no_content(self) -> None:
        """Responses 304 and 204 have neither a body nor a length."""
        answer = self.client(lambda request: request.respond(304, b"", b"")).request("GET", "/")
        self.assertEqual((answer.code, answer.body), (304, b""))
        self.assertIsNone(answer.header("content-length"))

    def test_exception(self) -> None:
        """An exception is answered with a Status without details, and logged with the audit id."""

        def handle(request: KubeRequest) -> None:
            request.audit_id = "some-id"
            raise RuntimeError("secret")

        answer = self.client(handle).request("GET", "/")
        self.assertEqual(answer.code, 500)
        self.assertIn(b'"reason":"InternalError"', answer.body)
        self.assertNotIn(b"secret", answer.body)
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_exception_after_start(self) -> None:
        """After an exception within a response the connection is closed without the end of the response."""

        def handle(request: KubeRequest) -> None:
            request.write(b"half")
            raise RuntimeError("oops")

        client = self.client(handle)
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertFalse(client.transport.value().endswith(b"0\r\n\r\n"))
        self.assertTrue(client.transport.disconnecting)
        self.flushLoggedErrors(RuntimeError)

    def test_warnings(self) -> None:
        """Warnings are sent as headers, each text once."""

        def handle(request: KubeRequest) -> None:
            request.warn('unknown field "a\\b"')
            request.warn('unknown field "a\\b"')
            request.warn("two")
            request.respond(200, b"", b"text/plain")

        answer = self.client(handle).request("GET", "/")
        self.assertEqual(answer.headers["warning"], ['299 - "unknown field \\"a\\\\b\\""', '299 - "two"'])

    def test_status(self) -> None:
        """An error is answered with its Status."""
        answer = self.client(lambda request: request.fail(APIStatusError.bad_request("no"))).request("GET", "/")
        self.assertEqual(answer.code, 400)
        self.assertEqual(answer.header("content-type"), "application/json")


class RequestTests(SynchronousTestCase):
    """What handlers read of a request."""

    def request(self, path: str, body: bytes = b"", **headers: str) -> KubeRequest:
        """Send a request, and return it as its handler sees it."""
        seen: list[KubeRequest] = []

        def handle(request: KubeRequest) -> None:
            seen.append(request)
            self.body = request.read_body()
            self.content = request.content.read()
            request.respond(200, b"", b"text/plain")

        Client(make_site(handle)).request("POST", path, body, **headers)
        return seen[0]

    def test_query(self) -> None:
        """Query parameters are decoded; blank values are kept, malformed ones are dropped."""
        request = self.request("/a?x=1&x=2&y&z=&%66=a+b%2Bc&bad=%zz&%4=1&se;mi=1&n=%c3%a4&s=%+1")
        self.assertEqual(request.query, {"x": ["1", "2"], "y": [""], "z": [""], "f": ["a b+c"], "n": ["ä"]})
        self.assertEqual(request.args[b"x"], [b"1", b"2"])

    def test_body(self) -> None:
        """The body is available as bytes, and as a file for Twisted's resources."""
        self.request("/", b"hello")
        self.assertEqual((self.body, self.content), (b"hello", b"hello"))

    def test_user_agent(self) -> None:
        """The user agent is empty if none was sent."""
        self.assertEqual(self.request("/", User_Agent="kubectl/1").user_agent, "kubectl/1")
        self.assertEqual(self.request("/").user_agent, "")


class TraverseTests(SynchronousTestCase):
    """L{traverse}."""

    def test_segments(self) -> None:
        """Resources get decoded path segments; escaped slashes separate segments, too."""
        seen: list[object] = []

        class Seeing(Resource):
            def getChild(self, path: bytes, request: object) -> Resource:
                seen.append((path, list(request.postpath)))  # type: ignore[attr-defined]
                return Leaf(echo)

        Client(make_site(traverse(Seeing()))).request("GET", "/a/b%2Fc//%20?x=/y")
        self.assertEqual(seen, [(b"a", [b"b", b"c", b"", b" "])])

    def test_bytes(self) -> None:
        """A resource may return bytes; an unsupported method is answered with 405."""

        class Static(Resource):
            isLeaf = True

            def render_GET(self, request: object) -> bytes:
                return b"static"

        client = Client(make_site(traverse(Static())))
        answer = client.request("GET", "/")
        self.assertEqual((answer.code, answer.body), (200, b"static"))
        self.assertEqual(client.request("HEAD", "/").header("content-length"), "6")
        self.assertEqual(client.request("DELETE", "/").code, 405)


class StoppingTests(SynchronousTestCase):
    """Requests when the server stops."""

    def setUp(self) -> None:
        """Create a site whose handler does not answer."""
        self.waiting: list[KubeRequest] = []
        self.site = make_site(self.waiting.append, Clock())
        self.client = Client(self.site)

    def open(self, client: Client) -> KubeRequest:
        """Send a request."""
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        return self.waiting[-1]

    def test_requests_finished(self) -> None:
        """The site waits for requests, except for long-running ones."""
        watch = self.open(Client(self.site))
        watch.register_long_running(lambda: None)
        request = self.open(self.client)
        finished = self.site.requests_finished()
        self.assertNoResult(finished)
        echo(request)
        self.successResultOf(finished)
        self.successResultOf(self.site.requests_finished())

    def test_end_long_running(self) -> None:
        """Open long-running requests are ended by their registered functions."""
        ended: list[str] = []
        one, other, finished = (self.open(Client(self.site)) for _ in range(3))
        one.register_long_running(lambda: ended.append("one"))
        other.register_long_running(lambda: (ended.append("other"), other.finish()))
        finished.register_long_running(lambda: ended.append("over"))
        finished.finish()
        self.site.end_long_running()
        self.assertEqual(ended, ["one", "other"])
        self.assertEqual(set(self.site.long_running_requests), {one})

    def test_close_idle(self) -> None:
        """Idle connections are closed at once, others after their response."""
        idle = Client(self.site)
        request = self.open(self.client)
        self.site.connections.close_idle()
        self.assertTrue(idle.transport.disconnecting)
        self.assertFalse(self.client.transport.disconnecting)
        echo(request)
        self.assertTrue(self.client.transport.disconnecting)
        self.assertEqual(self.client.answers()[0].header("connection"), "close")

    def test_finished_fires_once(self) -> None:
        """Waiting ends when clients disconnect, too."""
        self.open(self.client)
        finished: Deferred[None] = self.site.requests_finished()
        self.client.channel.connectionLost(None)
        self.successResultOf(finished)
