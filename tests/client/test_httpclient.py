"""Tests of L{kubetwist.client.httpclient}, over real connections to well-behaved and misbehaving servers."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred

from kubetwist.client.errors import (
    CallError,
)
from kubetwist.client.restconfig import RESTConfig
from kubetwist.testing.webhooks import HANG_UP, NEVER, Call, Reply
from tests.client.clientcase import ClientCase, turns


class CallTests(ClientCase):
    """Successful calls."""

    async def test_call(self) -> None:
        """A POST sends the body, its content type, the timeout as query parameter, and the credentials."""
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
        """A response with an error code is returned with its headers."""
        server = await self.serve(lambda call: Reply(503, b"later", {"Retry-After": "3"}))
        answer = await self.client(server).post(b"{}", timeout=10)
        self.assertEqual((answer.code, answer.headers["retry-after"], answer.body), (503, "3", b"later"))

    async def test_connections_are_kept(self) -> None:
        """Consecutive calls use one connection."""
        server = await self.serve(lambda call: {})
        client = self.client(server)
        for _ in range(3):
            await client.post(b"{}", timeout=10)
        self.assertEqual(server.connections, 1)

    async def test_basic(self) -> None:
        """User and password are sent with basic authentication."""
        server = await self.serve(lambda call: {})
        await self.client(server, basic_auth=("me", "pass")).post(b"", timeout=10)
        self.assertEqual(server.calls[0].headers["authorization"], "Basic bWU6cGFzcw==")

    async def test_plain(self) -> None:
        """A server without TLS can be called."""
        server = await self.serve(lambda call: {}, tls=False)
        answer = await self.client(server, ca=b"").post(b"{}", timeout=10)
        self.assertEqual(answer.code, 200)

    async def test_get(self) -> None:
        """A GET has no body and no query."""
        server = await self.serve(lambda call: {"m": call.method, "q": dict(call.query)})
        answer = await self.client(server).get(timeout=10)
        self.assertEqual(answer.body, b'{"m": "GET", "q": {}}')

    async def test_cookies_are_not_kept(self) -> None:
        """A cookie of a response is not sent with the next call."""
        server = await self.serve(lambda call: Reply(200, b"{}", {"Set-Cookie": "a=b; Path=/"}))
        client = self.client(server)
        await client.post(b"{}", timeout=10)
        await client.post(b"{}", timeout=10)
        self.assertNotIn("cookie", server.calls[1].headers)


class FailureTests(ClientCase):
    """Failing calls."""

    async def test_connection_refused(self) -> None:
        """A refused connection fails with Go's text and the full URL."""
        error = await self.refusal(self.client_of(RESTConfig(url="https://127.0.0.1:1/x")))
        self.assertEqual(
            str(error), 'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'
        )
        self.assertFalse(error.timed_out or error.retriable)

    async def test_slow(self) -> None:
        """A server that does not answer in time fails the call with a timeout."""
        server = await self.serve(lambda call: NEVER)
        error = await self.refusal(self.client(server), timeout=0.25)
        self.assertEqual(str(error), f'Post "{server.url}/hook?timeout=250ms": context deadline exceeded')
        self.assertTrue(error.timed_out)

    async def test_slow_body(self) -> None:
        """A response whose body stalls fails the call with a timeout."""
        port = self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
        error = await self.refusal(self.client_of(RESTConfig(url=f"http://127.0.0.1:{port}/")), timeout=0.25)
        self.assertTrue(error.timed_out)

    async def test_slow_handshake(self) -> None:
        """A server that stalls in the TLS handshake fails the call with a timeout."""
        port = self.raw(b"")
        error = await self.refusal(self.client_of(RESTConfig(url=f"https://127.0.0.1:{port}/")), timeout=0.25)
        self.assertTrue(error.timed_out)

    async def test_retired(self) -> None:
        """A retired client completes pending calls, then closes its connections."""
        pending: Deferred[Any] = Deferred()
        server = await self.serve(lambda call: pending)
        client = self.client(server)
        calling = Deferred.fromCoroutine(client.post(b"{}", timeout=10))
        while not server.calls:
            await turns()
        client.retire()
        pending.callback({"late": True})
        self.assertEqual((await calling).body, b'{"late": true}')
        while server._site.protocols:
            await turns()
        error = await self.refusal(client)
        self.assertEqual(error.reason, "context canceled")

    async def test_hang_up(self) -> None:
        """A connection that is closed before the response fails with EOF or a reset."""
        server = await self.serve(lambda call: HANG_UP)
        error = await self.refusal(self.client(server))
        self.assertRegex(error.reason, "^(EOF|read tcp .*: read: connection reset by peer)$")

    async def test_cut_off(self) -> None:
        """A truncated body fails the call."""
        port = self.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", close=True)
        error = await self.refusal(self.client_of(RESTConfig(url=f"http://127.0.0.1:{port}/")))
        self.assertEqual(error.reason, "unexpected EOF")

    async def test_garbage(self) -> None:
        """A response that is not HTTP fails the call with an error that does not quote it."""
        port = self.raw(b"SSH-2.0-OpenSSH_9.6 secret\r\n\r\n", close=True)
        error = await self.refusal(self.client_of(RESTConfig(url=f"http://127.0.0.1:{port}/")))
        self.assertEqual(error.reason, "net/http: HTTP/1.x transport connection broken: malformed HTTP response")

    async def test_redirects_are_not_followed(self) -> None:
        """CVE-2020-8561: a redirect fails the call, with every redirect code, and its target is not called."""
        other = await self.serve(lambda call: {})
        for code in (301, 302, 303, 307, 308):
            server = await self.serve(lambda call, code=code: Reply(code, b"", {"Location": f"{other.url}/inner"}))
            error = await self.refusal(self.client(server))
            self.assertEqual(error.reason, f"the answer is a redirect ({code}), which is not followed")
        self.assertEqual(other.calls, [])

    async def test_oversize(self) -> None:
        """A response longer than the limit is aborted."""
        server = await self.serve(lambda call: Reply(200, b"x" * 10_001))
        error = await self.refusal(self.client(server, limit=10_000))
        self.assertEqual(error.reason, "the answer is longer than 10000 bytes")

    async def test_endless(self) -> None:
        """A response without a length and a head without an end are limited, too."""
        for head in (b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n", b""):
            port = self.raw(head, b"X-Field: value\r\n" * 1000)
            error = await self.refusal(self.client_of(RESTConfig(url=f"http://127.0.0.1:{port}/")))
            self.assertRegex(error.reason, "headers exceeded|longer than|malformed")

    async def test_close_ends_calls(self) -> None:
        """Closing the client aborts pending calls."""
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
        self.assertEqual(error.reason, "context canceled")
