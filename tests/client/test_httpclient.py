"""Calls over real connections of this machine, to servers that behave and to such that do not."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.address import IPv4Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.trial.unittest import TestCase

from kubetwist.client import dialing
from kubetwist.client.dialing import (
    CheckedEndpoint,
    is_denied,
    is_forbidden,
    is_local,
)
from kubetwist.client.errors import (
    BadSettings,
    CallError,
    Unreachable,
)
from kubetwist.client.httpclient import WebhookClient
from kubetwist.client.restconfig import CallSettings
from kubetwist.testing.webhooks import HANG_UP, NEVER, Call, Reply, WebhookServer


async def turns() -> None:
    """Let the reactor turn."""
    for _ in range(3):
        turn: Deferred[None] = Deferred()
        reactor.callLater(0, turn.callback, None)  # type: ignore[attr-defined]
        await turn


class ClientCase(TestCase):
    """Calls to a L{WebhookServer}."""

    def setUp(self) -> None:
        """Connections that are broken off are told of in a later turn."""
        self.addCleanup(lambda: Deferred.fromCoroutine(turns()))

    async def serve(self, answer: Any, **options: Any) -> WebhookServer:
        """A server until the test ends."""
        server = WebhookServer(reactor, answer, **options)
        await server.start()
        self.addCleanup(lambda: Deferred.fromCoroutine(server.stop()))
        return server

    def client(self, server: WebhookServer, path: str = "/hook", limit: int = 10_000, **others: Any) -> WebhookClient:
        """A client of it until the test ends."""
        others.setdefault("ca", server.ca)
        others.setdefault("url", server.url + path)
        return self.client_of(CallSettings(**others), limit)

    def client_of(self, settings: CallSettings, limit: int = 10_000, **others: Any) -> WebhookClient:
        """A client until the test ends."""
        client = WebhookClient(reactor, settings, limit=limit, **others)
        self.addCleanup(client.close)
        return client

    def raw(self, *answer: bytes, close: bool = False) -> int:
        """A port at which a connection is answered by C{answer}, the last part of it for ever if there are two."""

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
        """Why a call fails."""
        try:
            answer = await client.post(b"{}", timeout=timeout)
        except CallError as error:
            return error
        raise AssertionError(f"it was answered: {answer}")


class CallTests(ClientCase):
    """What is sent, and what comes back."""

    async def test_call(self) -> None:
        """The body arrives with its type, the timeout in the query, and the credentials."""
        server = await self.serve(lambda call: {"said": call.json()})
        client = self.client(server, token="secret", headers={"X-Extra": "1"})
        answer = await client.post(b'{"a":1}', timeout=30, query={"b": "c d"})
        self.assertEqual((answer.code, answer.body), (200, b'{"said": {"a": 1}}'))
        (call,) = server.calls
        self.assertEqual((call.method, call.path, call.query), ("POST", "/hook", {"b": "c d", "timeout": "30s"}))
        self.assertEqual(call.headers["content-type"], "application/json")
        self.assertEqual(call.headers["authorization"], "Bearer secret")
        self.assertEqual(call.headers["x-extra"], "1")

    async def test_codes(self) -> None:
        """An answer that is no success is an answer, with its headers."""
        server = await self.serve(lambda call: Reply(503, b"later", {"Retry-After": "3"}))
        answer = await self.client(server).post(b"{}", timeout=10)
        self.assertEqual((answer.code, answer.headers["retry-after"], answer.body), (503, "3", b"later"))

    async def test_connections_are_kept(self) -> None:
        """One call after the other uses the same connection."""
        server = await self.serve(lambda call: {})
        client = self.client(server)
        for _ in range(3):
            await client.post(b"{}", timeout=10)
        self.assertEqual(server.connections, 1)

    async def test_basic(self) -> None:
        """A user and a password are sent as such."""
        server = await self.serve(lambda call: {})
        await self.client(server, basic=("me", "pass")).post(b"", timeout=10)
        self.assertEqual(server.calls[0].headers["authorization"], "Basic bWU6cGFzcw==")

    async def test_plain(self) -> None:
        """Servers without TLS can be called."""
        server = await self.serve(lambda call: {}, tls=False)
        answer = await self.client(server, ca=b"").post(b"{}", timeout=10)
        self.assertEqual(answer.code, 200)

    async def test_get(self) -> None:
        """A GET has no body and no query."""
        server = await self.serve(lambda call: {"m": call.method, "q": dict(call.query)})
        answer = await self.client(server).get(timeout=10)
        self.assertEqual(answer.body, b'{"m": "GET", "q": {}}')

    async def test_cookies_are_not_kept(self) -> None:
        """What one answer sets is not sent with the next call."""
        server = await self.serve(lambda call: Reply(200, b"{}", {"Set-Cookie": "a=b; Path=/"}))
        client = self.client(server)
        await client.post(b"{}", timeout=10)
        await client.post(b"{}", timeout=10)
        self.assertNotIn("cookie", server.calls[1].headers)


class FailureTests(ClientCase):
    """What is told about calls that fail."""

    async def test_refused(self) -> None:
        """Nobody listens: the text is Go's, with the whole URL."""
        error = await self.refusal(self.client_of(CallSettings(url="https://127.0.0.1:1/x")))
        self.assertEqual(
            str(error), 'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
        )
        self.assertFalse(error.timed_out or error.retriable)

    async def test_slow(self) -> None:
        """A server that does not answer in time is given up."""
        server = await self.serve(lambda call: NEVER)
        error = await self.refusal(self.client(server), timeout=0.25)
        self.assertEqual(str(error), f'Post "{server.url}/hook?timeout=250ms": context deadline exceeded')
        self.assertTrue(error.timed_out)

    async def test_slow_body(self) -> None:
        """A server that begins to answer and then stops is given up, too."""
        port = self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        error = await self.refusal(self.client_of(CallSettings(url=f"http://127.0.0.1:{port}/")), timeout=0.25)
        self.assertTrue(error.timed_out)

    async def test_slow_handshake(self) -> None:
        """A server that accepts connections and says nothing is given up while TLS waits for it."""
        port = self.raw(b"")
        error = await self.refusal(self.client_of(CallSettings(url=f"https://127.0.0.1:{port}/")), timeout=0.25)
        self.assertTrue(error.timed_out)

    async def test_retired(self) -> None:
        """A client that is retired ends its calls in peace, and then lets go of its connections."""
        held: Deferred[Any] = Deferred()
        server = await self.serve(lambda call: held)
        client = self.client(server)
        calling = Deferred.fromCoroutine(client.post(b"{}", timeout=10))
        while not server.calls:
            await turns()
        client.retire()
        held.callback({"late": True})
        self.assertEqual((await calling).body, b'{"late": true}')
        while server._site.protocols:
            await turns()
        error = await self.refusal(client)
        self.assertEqual(error.why, "context canceled")

    async def test_hang_up(self) -> None:
        """A connection that is closed instead of an answer is C{EOF}, or was reset."""
        server = await self.serve(lambda call: HANG_UP)
        error = await self.refusal(self.client(server))
        self.assertRegex(error.why, "^(EOF|read tcp .*: read: connection reset by peer)$")

    async def test_cut_off(self) -> None:
        """A body that ends early is no answer."""
        port = self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", close=True)
        error = await self.refusal(self.client_of(CallSettings(url=f"http://127.0.0.1:{port}/")))
        self.assertEqual(error.why, "unexpected EOF")

    async def test_garbage(self) -> None:
        """What is no HTTP is no answer, and is not told, as it may be anything."""
        port = self.raw(b"SSH-2.0-OpenSSH_9.6 secret\r\n\r\n", close=True)
        error = await self.refusal(self.client_of(CallSettings(url=f"http://127.0.0.1:{port}/")))
        self.assertEqual(error.why, "net/http: HTTP/1.x transport connection broken: malformed HTTP response")

    async def test_redirects_are_not_followed(self) -> None:
        """CVE-2020-8561: a redirect is a failure, whatever its code, and nobody else is called."""
        other = await self.serve(lambda call: {})
        for code in (301, 302, 303, 307, 308):
            server = await self.serve(lambda call, code=code: Reply(code, b"", {"Location": f"{other.url}/inner"}))
            error = await self.refusal(self.client(server))
            self.assertEqual(error.why, f"the answer is a redirect ({code}), which is not followed")
        self.assertEqual(other.calls, [])

    async def test_oversize(self) -> None:
        """An answer that is longer than allowed is broken off."""
        server = await self.serve(lambda call: Reply(200, b"x" * 10_001))
        error = await self.refusal(self.client(server, limit=10_000))
        self.assertEqual(error.why, "the answer is longer than 10000 bytes")

    async def test_endless(self) -> None:
        """So is one that does not say how long it is, and one whose head has no end."""
        for head in (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b""):
            port = self.raw(head, b"X-Field: value\r\n" * 1000)
            error = await self.refusal(self.client_of(CallSettings(url=f"http://127.0.0.1:{port}/")))
            self.assertRegex(error.why, "too long|longer than|malformed")

    async def test_close_ends_calls(self) -> None:
        """Who stops the client ends the calls that are under way."""
        called: Deferred[None] = Deferred()

        def answer(call: Call) -> Any:
            called.callback(None)
            return NEVER

        server = await self.serve(answer)
        client = self.client(server)
        failing = Deferred.fromCoroutine(client.post(b"{}", timeout=60))
        await called
        client.close()
        error = await self.assertFailure(failing, CallError)
        self.assertEqual(error.why, "context canceled")


class TrustTests(ClientCase):
    """Whom a client trusts, and what it shows."""

    async def test_unknown_authority(self) -> None:
        """A certificate of an authority that is not named is refused before anything is sent."""
        server = await self.serve(lambda call: {})
        stranger = await self.serve(lambda call: {})
        for ca in (stranger.ca, b""):
            error = await self.refusal(self.client(server, ca=ca, token="secret"))
            self.assertEqual(
                error.why, "tls: failed to verify certificate: x509: certificate signed by unknown authority"
            )
        self.assertEqual(server.calls, [])

    async def test_other_name(self) -> None:
        """A certificate must be for the host, or for the name that the settings say."""
        server = await self.serve(lambda call: {}, names=("a.example", "*.b.example"))
        failed = "tls: failed to verify certificate: x509: "
        error = await self.refusal(self.client(server))
        self.assertEqual(
            error.why, f"{failed}cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs"
        )
        error = await self.refusal(self.client(server, server_name="c.example"))
        self.assertEqual(error.why, f"{failed}certificate is valid for a.example, *.b.example, not c.example")
        for name in ("a.example", "x.b.example"):
            answer = await self.client(server, server_name=name).post(b"{}", timeout=10)
            self.assertEqual(answer.code, 200)

    async def test_other_address(self) -> None:
        """Addresses count like names."""
        server = await self.serve(lambda call: {}, names=("10.0.0.7",))
        error = await self.refusal(self.client(server))
        self.assertEqual(
            error.why, "tls: failed to verify certificate: x509: certificate is valid for 10.0.0.7, not 127.0.0.1"
        )

    async def test_no_names(self) -> None:
        """A common name is no name."""
        server = await self.serve(lambda call: {}, names=())
        error = await self.refusal(self.client(server, server_name="webhook"))
        self.assertEqual(
            error.why,
            "tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead",
        )

    async def test_expired(self) -> None:
        """A certificate whose time is over is refused, and it is told when it was."""
        server = await self.serve(lambda call: {}, expired=True)
        error = await self.refusal(self.client(server))
        self.assertRegex(
            error.why,
            "^tls: failed to verify certificate: x509: certificate has expired or is not yet valid:"
            r" current time \S+Z is after \S+Z$",
        )

    async def test_insecure(self) -> None:
        """Whoever asks for it trusts everybody."""
        server = await self.serve(lambda call: {}, names=("elsewhere",))
        answer = await self.client(server, ca=b"", insecure=True).post(b"{}", timeout=10)
        self.assertEqual(answer.code, 200)

    async def test_client_certificate(self) -> None:
        """A client certificate is shown to who asks for it; without one the other side's words are told."""
        server = await self.serve(lambda call: {}, require_client=True)
        pair = server.client_pair("apiserver")
        await self.client(server, certificate=pair.certificate, key=pair.key).post(b"{}", timeout=10)
        self.assertEqual(server.calls[0].client, "apiserver")
        error = await self.refusal(self.client(server))
        self.assertEqual(error.why, "remote error: tls: certificate required")

    async def test_no_tls(self) -> None:
        """A server that speaks no TLS is found out."""
        port = self.raw(b"HTTP/1.1 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
        error = await self.refusal(self.client_of(CallSettings(url=f"https://127.0.0.1:{port}/")))
        self.assertEqual(error.why, "http: server gave HTTP response to HTTPS client")

    def test_bad_settings(self) -> None:
        """Settings that can not be used are refused at once."""
        for settings in (
            CallSettings(url="ftp://x"),
            CallSettings(url="https://"),
            CallSettings(url="https://x:99999"),
            CallSettings(url="https://[127.0.0.1:80]:443"),
            CallSettings(url="https://[x"),
            CallSettings(url="https://x", ca=b"nonsense"),
            CallSettings(url="https://x", certificate=b"nonsense", key=b"more"),
        ):
            self.assertRaises(BadSettings, WebhookClient, reactor, settings)

    def test_secrets_are_not_shown(self) -> None:
        """Settings can be logged."""
        shown = repr(CallSettings(url="https://x", token="hush", basic=("me", "hush"), key=b"hush"))
        self.assertNotIn("hush", shown)


class DialingTests(ClientCase):
    """Where connections go."""

    async def test_addresses_are_checked(self) -> None:
        """CVE-2020-8562, CVE-2022-3294: what objects of the API name may not be this machine, nor the link."""
        server = await self.serve(lambda call: {})
        for host in ("127.0.0.1", "localhost"):
            error = await self.refusal(self.client(server, dial=lambda host=host: (host, server.port), guarded=True))
            self.assertRegex(error.why, r"^dial tcp (127\.0\.0\.1|\[::1\]):\d+: address not allowed$")
        self.assertEqual(server.calls, [])

    def test_forbidden(self) -> None:
        """All ways to write a forbidden address are forbidden."""
        for address in (
            "127.0.0.1", "127.9.9.9", "0.0.0.0", "169.254.169.254", "224.0.0.1", "255.255.255.255", "::1", "::",
            "fe80::1", "fe80::1%eth0", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
            "2002:7f00:1::", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "192.0.0.1", "::ffff:192.0.0.192",
        ):  # fmt: skip
            self.assertTrue(is_forbidden(address), address)
        for address in ("10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:4860::8888", "::ffff:10.0.0.1"):
            self.assertFalse(is_forbidden(address), address)

    def test_own_interfaces(self) -> None:
        """Addresses of this machine's interfaces are forbidden where configured, and can be allowed."""
        self.assertTrue(is_local("127.0.0.1"))
        self.assertFalse(is_local("192.0.2.1"))
        asked: list[str] = []
        self.patch(dialing, "is_local", lambda address: asked.append(address) or address in ("10.1.2.3", "fd00::7"))
        for address in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd00::7"):
            self.assertTrue(is_forbidden(address, interfaces=True), address)
            self.assertFalse(is_forbidden(address, interfaces=True, loopback=True), address)
            self.assertFalse(is_forbidden(address), address)
        self.assertFalse(is_forbidden("10.1.2.4", interfaces=True))
        self.assertEqual(asked, ["10.1.2.3"] * 3 + ["fd00::7", "10.1.2.4"])

    def test_own_interfaces_are_not_called(self) -> None:
        """A target that is an address of this machine's interfaces is not connected to."""
        self.patch(dialing, "is_local", lambda address: True)
        memory = MemoryReactorClock()
        for interfaces in (True, False):
            endpoint = CheckedEndpoint(memory, lambda: ("10.1.2.3", 443), guarded=True, interfaces=interfaces)
            connecting = endpoint.connect(Factory.forProtocol(Protocol))
            if interfaces:
                error = self.failureResultOf(connecting, Unreachable).value
                self.assertEqual(str(error), "dial tcp 10.1.2.3:443: address not allowed")
            else:
                connecting.addErrback(lambda failure: failure.trap(CancelledError))
        self.assertEqual(len(memory.tcpClients), 1)

    def test_this_machine(self) -> None:
        """Addresses of this machine can be allowed, without those of the link and of metadata services."""
        for address in ("127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
            self.assertFalse(is_forbidden(address, loopback=True), address)
        for address in ("0.0.0.0", "::", "169.254.169.254", "fe80::1", "100.100.100.200", "224.0.0.1"):
            self.assertTrue(is_forbidden(address, loopback=True), address)

    async def test_denied(self) -> None:
        """What the operator denies is not called, however it is named; all else is, this machine included."""
        server = await self.serve(lambda call: {})
        networks = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
        for host in ("127.0.0.1", "localhost", "::ffff:127.0.0.1"):
            error = await self.refusal(self.client(server, dial=lambda host=host: (host, server.port), denied=networks))
            self.assertRegex(error.why, r"^dial tcp .*: address not allowed$")
        self.assertEqual(server.calls, [])
        await self.client(server, denied=(ip_network("169.254.0.0/16"),)).post(b"{}", timeout=10)
        self.assertEqual(len(server.calls), 1)

    def test_ways_to_write(self) -> None:
        """A network is that of all ways to write its addresses."""
        link = [ip_network("169.254.0.0/16")]
        for address in ("169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"):
            self.assertTrue(is_denied(address, link), address)
        for address in ("169.253.0.1", "fe80::1", "::1"):
            self.assertFalse(is_denied(address, link), address)
        self.assertTrue(is_denied("fe80::1%eth0", [ip_network("fe80::/10")]))

    def test_patience(self) -> None:
        """Whoever does not take a connection is given as long to do it as the settings say."""
        memory = MemoryReactorClock()
        endpoint = CheckedEndpoint(memory, lambda: ("10.1.2.3", 443), patience=5.0)
        endpoint.connect(Factory.forProtocol(Protocol)).addErrback(lambda failure: failure.trap(CancelledError))
        self.assertEqual([(client[:2], client[3]) for client in memory.tcpClients], [(("10.1.2.3", 443), 5.0)])

    def test_patience_for_names(self) -> None:
        """Nor is anybody waited for longer who looks up a name."""
        memory = MemoryReactorClock()
        memory.nameResolver = _Resolver([], slow=True)
        connecting = CheckedEndpoint(memory, lambda: ("h", 443), patience=5.0).connect(Factory.forProtocol(Protocol))
        memory.advance(4.9)
        self.assertNoResult(connecting)
        memory.advance(0.2)
        error = self.failureResultOf(connecting, Unreachable).value
        self.assertEqual(str(error), "dial tcp: lookup h: i/o timeout")

    async def test_names_are_resolved_once(self) -> None:
        """The address that was checked is the one that is dialled."""
        server = await self.serve(lambda call: {}, names=("hook.example",))
        resolver = _Resolver(["10.1.2.3"])
        watched = _Reactor(resolver)
        client = WebhookClient(
            watched,
            CallSettings(url=f"https://hook.example:{server.port}/", ca=server.ca, guarded=True),
            diversions={("10.1.2.3", server.port): ("127.0.0.1", server.port)},
        )
        self.addCleanup(client.close)
        answer = await client.post(b"{}", timeout=10)
        self.assertEqual((answer.code, resolver.asked), (200, ["hook.example"]))

    async def test_rebinding(self) -> None:
        """A name that resolves to a forbidden address is not called, whatever else it resolves to."""
        client = WebhookClient(
            _Reactor(_Resolver(["169.254.169.254"])), CallSettings(url="http://hook.example/", guarded=True)
        )
        self.addCleanup(client.close)
        error = await self.refusal(client)
        self.assertEqual(error.why, "dial tcp 169.254.169.254:80: address not allowed")

    async def test_no_such_host(self) -> None:
        """A name that nobody knows is told, and who was asked for it."""
        resolvers = Path(self.mktemp())
        self.patch(dialing, "RESOLVERS", resolvers)
        self.assertEqual(dialing.name_server(), "127.0.0.1:53")
        resolvers.write_text("# of this machine\nsearch example\nnameserver 10.9.8.7\nnameserver 10.9.8.6\n")
        client = WebhookClient(_Reactor(_Resolver([])), CallSettings(url="http://hook.example/"))
        self.addCleanup(client.close)
        error = await self.refusal(client)
        self.assertEqual(error.why, "dial tcp: lookup hook.example on 10.9.8.7:53: no such host")

    async def test_slow_names(self) -> None:
        """A name that is not resolved in time is given up; what comes later does no harm."""
        resolver = _Resolver(["10.1.2.3"], slow=True)
        client = WebhookClient(_Reactor(resolver), CallSettings(url="http://hook.example/"))
        self.addCleanup(client.close)
        error = await self.refusal(client, timeout=0.2)
        self.assertTrue(error.timed_out)
        resolver.complete()

    async def test_next_address(self) -> None:
        """Of several addresses the next is tried when one refuses; the first error is the one that is told."""
        server = await self.serve(lambda call: {}, tls=False)
        settings = CallSettings(url=f"http://hook.example:{server.port}/")
        diversions = {
            ("10.0.0.1", server.port): ("127.0.0.1", 1),
            ("10.0.0.2", server.port): ("127.0.0.1", server.port),
        }
        client = WebhookClient(_Reactor(_Resolver(["10.0.0.1", "10.0.0.2"])), settings, diversions=diversions)
        self.addCleanup(client.close)
        self.assertEqual((await client.post(b"", timeout=10)).code, 200)

    async def test_moved(self) -> None:
        """A target that has moved is called where it is now; one that is gone is not called over an old connection."""
        one = await self.serve(lambda call: {"n": 1}, names=("hook",))
        where: list[Any] = [("127.0.0.1", one.port)]

        def dial() -> tuple[str, int]:
            if where[0] is None:
                raise Unreachable('service "hook" not found')
            return where[0]  # type: ignore[no-any-return]

        client = self.client_of(CallSettings(url="https://hook/", insecure=True, dial=dial))
        first = await client.post(b"", timeout=10)
        two = await self.serve(lambda call: {"n": 2}, names=("hook",))
        where[0] = ("127.0.0.1", two.port)
        second = await client.post(b"", timeout=10)
        self.assertEqual((first.body, second.body), (b'{"n": 1}', b'{"n": 2}'))
        where[0] = None
        error = await self.refusal(client)
        self.assertEqual(str(error), 'Post "https://hook/?timeout=10s": service "hook" not found')


class _Resolver:
    def __init__(self, addresses: list[str], slow: bool = False) -> None:
        self._addresses = addresses
        self._slow = slow
        self._receiver: Any = None
        self.asked: list[str] = []

    def resolveHostName(self, receiver: Any, name: str, *others: Any) -> Any:
        self.asked.append(name)
        self._receiver = receiver
        receiver.resolutionBegan(self)
        if not self._slow:
            self.complete()
        return self

    def complete(self) -> None:
        for address in self._addresses:
            self._receiver.addressResolved(IPv4Address("TCP", address, 0))
        self._receiver.resolutionComplete()

    def cancel(self) -> None:
        # As Twisted's own.
        raise NotImplementedError


class _Reactor:
    """The reactor, with other names in the world."""

    def __init__(self, resolver: _Resolver) -> None:
        self.nameResolver = resolver

    def __getattr__(self, name: str) -> Any:
        return getattr(reactor, name)
