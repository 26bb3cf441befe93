"""Tests of L{kubetwist.http.connection.bodyshares}: when large bodies are read, and the memory per client."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.http.connection.bodyshares import (
    ANONYMOUS_SHARE,
    BODY_GRACE,
    BODY_RATE,
    MAX_BODY,
    SMALL_BODY,
    BodyShares,
)
from kubetwist.http.request import KubeRequest

from ..harness import Allow, Client, Everyone, echo, filtered_site

ANONYMOUS = UserInfo("system:anonymous", groups=("system:unauthenticated",))
PATH = "/api/v1/namespaces/default/configmaps"


def head(length: int | None, *fields: str) -> bytes:
    """Return the head of a request with a body of a size, or in chunks."""
    size = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return "\r\n".join([f"POST {PATH} HTTP/1.1", "Host: x", size, *fields, "", ""]).encode()


class Waiting:
    """An authenticator whose result is set by the test."""

    def __init__(self) -> None:
        self.answer: Deferred[Any] = Deferred()

    def authenticate(self, request: Any) -> Any:
        """Return the pending result."""
        return self.answer


class HeadTests(SynchronousTestCase):
    """Requests with large bodies are authorized by their heads."""

    def client(self, authorizer: Allow | None = None, user: UserInfo | None = None, **options: Any) -> Client:
        """Return a connection to a site with all filters."""
        self.site = filtered_site(
            authorizer=authorizer, authenticator=options.pop("authenticator", Everyone(user)), **options
        )
        return Client(self.site)

    def refusing(self) -> Allow:
        """Return an authorizer that denies creation."""
        authorizer = Allow()
        authorizer.refused.add("create")
        return authorizer

    def test_anonymous_bodies_are_not_buffered(self) -> None:
        """A client without permission is refused by the head, and no memory is reserved."""
        for length, sent in ((MAX_BODY, 0), (MAX_BODY, 50_000), (SMALL_BODY + 1, 10)):
            client = self.client(self.refusing(), ANONYMOUS)
            client.send(head(length) + b"x" * sent)
            (answer,) = client.answers()
            self.assertEqual((answer.code, answer.header("connection")), (403, "close"))
            self.assertEqual((self.site.connections.bodies.used, len(client.channel._body)), (0, 0))
            client.send(b"x" * (length - sent))
            self.assertEqual((client.answers(), client.transport.disconnecting), ([], True))

    def test_unauthenticated_body(self) -> None:
        """A client with wrong credentials is refused by the head."""

        class Unknown:
            def authenticate(self, request: Any) -> Any:
                return None

        client = self.client(authenticator=Unknown())
        client.send(head(MAX_BODY))
        (answer,) = client.answers()
        self.assertEqual(answer.code, 401)

    def test_chunks(self) -> None:
        """A body in chunks is authorized when it is larger than a small one."""
        client = self.client(self.refusing(), ANONYMOUS)
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        client.send(head(None) + chunk * 3)
        self.assertEqual(client.answers(), [])
        client.send(chunk * 2)
        (answer,) = client.answers()
        self.assertEqual((answer.code, len(client.channel._body)), (403, 0))

    def test_not_read_before_authentication(self) -> None:
        """A large body is not read during authentication."""
        authenticator = Waiting()
        client = self.client(authenticator=authenticator)
        body = b"y" * (SMALL_BODY * 2)
        client.send(head(len(body)) + body[:1000])
        self.assertEqual((client.transport.producerState, self.site.connections.bodies.used), ("paused", 0))
        authenticator.answer.callback(UserInfo("alice"))
        self.assertEqual((client.transport.producerState, self.site.connections.bodies.used), ("producing", len(body)))
        client.send(body[1000:])
        (answer,) = client.answers()
        self.assertEqual((answer.code, answer.body), (200, b"POST " + PATH.encode() + b" " + body))
        self.assertEqual(self.site.connections.bodies.used, 0)
        self.assertFalse(client.transport.disconnecting)
        self.assertTrue(client.channel.persistent)

    def test_complete_before_authentication(self) -> None:
        """A large body that arrives before the client is authenticated is served like any other."""
        authenticator = Waiting()
        client = self.client(authenticator=authenticator)
        body = b"y" * (SMALL_BODY * 2)
        client.send(head(len(body)) + body[:-1])
        client.send(body[-1:])
        authenticator.answer.callback(UserInfo("alice"))
        (answer,) = client.answers()
        self.assertEqual(answer.body, b"POST " + PATH.encode() + b" " + body)

    def test_expect(self) -> None:
        """100 Continue is sent when the body may be sent, and not otherwise."""
        client = self.client(self.refusing())
        client.send(head(10, "Expect: 100-continue"))
        self.assertTrue(client.transport.value().startswith(b"HTTP/1.1 403 "))
        client = self.client()
        client.send(head(2, "Expect: 100-continue"))
        self.assertEqual(client.transport.value(), b"HTTP/1.1 100 Continue\r\n\r\n")
        client.send(b"ok")
        self.assertEqual(client.answers()[-1].code, 200)
        self.assertEqual(self.site.connections.bodies.used, 0)

    def test_authorized_once(self) -> None:
        """A request with a large body is authorized once."""
        authorizer = Allow()
        client = self.client(authorizer)
        client.send(head(SMALL_BODY + 1))
        client.send(b"x" * (SMALL_BODY + 1))
        self.assertEqual((client.answers()[0].code, len(authorizer.asked)), (200, 1))

    def test_too_large_in_chunks(self) -> None:
        """A body in chunks that exceeds the limit is answered with 413, and dropped."""
        seen: list[int] = []

        def handle(request: KubeRequest) -> None:
            seen.append(request.body_too_large)
            request.respond(413, b"", b"text/plain")

        client = self.client(handle=handle)
        client.send(head(None))
        for _ in range(MAX_BODY // 0x10000 + 1):
            client.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        (answer,) = client.answers()
        self.assertEqual((answer.code, seen, self.site.connections.bodies.used), (413, [True], 0))

    def test_small_bodies_always_accepted(self) -> None:
        """
        A body of 64 KiB is accepted when the memory for large bodies is used up; a larger one is answered with 429.
        """
        client = self.client()
        self.site.connections.bodies.limit = 0
        answer = client.request("POST", PATH, b"x" * SMALL_BODY)
        self.assertEqual(answer.code, 200)
        client.send(head(SMALL_BODY + 1))
        (answer,) = client.answers()
        self.assertEqual((answer.code, answer.header("retry-after"), answer.header("connection")), (429, "1", "close"))

    def test_room_runs_out(self) -> None:
        """A body in chunks that exceeds the free memory is answered with 429."""
        client = self.client()
        self.site.connections.bodies.limit = 4 * SMALL_BODY
        chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
        client.send(head(None) + chunk * 5)
        self.assertEqual((client.answers(), self.site.connections.bodies.used), ([], 5 * 0x4000))
        client.send(chunk * 12)
        (answer,) = client.answers()
        self.assertEqual((answer.code, answer.header("retry-after"), self.site.connections.bodies.used), (429, "1", 0))

    def test_lost(self) -> None:
        """A client that disconnects within a large body leaves no reservation and gets no response."""
        handled: list[KubeRequest] = []
        client = self.client(handle=handled.append)
        client.send(head(MAX_BODY) + b"x" * 500)
        self.assertEqual(self.site.connections.bodies.used, MAX_BODY)
        client.channel.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((self.site.connections.bodies.used, self.site.open_requests, handled), (0, set(), []))

    def test_reserved_until_response(self) -> None:
        """A large body is counted until its request is answered."""
        handled: list[KubeRequest] = []
        client = self.client(handle=handled.append)
        client.send(head(SMALL_BODY * 2) + b"x" * SMALL_BODY)
        client.send(b"x" * SMALL_BODY)
        self.assertEqual(self.site.connections.bodies.used, 2 * SMALL_BODY)
        echo(handled[0])
        self.assertEqual(self.site.connections.bodies.used, 0)

    def test_minimum_rate(self) -> None:
        """A large body below the minimum transfer rate releases its reservation."""
        clock = Clock()
        client = self.client(clock=clock)
        client.send(head(MAX_BODY))
        for _ in range(int(BODY_GRACE) + 5):
            client.send(b"x" * (BODY_RATE // 8))
            clock.advance(1)
        (answer,) = client.answers()
        self.assertEqual((answer.code, self.site.connections.bodies.used, self.site.open_requests), (408, 0, set()))


class ShareTests(SynchronousTestCase):
    """L{BodyShares}."""

    def test_one_client(self) -> None:
        """A single client gets half of all bytes, so that others get some."""
        shares = BodyShares(1000)
        self.assertTrue(shares.reserve("a", 500))
        self.assertFalse(shares.reserve("a", 1))
        self.assertTrue(shares.reserve("b", 250))
        self.assertTrue(shares.reserve("c", 125))

    def test_anonymous(self) -> None:
        """Clients without credentials share an eighth of the bytes, from any number of addresses."""
        shares = BodyShares(8000)
        taken = sum(shares.reserve(f"address {number}", 100, anonymous=True) for number in range(50))
        self.assertEqual(taken * 100, 8000 * ANONYMOUS_SHARE)
        self.assertTrue(shares.reserve("alice", 3000))
        shares.release("address 0", 100, anonymous=True)
        self.assertTrue(shares.reserve("address 60", 100, anonymous=True))

    @given(
        st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 400), st.booleans()), max_size=40),
    )
    def test_bounded(self, steps: list[tuple[str, int, bool]]) -> None:
        """The total is never exceeded, and is zero after all releases."""
        shares = BodyShares(1000)
        reservations = []
        for client, size, anonymous in steps:
            if shares.reserve(client, size, anonymous=anonymous):
                reservations.append((client, size, anonymous))
            self.assertEqual(shares.used, sum(size for _, size, _ in reservations))
            self.assertLessEqual(shares.used, 1000)
        for client, size, anonymous in reservations:
            shares.release(client, size, anonymous=anonymous)
        self.assertEqual((shares.used, shares._held, shares._anonymous), (0, {}, 0))
