"""Tests for L{kubetwist.resources.proxying}: a client, the server, a backend, and what happens between them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin, urlsplit

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet import reactor as installed_reactor
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.api.errors import APIStatusError
from kubetwist.filters.requestinfo import with_request_info
from kubetwist.outgoing.flow import has_hung_up
from kubetwist.outgoing.outgoing import Outgoing
from kubetwist.outgoing.settings import CallSettings
from kubetwist.resources.proxying import (
    fail_with_status,
    fail_with_text,
    joined_path,
    proxy_request,
    redirect_to_slash,
    rewritten_location,
    run,
)
from kubetwist.server.certificates import Authority, Subject
from kubetwist.server.site import STALLED, KubeRequest, KubeSite
from kubetwist.server.tls import ServerContext
from tests.server.harness import Client, make_site
from tests.wires import Backend, Wire, connect

reactor: Any = installed_reactor
MB = 1024 * 1024


class Proxied(TestCase):
    """A server that passes everything on to one backend."""

    timeout = 20
    tls = False

    async def setUp(self) -> None:
        """The three of them."""
        self.options: dict[str, Any] | None = {}
        self.backend = Backend(reactor, tls=self.tls).start()
        self.outgoing = Outgoing(reactor, lambda namespace, name: None)
        self.client = self.outgoing.stream_client(CallSettings(url=self.backend.url, ca=self.backend.ca))
        self.requests: list[KubeRequest] = []
        self.over: list[Deferred[None]] = []
        self.site = KubeSite(with_request_info(self._answer), reactor)
        self.site.streams.append(lambda request: True)
        self.ca = b""
        if self.tls:
            authority = Authority.make("front-ca")
            self.ca = authority.pair.certificate
            pair = authority.issue(Subject("front", names=("127.0.0.1",), server=True))
            self.port = reactor.listenSSL(0, self.site, ServerContext(pair, "VersionTLS12"), interface="127.0.0.1")
        else:
            self.port = reactor.listenTCP(0, self.site, interface="127.0.0.1")
        self.wires: list[Wire] = []

    async def tearDown(self) -> None:
        """End it all; nothing may hold on to a connection."""
        await self.port.stopListening()
        for wire in self.wires:
            if wire.lost is None:
                wire.kill()
                await wire.end()
        await self.outgoing.close()
        await self.backend.stop()
        await self.settled(lambda: not self.site.channels)
        self.assertEqual((self.client.idle, self.client.busy), (0, 0))

    def _answer(self, request: KubeRequest) -> None:
        self.requests.append(request)
        request.audit_id = "the-id"
        request.cache_control = b"no-cache, private"
        if self.options is not None:
            run(proxy_request(request, self.client, request.uri, **self.options), request)

    async def settled(self, condition: Any) -> None:
        """Let the reactor go round until it is so; the test's own timeout ends it otherwise."""
        while not condition():
            turn: Deferred[None] = Deferred()
            reactor.callLater(0.001, turn.callback, None)
            await turn

    async def connect(self) -> Wire:
        """A client."""
        wire = await connect(reactor, self.port.getHost().port, ca=self.ca)
        self.wires.append(wire)
        return wire

    async def ask(self, head: bytes) -> tuple[Wire, Wire, bytes]:
        """Send a request; the client, the backend, and the head that it got."""
        wire = await self.connect()
        wire.send(head)
        there = await self.backend.connection()
        return wire, there, await there.until(b"\r\n\r\n")

    async def all_over(self) -> None:
        """Wait until no request and no connection is left that is in use."""
        await self.settled(lambda: not self.site.open_requests and not self.client.busy)


class RequestTests(Proxied):
    """What is passed on, and back."""

    async def test_small(self) -> None:
        """A request and its answer go through, with what belongs to them, and both connections live on."""
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
        """An answer without a length is passed on piece by piece, each as soon as it comes."""
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
        """An answer that ends with its connection is framed anew."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.0 200 OK\r\n\r\nhello")
        await wire.until(b"5\r\nhello\r\n")
        there.close()
        self.assertEqual(await wire.take(5), b"0\r\n\r\n")
        self.assertIsNone(wire.lost)

    async def test_head(self) -> None:
        """The answer to a HEAD has the length of what it does not have."""
        wire, there, head = await self.ask(b"HEAD / HTTP/1.1\r\nHost: front\r\n\r\n")
        self.assertTrue(head.startswith(b"HEAD "))
        there.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        answer = await wire.until(b"\r\n\r\n")
        self.assertIn(b"Content-Length: 1000", answer)
        wire.send(b"GET /next HTTP/1.1\r\nHost: front\r\n\r\n")
        await there.until(b"GET /next ")

    async def test_no_content(self) -> None:
        """SECURITY, smuggling: an answer without a body has no length, and what follows it is nobody's answer."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 204 No Content\r\nContent-Length: 40\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        answer = await wire.until(b"\r\n\r\n")
        self.assertIn(b" 204 ", answer)
        self.assertNotIn(b"content-length", answer.lower())
        await there.end()
        wire.send(b"GET /next HTTP/1.1\r\nHost: front\r\n\r\n")
        anew = await self.backend.connection()
        await anew.until(b"GET /next ")
        self.assertEqual(bytes(wire.data), b"")

    async def test_upload(self) -> None:
        """A body goes through while it comes, with its length; the client is told to send when it is wanted."""
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
        """A body in chunks goes on in chunks."""
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
        """An answer that comes before the body is through is passed back, and ends both connections."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000\r\n\r\nhello")
        there.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        answer = await wire.until(b"\r\n\r\nno")
        self.assertIn(b"Connection: close", answer)
        await there.end()
        wire.send(b"x" * 999_995)
        await wire.end()
        await self.all_over()

    async def test_both_ways_at_once(self) -> None:
        """A backend may answer while it is still being told."""
        wire, there, _ = await self.ask(b"POST / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        for _ in range(3):
            wire.send(b"4\r\nping\r\n")
            self.assertEqual(await there.take(9), b"4\r\nping\r\n")
            there.send(b"4\r\npong\r\n")
            self.assertEqual(await wire.take(9), b"4\r\npong\r\n")

    async def test_fields_of_our_own(self) -> None:
        """A backend's word about caches goes with ours; about other origins, and our audit id, it has none."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nCache-Control: public\r\nAudit-Id: other\r\n"
            b"Access-Control-Allow-Origin: *\r\nKeep-Alive: 5\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n"
        )
        answer = (await wire.until(b"\r\n\r\n")).lower()
        self.assertIn(b"cache-control: public\r\ncache-control: no-cache, private\r\n", answer)
        self.assertIn(b"audit-id: the-id", answer)
        for absent in (b"other", b"access-control", b"keep-alive", b"x-hop"):
            self.assertNotIn(absent, answer)

    async def test_unreachable(self) -> None:
        """Without a backend the answer is 503 in the reference's words: a Status, or plain text."""
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
        """SECURITY, header smuggling: who somebody is a backend hears from us alone, whatever the client says."""
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
    """SECURITY, CVE-2018-1002102, CVE-2020-8559, CVE-2022-3172: backends redirect nobody."""

    async def test_no_redirect(self) -> None:
        """A redirect is neither followed nor passed on: it is 502, and the backend's connection ends."""
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
        """That nothing has changed is no redirect."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\nIf-None-Match: x\r\n\r\n")
        there.send(b"HTTP/1.1 304 Not Modified\r\nEtag: x\r\n\r\n")
        self.assertIn(b"304", await wire.until(b"\r\n\r\n"))
        self.assertEqual(self.client.idle, 1)

    async def test_within(self) -> None:
        """Where it may, a redirect within the backend leads to where the backend is proxied."""
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
        """One that leads out of it is 502 there, too."""
        self.options = {"redirects": True, "prefix": b"/proxy"}
        for location in (b"https://evil/", b"//evil/", b"javascript:x"):
            wire, there, _ = await self.ask(b"GET /a HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % location)
            self.assertIn(b" 502 ", await wire.until(b"\r\n\r\n"))
            there.kill()
            await self.settled(lambda: not self.client.idle)

    async def test_upgrade(self) -> None:
        """A redirect instead of an upgrade is an error, and both connections end up without a splice."""
        wire, there, _ = await self.ask(
            b"GET / HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        there.send(b"HTTP/1.1 302 Found\r\nLocation: https://evil/\r\n\r\n")
        head = await wire.until(b"\r\n\r\n")
        self.assertIn(b" 500 ", head)
        self.assertNotIn(b"evil", head)
        await wire.until(b'"message":"invalid upgrade response: status code 302"')
        await there.end()


UPGRADE = b"GET /x HTTP/1.1\r\nHost: front\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n"
SWITCHED = (
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: a\r\n\r\n"
)


class UpgradeTests(Proxied):
    """SECURITY, CVE-2018-1002105: connections are spliced after a backend's 101, and never otherwise."""

    async def upgraded(self) -> tuple[Wire, Wire]:
        """A client and a backend that speak with one another."""
        wire, there, head = await self.ask(UPGRADE)
        lines = head.lower().split(b"\r\n")
        for line in (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-key: k"):
            self.assertEqual(lines.count(line), 1)
        there.send(SWITCHED)
        answer = (await wire.until(b"\r\n\r\n")).lower()
        self.assertTrue(answer.startswith(b"http/1.1 101 switching protocols\r\n"))
        for line in (b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-accept: a"):
            self.assertEqual(answer.split(b"\r\n").count(line), 1)
        return wire, there

    async def test_spliced(self) -> None:
        """After that whatever either side sends reaches the other."""
        wire, there = await self.upgraded()
        for _ in range(3):
            wire.send(b"\x00ping\r\n\r\n")
            self.assertEqual(await there.take(9), b"\x00ping\r\n\r\n")
            there.send(b"\xffpong")
            self.assertEqual(await wire.take(5), b"\xffpong")
        wire.close()
        await there.end()
        await self.all_over()
        self.assertEqual(self.client.idle, 0)

    async def test_ahead(self) -> None:
        """What either side sends before the other is ready is not lost, and stays in order."""
        wire, there, _ = await self.ask(UPGRADE + b"early")
        there.send(SWITCHED + b"first")
        self.assertTrue((await wire.until(b"first")).endswith(b"\r\n\r\nfirst"))
        self.assertEqual(await there.take(5), b"early")
        wire.send(b"later")
        self.assertEqual(await there.take(5), b"later")

    async def test_large(self) -> None:
        """Much data goes through, both ways, and what was sent before a close arrives."""
        wire, there = await self.upgraded()
        wire.send(b"x" * 8 * MB)
        there.send(b"y" * 8 * MB)
        wire.total = there.total = 0
        await there.arrived(8 * MB)
        await wire.arrived(8 * MB)
        there.send(b"z" * MB)
        there.close()
        await wire.arrived(9 * MB)
        await wire.end()
        await self.all_over()

    async def test_refused(self) -> None:
        """What a backend answers instead is passed back, then both connections end; nothing more goes through."""
        wire, there, _ = await self.ask(UPGRADE + b"GET /secret HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
        answer = await wire.until(b"\r\n\r\nno")
        self.assertIn(b"Connection: close", answer)
        await wire.end()
        await there.end()
        self.assertNotIn(b"secret", there.data)
        self.assertEqual(len(self.requests), 1)
        await self.all_over()
        self.assertEqual(self.client.idle, 0)

    async def test_no_upgrade_asked(self) -> None:
        """A 101 that nobody has asked for is an error."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(SWITCHED + b"more")
        self.assertIn(b" 503 ", await wire.until(b"\r\n\r\n"))
        await there.end()

    async def test_success_instead(self) -> None:
        """Any other answer below 400 is an error."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await wire.until(b"invalid upgrade response: status code 200")
        await there.end()

    async def test_other_protocol(self) -> None:
        """A backend that switches to something else is not listened to."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED.replace(b"WebSocket\r", b"h2c\r"))
        self.assertIn(b" 502 ", await wire.until(b"\r\n\r\n"))
        await there.end()

    async def test_unknown_protocols(self) -> None:
        """Nothing but WebSocket and SPDY/3.1 is asked of a backend."""
        for wanted in (b"h2c", b"SPDY/3", b"websocket, h2c", b"websocket\r\nUpgrade: h2c", b""):
            wire = await self.connect()
            wire.send(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %b\r\n\r\n" % wanted)
            self.assertIn(b" 400 ", await wire.until(b"\r\n\r\n"))
        self.assertEqual(self.backend.wires, [])

    async def test_with_a_body(self) -> None:
        """An upgrade has no body that could be taken for something else."""
        for framing in (b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
            wire = await self.connect()
            wire.send(b"POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" + framing)
            self.assertIn(b" 400 ", await wire.until(b"\r\n\r\n"))
        self.assertEqual(self.backend.wires, [])

    async def test_dead_backend(self) -> None:
        """A backend that goes instead of answering is an error."""
        wire, there, _ = await self.ask(UPGRADE)
        there.close()
        await wire.until(b'"message":"error dialing backend: EOF"')
        await self.all_over()

    async def test_required(self) -> None:
        """Where only upgrades are served everything else is told so."""
        self.options = {"upgrade_required": True}
        wire = await self.connect()
        wire.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await wire.until(b"Upgrade request required")

    async def test_stop(self) -> None:
        """When the server stops spliced connections end, and do not keep it waiting."""
        wire, there = await self.upgraded()
        finished = self.site.requests_finished()
        self.assertTrue(finished.called)
        self.site.end_long_running()
        await wire.end()
        await there.end()
        await self.all_over()

    async def test_slow_reader(self) -> None:
        """Whoever does not read is not written to without end: the other side has to wait."""
        wire, there = await self.upgraded()
        for reader, writer in ((wire, there), (there, wire)):
            reader.transport.pauseProducing()
            flood = Flood(writer.transport)
            await flood.stuck
            reader.total = 0
            flood.stop()
            reader.transport.resumeProducing()
            await reader.arrived(flood.written)


class TLSUpgradeTests(UpgradeTests):
    """The same over TLS."""

    tls = True


class BrokenTests(Proxied):
    """Whichever side goes in the middle of something takes the other along, and nothing stays behind."""

    async def test_backend_killed_in_a_download(self) -> None:
        """An answer that breaks off is cut off for the client: what has come is there, the end is not."""
        for framing in (b"Content-Length: 100", b"Transfer-Encoding: chunked"):
            wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
            there.send(b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n5\r\nhello\r\n")
            await wire.until(b"hello")
            there.kill()
            self.assertNotIn(b"0\r\n\r\n", await wire.end())
            await self.all_over()
            self.assertEqual(self.client.idle, 0)

    async def test_backend_closes_in_a_download(self) -> None:
        """That a backend takes its leave in good order does not make half an answer a whole one."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello\r\n")
        there.close()
        self.assertEqual(await wire.end(), b"")
        await self.all_over()

    async def test_old_client(self) -> None:
        """A client that takes the end of the connection for the end of an answer sees it reset instead."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.0\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"\r\n\r\nhello")
        there.kill()
        await wire.end()
        assert wire.lost is not None
        self.assertIsNone(wire.lost.check(ConnectionDone))
        await self.all_over()

    async def test_malformed_end(self) -> None:
        """An answer that can not be understood to its end is cut off."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello\r\n")
        there.send(b"nonsense\r\n0\r\n\r\n")
        self.assertEqual(await wire.end(), b"")
        await there.end()
        await self.all_over()

    async def test_backend_killed_in_an_upload(self) -> None:
        """A client whose backend goes while it sends is told so."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 100\r\n\r\nhello")
        await there.until(b"hello")
        there.kill()
        answer = await wire.until(b"error trying to reach service: ")
        self.assertIn(b" 503 ", answer)
        self.assertIn(b"Connection: close", answer)
        wire.send(b"x" * 95)
        await wire.end()
        await self.all_over()

    async def test_backend_killed_after_an_upgrade(self) -> None:
        """A client whose backend goes after an upgrade gets what was sent, and goes, too."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED + b"last words")
        await wire.until(b"last words")
        there.kill()
        await wire.end()
        await self.all_over()

    async def test_client_killed_while_nothing_comes(self) -> None:
        """A backend that has not answered yet is left when the client goes."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_client_killed_before_it_begins(self) -> None:
        """For a client that has gone before it was known where to turn to, nobody is called."""
        wire = await self.connect()
        self.options = None
        wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        await self.settled(lambda: self.requests)
        wire.kill()
        await self.settled(lambda: not self.site.channels)
        await proxy_request(self.requests[0], self.client, b"/")
        self.assertEqual((self.client.idle, self.client.busy, self.backend.wires), (0, 0, []))

    async def test_client_killed_while_connecting(self) -> None:
        """A client that goes while its backend is being called leaves nothing behind."""
        wire = await self.connect()
        wire.send(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        wire.kill()
        await wire.end()
        await self.settled(lambda: not self.site.channels)
        await self.all_over()

    async def test_client_killed_in_a_watch(self) -> None:
        """A client that goes in the middle of an answer takes its backend's connection along."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await wire.until(b"hello")
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_client_killed_in_an_upload(self) -> None:
        """The body of a client that goes does not end for the backend as if it were whole."""
        wire, there, _ = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        await there.until(b"5\r\nhello\r\n")
        wire.kill()
        self.assertEqual(await there.end(), b"")
        await self.all_over()

    async def test_malformed_upload(self) -> None:
        """Neither does a body that can not be understood to its end; its client is told."""
        wire, there, _ = await self.ask(
            b"PUT / HTTP/1.1\r\nHost: front\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
        )
        await there.until(b"5\r\nhello\r\n")
        wire.send(b"nonsense\r\n0\r\n\r\n")
        self.assertTrue((await wire.until(b"\r\n")).startswith(b"HTTP/1.1 400 "))
        self.assertEqual(await there.end(), b"")
        await self.all_over()

    async def test_client_killed_after_an_upgrade(self) -> None:
        """A client that goes after an upgrade takes its backend's connection along."""
        wire, there, _ = await self.ask(UPGRADE)
        there.send(SWITCHED)
        await wire.until(b"\r\n\r\n")
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_client_killed_during_an_upgrade(self) -> None:
        """A backend whose client has gone before it answers an upgrade is left alone with its answer."""
        wire, there, _ = await self.ask(UPGRADE)
        wire.kill()
        await there.end()
        await self.all_over()

    async def test_slow_reader(self) -> None:
        """A client that does not read holds up its backend, not our memory; then it gets all of it."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        flood.stop()
        there.close()
        wire.transport.resumeProducing()
        await wire.until(b"\r\n0\r\n\r\n")
        self.assertGreater(wire.total, flood.written)
        await self.all_over()

    async def test_slow_reader_leaves(self) -> None:
        """A client that says goodbye while it does not read is let go, and takes its backend's connection along."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        wire.close()
        wire.transport.resumeProducing()
        await wire.end()
        await there.end()
        flood.stop()
        await self.all_over()

    async def test_slow_backend_leaves(self) -> None:
        """A backend that says goodbye while it does not read what it is sent is let go."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        there.close()
        there.transport.resumeProducing()
        await there.end()
        await wire.until(b"error trying to reach service")
        wire.kill()
        await self.all_over()

    async def test_slow_reader_killed(self) -> None:
        """A client that goes while it does not read takes its backend's connection along."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        there.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        await wire.until(b"\r\n\r\n")
        wire.transport.pauseProducing()
        flood = Flood(there.transport)
        await flood.stuck
        wire.kill()
        await there.end()
        flood.stop()
        await self.all_over()

    async def test_slow_backend(self) -> None:
        """A backend that does not read holds up the client, not our memory; then it gets all of it."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.total = 0
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        there.transport.resumeProducing()
        await there.arrived(flood.written)

    async def test_killed_behind_a_slow_backend(self) -> None:
        """A client that goes while its backend does not read is missed at last, though it is not read from."""
        wire, there, _ = await self.ask(b"PUT / HTTP/1.1\r\nHost: front\r\nContent-Length: 1000000000000\r\n\r\n")
        there.transport.pauseProducing()
        flood = Flood(wire.transport)
        await flood.stuck
        flood.stop()
        (channel,) = self.site.channels
        self.assertFalse(has_hung_up(channel.transport))
        wire.kill()
        await self.settled(lambda: has_hung_up(channel.transport))
        # It may yet be read what it has sent.
        self.site.look_around()
        self.assertEqual(self.site.channels, {channel})
        self.site.now = lambda: reactor.seconds() + STALLED
        self.site.look_around()
        await self.settled(lambda: not self.site.channels)
        there.transport.resumeProducing()
        await self.all_over()
        self.assertEqual(self.site.stalled, {})

    async def test_deadline(self) -> None:
        """A request that is not long-running is answered in time; its backend is not waited for any longer."""
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        self.requests[0].fail(APIStatusError.timeout("request did not complete within the allotted timeout"))
        self.assertIn(b" 504 ", await wire.until(b"\r\n\r\n"))
        await there.end()
        await self.all_over()

    async def test_head_timeout(self) -> None:
        """A backend that accepts a request and says nothing is given up after the time that it has."""
        self.options = {"head_timeout": 0.01}
        wire, there, _ = await self.ask(b"GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        await wire.until(b"net/http: timeout awaiting response headers")
        await there.end()


class TLSBrokenTests(BrokenTests):
    """The same over TLS."""

    tls = True


class LocationTests(SynchronousTestCase):
    """Where redirects lead, worked out."""

    def test_paths(self) -> None:
        """Paths are put one behind the other as Go does it, and keep a slash at their end."""
        for prefix, path, expected in (
            (b"", b"/apis/a/v1", b"/apis/a/v1"),
            (b"/p", b"/", b"/p/"),
            (b"/p", b"", b"/p"),
            (b"/p/", b"/a//b/", b"/p/a/b/"),
            (b"", b"/", b"/"),
        ):
            self.assertEqual(joined_path(prefix, path), expected)

    def test_out_of_it(self) -> None:
        """What could lead out of the backend's path, for any reader, leads nowhere."""
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
        """Everything else stays below the backend's path."""
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
        """Whatever a backend says, a browser that follows it stays below the backend's path on this server."""
        found = rewritten_location(location, b"/x/y", b"/proxy", {b"back"})
        if found is not None:
            ended = urljoin("https://front/proxy/x/y", found.decode("ascii"))
            parts = urlsplit(ended)
            self.assertEqual((parts.scheme, parts.netloc), ("https", "front"))
            self.assertTrue(f"{parts.path}/".startswith("/proxy/"), ended)
            self.assertNotIn("..", parts.path.split("/"))

    def test_slash(self) -> None:
        """The path of a proxy itself leads to the same with a slash, and keeps its query."""
        client = Client(make_site(redirect_to_slash))
        answer = client.request("GET", "/a/proxy?b=c")
        self.assertEqual((answer.code, answer.header("location")), (301, "/a/proxy/?b=c"))


class Flood:
    """
    Writes as much as a transport takes.

    @ivar stuck: Fires when it takes no more.
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
        """Stuck is what stays so while everything else has its turns."""
        self._call = None
        if turns:
            self._call = reactor.callLater(0, self._wait, turns - 1)
        elif not self.stuck.called:
            self.stuck.callback(None)

    def pauseProducing(self) -> None:
        """Enough."""
        self._go = False

    def resumeProducing(self) -> None:
        """More."""
        self._go = True
        if self._call is not None:
            self._call.cancel()
        self._call = reactor.callLater(0, self._write)

    def stopProducing(self) -> None:
        """The connection is gone."""
        self._go = False
        if self._call is not None:
            self._call.cancel()
            self._call = None

    def stop(self) -> None:
        """Write no more."""
        self.stopProducing()
        self._transport.unregisterProducer()
