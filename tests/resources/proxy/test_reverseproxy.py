"""Tests for L{kubetwist.resources.proxy.reverseproxy}: forwarded requests and responses."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet import reactor as installed_reactor
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.request import KubeRequest
from kubetwist.resources.proxy.reverseproxy import (
    SANDBOX,
    fail_with_status,
    fail_with_text,
    joined_path,
    redirect_to_slash,
    rewritten_location,
)
from tests.http.harness import Client, make_site

from .proxied import Proxied

reactor: Any = installed_reactor


class RequestTests(Proxied):
    """Forwarded requests and responses."""

    async def test_small(self) -> None:
        """A request and its response are forwarded with their headers, and both connections are kept alive."""
        wire, there, head = await self.ask(b"GET /a%20b?c=d HTTP/1.1\r\nHost: front\r\nAccept: x/y\r\n\r\n")
        lines = head.split(b"\r\n")
        self.assertEqual(lines[0], b"GET /a%20b?c=d HTTP/1.1")
        self.assertIn(b"accept: x/y", lines)
        self.assertIn(b"x-forwarded-for: 127.0.0.1", lines)
        self.assertIn(b"x-forwarded-uri: /a%20b", lines)
        self.assertIn(b"audit-id: the-id", lines)
        self.assertIn(b"host: " + self.client.host, lines)
        self.assertNotIn(b"front", head)
        there.send(b"HTTP/1.1 418 Teapot\r\nContent-Type: t/p\r\nX-Own: 1\r\nX-Own: 2\r\nContent-Length: 3\r\n\r\nhot")
        answer = await wire.until(b"hot")
        self.assertTrue(answer.startswith(b"HTTP/1.1 418 "))
        for line in (b"Content-Type: t/p", b"X-Own: 1", b"X-Own: 2", b"Content-Length: 3", b"Audit-Id: the-id"):
            self.assertIn(line, answer.split(b"\r\n"))
        self.assertEqual((self.client.idle, self.client.busy), (1, 0))
        wire.send(b"GET /again HTTP/1.1\r\nHost: front\r\n\r\n")
        await there.until(b"GET /again ")
        self.assertEqual(len(self.backend.wires), 1)

    async def test_chunked_answer(self) -> None:
        """A response without a length is forwarded as it arrives."""
        wire, there, _ = await self.ask(b"GET /watch HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        head = await wire.until(b"\r\n\r\n")
        self.assertIn(b"Transfer-Encoding: chunked", head)
        for piece in (b"one\n", b"two\n"):
            there.send(b"4\r\n" + piece + b"\r\n")
            self.assertEqual(await wire.take(9), b"4\r\n" + piece + b"\r\n")
        there.send(b"0\r\n\r\n")
        self.assertEqual(await wire.take(5), b"0\r\n\r\n")
        self.assertEqual((self.client.idle, self.client.busy), (1, 0))

    async def test_answer_until_the_end(self) -> None:
        """A response that ends with its connection is sent in chunks."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.0 200 OK\r\n\r\nhello")
        await wire.until(b"5\r\nhello\r\n")
        there.close()
        self.assertEqual(await wire.take(5), b"0\r\n\r\n")
        self.assertIsNone(wire.lost)

    async def test_head(self) -> None:
        """The response to HEAD has a length and no body."""
        wire, there, head = await self.ask(b"HEAD / HTTP/1.1\r\nHost: front\r\n\r\n")
        self.assertTrue(head.startswith(b"HEAD "))
        there.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        answer = await wire.until(b"\r\n\r\n")
        self.assertIn(b"Content-Length: 1000", answer)
        wire.send(b"GET /next HTTP/1.1\r\nHost: front\r\n\r\n")
        await there.until(b"GET /next ")

    async def test_no_content(self) -> None:
        """SECURITY, smuggling: a response without a body has no length, and data after it belongs to no response."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 204 No Content\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        answer = await wire.until(b"\r\n\r\n")
        self.assertIn(b" 204 ", answer)
        self.assertNotIn(b"content-length", answer.lower())
        await there.end()
        wire.send(b"GET /next HTTP/1.1\r\nHost: front\r\n\r\n")
        connection = await self.backend.connection()
        await connection.until(b"GET /next ")
        self.assertEqual(bytes(wire.data), b"")

    async def test_upload(self) -> None:
        """A body is streamed with its length; the client gets 100 Continue when the backend requests the body."""
        wire, there, head = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
        )
        self.assertIn(b"content-length: 10", head)
        self.assertNotIn(b"expect", head)
        await wire.until(b"HTTP/1.1 100 Continue\r\n\r\n")
        wire.send(b"hello")
        self.assertEqual(await there.take(5), b"hello")
        wire.send(b"world")
        self.assertEqual(await there.take(5), b"world")
        there.send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        answer = await wire.until(b"\r\n\r\n")
        self.assertNotIn(b"close", answer)
        self.assertEqual((self.client.idle, self.client.busy), (1, 0))

    async def test_chunked_upload(self) -> None:
        """A chunked body is forwarded in chunks."""
        wire, there, head = await self.ask(
            b"POST / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        self.assertIn(b"transfer-encoding: chunked", head)
        self.assertEqual(await there.take(10), b"5\r\nhello\r\n")
        wire.send(b"0\r\n\r\n")
        self.assertEqual(await there.take(5), b"0\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await wire.until(b"ok")

    async def test_early_answer(self) -> None:
        """A response before the end of the body is passed back, and both connections close."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000\r\n\r\nhello")
        there.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        answer = await wire.until(b"\r\n\r\nno")
        self.assertIn(b"Connection: close", answer)
        await there.end()
        wire.send(b"x" * 999_995)
        await wire.end()
        await self.wait_until_idle()

    async def test_full_duplex(self) -> None:
        """A backend may respond while it receives the body."""
        wire, there, _ = await self.ask(b"POST / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        for _ in range(3):
            wire.send(b"4\r\nping\r\n")
            self.assertEqual(await there.take(9), b"4\r\nping\r\n")
            there.send(b"4\r\npong\r\n")
            self.assertEqual(await wire.take(9), b"4\r\npong\r\n")

    async def test_response_fields(self) -> None:
        """The Cache-Control of a backend is sent beside the server's; its CORS headers and audit id are removed."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nCache-Control: public\r\nAudit-Id: other\r\n"
            b"Access-Control-Allow-Origin: *\r\nKeep-Alive: 5\r\nConnection: x-hop\r\nX-Hop: 1\r\n"
            b"Set-Cookie: __HOST-kubetwist-6443=; Path=/\r\nSet-Cookie: theme=dark\r\n\r\n"
        )
        answer = (await wire.until(b"\r\n\r\n")).lower()
        self.assertIn(b"cache-control: public\r\ncache-control: no-cache, private\r\n", answer)
        self.assertIn(b"audit-id: the-id", answer)
        self.assertIn(b"theme=dark", answer)
        for absent in (b"other", b"access-control", b"keep-alive", b"x-hop", b"kubetwist-6443"):
            self.assertNotIn(absent, answer)

    async def test_signed_in(self) -> None:
        """Content of a backend is sandboxed for users with a session, and cannot access the page's origin."""
        self.patch(KubeRequest, "signed_in", True)
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Security-Policy: default-src *\r\n\r\n")
        answer = (await wire.until(b"\r\n\r\n")).lower()
        self.assertIn(b"content-security-policy: sandbox", answer)
        self.assertNotIn(b"allow-same-origin", answer)

    async def test_unreachable(self) -> None:
        """Without a backend the response is 503 with kube-apiserver's text: a Status, or plain text."""
        port = self.backend.port
        await self.backend.stop()
        for fail, expected in (
            (fail_with_status, b'"message":"error trying to reach service: dial tcp 127.0.0.1:%d: connect:'),
            (fail_with_text, b"error trying to reach service: dial tcp 127.0.0.1:%d: connect: connection refused\n"),
        ):
            self.options = {"fail": fail}
            wire = await self.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
            self.assertTrue((await wire.until(b"\r\n")).startswith(b"HTTP/1.1 503 "))
            await wire.until(expected % port)

    async def test_identity(self) -> None:
        """SECURITY, header smuggling: only the server sets identity headers; the client's are removed."""
        self.options = {"identity": ((b"x-remote-user", b"alice"), (b"x-forwarded-proto", b"https"))}
        _, _, head = await self.ask(
            b"GET / HTTP/1.1\r\nHost: front\r\nX-Remote-User: eve\r\nX-Remote-Extra-A: b\r\nX_Remote_Group: x\r\n"
            b"Impersonate-User: eve\r\nAuthorization: Bearer x\r\nX-Forwarded-Proto: gopher\r\n"
            b"X-Forwarded-For: 10.0.0.1\r\nConnection: x-remote-user, x-other, x-forwarded-uri\r\nX-Other: 1\r\n\r\n"
        )
        self.assertNotIn(b"eve", head)
        for absent in (b"extra", b"remote_group", b"impersonate", b"bearer", b"gopher", b"x-other"):
            self.assertNotIn(absent, head.lower())
        lines = head.split(b"\r\n")
        self.assertIn(b"x-remote-user: alice", lines)
        self.assertIn(b"x-forwarded-for: 10.0.0.1, 127.0.0.1", lines)


class TLSRequestTests(RequestTests):
    """The same over TLS."""

    tls = True


class RedirectTests(Proxied):
    """SECURITY, CVE-2018-1002102, CVE-2020-8559, CVE-2022-3172: redirects of backends."""

    async def test_no_redirect(self) -> None:
        """A redirect is neither followed nor passed on: it is 502, and the backend's connection closes."""
        self.options = {"fail": fail_with_text}
        for code in (301, 302, 303, 307, 308, 300, 304):
            wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 %d X\r\nLocation: https://evil/\r\nContent-Length: 5\r\n\r\nhe" % code)
            head = await wire.until(b"\r\n\r\n")
            self.assertTrue(head.startswith(b"HTTP/1.1 502 "))
            self.assertNotIn(b"evil", head)
            await wire.until(b"the backend attempted to redirect this request, which is not permitted")
            await there.end()
        self.assertEqual(len(self.backend.wires), 7)

    async def test_not_modified(self) -> None:
        """A 304 is not a redirect."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\nIf-None-Match: x\r\n\r\n")
        there.send(b"HTTP/1.1 304 Not Modified\r\nEtag: x\r\n\r\n")
        self.assertIn(b"304", await wire.until(b"\r\n\r\n"))
        self.assertEqual(self.client.idle, 1)

    async def test_within(self) -> None:
        """Where redirects are allowed, one within the backend is mapped to the proxy's path."""
        self.options = {"redirects": True, "prefix": b"/proxy"}
        for location, expected in (
            (b"/login?x=1", b"/proxy/login?x=1"),
            (b"../../../up", b"/proxy/up"),
            (self.backend.url.encode() + b"/abs", b"/proxy/abs"),
            (b"/proxy/there", b"/proxy/there"),
        ):
            wire, there, _ = await self.ask(b"GET /a/b HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location)
            head = await wire.until(b"\r\n\r\n")
            self.assertIn(b"\r\nLocation: " + expected + b"\r\n", head)
            there.kill()
            await self.settled(lambda: not self.client.idle)

    async def test_elsewhere(self) -> None:
        """A redirect to another host or path is 502."""
        self.options = {"redirects": True, "prefix": b"/proxy"}
        for location in (b"https://evil/", b"//evil/", b"javascript:x"):
            wire, there, _ = await self.ask(b"GET /a HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location)
            self.assertIn(b" 502 ", await wire.until(b"\r\n\r\n"))
            there.kill()
            await self.settled(lambda: not self.client.idle)

    async def test_upgrade(self) -> None:
        """A redirect as the response to an upgrade is an error, and both connections close without a splice."""
        wire, there, _ = await self.ask(
            b"GET / HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        there.send(b"HTTP/1.1 302 Found\r\nLocation: https://evil/\r\n\r\n")
        head = await wire.until(b"\r\n\r\n")
        self.assertIn(b" 500 ", head)
        self.assertNotIn(b"evil", head)
        await wire.until(b'"message":"invalid upgrade response: status code 302"')
        await there.end()


class BrowserTests(Proxied):
    """SECURITY: responses to a browser with a session of the page, perhaps through a ticket."""

    shown = b"/ui/proxy/secret"

    def _answer(self, request: KubeRequest) -> None:
        request.signed_in = True
        request.shown_prefix = self.shown
        super()._answer(request)

    async def get(self, fields: bytes, code: bytes = b"200 OK") -> bytes:
        """Return the head of the response, given fields of the backend's response."""
        wire, there, _ = await self.ask(b"GET /proxy/a HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 " + code + b"\r\n" + fields + b"Content-Length: 0\r\n\r\n")
        head = await wire.until(b"\r\n\r\n")
        there.kill()
        await self.settled(lambda: not self.client.idle)
        return head

    async def test_sandbox(self) -> None:
        """The response is sandboxed, and cannot change what belongs to the whole origin."""
        fields = (
            b"Clear-Site-Data: *\r\nStrict-Transport-Security: max-age=9\r\nAlt-Svc: h3=x\r\nNEL: {}\r\nX-Own: 1\r\n"
        )
        for shown in (b"", self.shown):
            self.shown = shown
            head = await self.get(fields + b"Content-Security-Policy: default-src *\r\n")
            self.assertIn(b"Content-Security-Policy: " + SANDBOX + b"\r\n", head)
            self.assertIn(b"\r\nX-Own: 1\r\n", head)
            for name in (b"clear-site-data", b"strict-transport", b"alt-svc", b"nel:"):
                self.assertNotIn(name, head.lower())

    async def test_ticket(self) -> None:
        """Through a ticket, redirects lead to its path, and backends cannot set cookies or reveal the path."""
        self.options = {"redirects": True, "prefix": b"/proxy"}
        head = await self.get(b"Location: /login?x\r\nSet-Cookie: a=b\r\nReferrer-Policy: unsafe-url\r\n", b"302 Found")
        self.assertIn(b"\r\nLocation: /ui/proxy/secret/login?x\r\n", head)
        self.assertNotIn(b"cookie", head.lower())
        self.assertNotIn(b"unsafe-url", head)
        self.shown = b""
        head = await self.get(b"Location: /login?x\r\nSet-Cookie: a=b\r\n", b"302 Found")
        self.assertIn(b"\r\nLocation: /proxy/login?x\r\n", head)
        self.assertIn(b"\r\nSet-Cookie: a=b\r\n", head)


class LocationTests(SynchronousTestCase):
    """L{rewritten_location}."""

    def test_paths(self) -> None:
        """Paths are joined as in Go, and keep a trailing slash."""
        for prefix, path, expected in (
            (b"", b"/apis/a/v1", b"/apis/a/v1"),
            (b"/p", b"/", b"/p/"),
            (b"/p", b"", b"/p"),
            (b"/p/", b"/a//b/", b"/p/a/b/"),
            (b"", b"/", b"/"),
        ):
            self.assertEqual(joined_path(prefix, path), expected)

    def test_out_of_it(self) -> None:
        """Locations that could lead out of the backend's path for any parser are rejected."""
        for location in (
            b"https://other/x",
            b"//other/x",
            b"/\\other",
            b"\\\\other",
            b"javascript:alert(1)",
            b"ftp://back/x",
            b"/a b",
            b"/a\tb",
            b"/%2e%2e/%2e%2e/secrets",
            b"/a%2Fb",
            b"/a%5cb",
            b"http://[::1/x",
            b"/proxy/../../secrets",
        ):
            self.assertIsNone(rewritten_location(location, b"/x", b"/proxy", {b"back"}), location)

    def test_within(self) -> None:
        """All other locations stay below the backend's path."""
        for location, expected in (
            (b"", b"/proxy/x/y"),
            (b"?a=b", b"/proxy/x/y?a=b"),
            (b"z", b"/proxy/x/z"),
            (b"../../../../z/", b"/proxy/z/"),
            (b"/../z#f", b"/proxy/z#f"),
            (b"http://BACK", b"/proxy/"),
            (b"//back/z", b"/proxy/z"),
            (b"/proxyother", b"/proxy/proxyother"),
            (b"/proxy/z", b"/proxy/z"),
            (b"/z?next=%2F%2Fother", b"/proxy/z?next=%2F%2Fother"),
        ):
            self.assertEqual(rewritten_location(location, b"/x/y?q", b"/proxy", {b"back"}), expected)

    @given(location=st.binary(max_size=30) | st.text("/.%2eE\\:?#abphrox", max_size=30).map(str.encode))
    def test_any(self, location: bytes) -> None:
        """For any location, a browser that follows the result stays below the backend's path on this server."""
        found = rewritten_location(location, b"/x/y", b"/proxy", {b"back"})
        if found is not None:
            ended = urljoin("https://front/proxy/x/y", found.decode("ascii"))
            parts = urlsplit(ended)
            self.assertEqual((parts.scheme, parts.netloc), ("https", "front"))
            self.assertTrue(f"{parts.path}/".startswith("/proxy/"), ended)
            self.assertNotIn("..", parts.path.split("/"))

    def test_slash(self) -> None:
        """The path of a proxy without a subpath is redirected to the path with a slash, and keeps the query."""
        client = Client(make_site(redirect_to_slash))
        answer = client.request("GET", "/a/proxy?b=c")
        self.assertEqual((answer.code, answer.header("location")), (301, "/a/proxy/?b=c"))
