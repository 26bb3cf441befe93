"""Tests for L{kubetwist.server.workers.sessions}."""

from __future__ import annotations

from typing import Any

import orjson

from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.sessions import IDLE_TIMEOUT, SESSION_TIMEOUT, SessionAuthenticator, SessionStore
from kubetwist.authentication.signinlinks import SignInLinks
from kubetwist.server.workers.sessions import session_handlers, use_remote_sessions

USER = UserInfo("ann", "1", ("admins", "devs"), {"scopes": ("a", "b")})


class Request:
    """The part of a request that links use."""

    def __init__(self, host: str) -> None:
        self.client = IPv4Address("TCP", host, 1)
        self.fields: dict[bytes, list[bytes]] = {}


class SessionTests(SynchronousTestCase):
    """Tests for the sessions of two fronts."""

    def setUp(self) -> None:
        """Create a storage process, and two fronts."""
        self.clock = Clock()
        self.storage, self.one, self.other = (self.authenticator() for _ in range(3))
        handlers = session_handlers(self.storage)

        def call(name: str, *arguments: object) -> Deferred[Any]:
            return succeed(orjson.loads(orjson.dumps(handlers[name](*orjson.loads(orjson.dumps(arguments))))))

        for front in (self.one, self.other):
            use_remote_sessions(front, call)

    def authenticator(self) -> SessionAuthenticator:
        """Return the sessions of a process."""
        seconds = self.clock.seconds
        return SessionAuthenticator(SessionStore(seconds), lambda: b"cookie", lambda token: None, SignInLinks(seconds))

    def begin(self) -> tuple[bytes, bytes]:
        """Begin a session at one front."""
        session_id, csrf_token = self.successResultOf(self.one.sessions.begin("token", USER))
        return session_id.encode(), csrf_token.encode()

    def test_session(self) -> None:
        """A session that began at one front is found at the other one, with its user and its token."""
        session = self.successResultOf(self.other.sessions.find(*self.begin()))
        self.assertEqual((session.user, session.token), (USER, "token"))

    def test_remaining(self) -> None:
        """The other front knows when the session ends."""
        secrets = self.begin()
        self.clock.advance(100)
        self.assertEqual(self.successResultOf(self.other.sessions.remaining(*secrets)), IDLE_TIMEOUT - 100)
        self.assertIsNone(self.successResultOf(self.other.sessions.remaining(secrets[0], b"x")))

    def test_ticket(self) -> None:
        """A ticket that one front has issued is found at the other one, with the session and the target."""
        secrets = self.begin()
        target = "/api/v1/namespaces/default/pods/a:80/proxy/"
        ticket = self.successResultOf(self.one.tickets.issue(*secrets, target))
        session, found = self.successResultOf(self.other.tickets.find(ticket.encode()))
        self.assertEqual((session.user, session.token, found), (USER, "token", target))
        self.assertIsNone(self.successResultOf(self.other.tickets.find(b"\xff")))
        self.assertIsNone(self.successResultOf(self.one.tickets.issue(secrets[0], b"x", target)))

    def test_wrong_secret(self) -> None:
        """A session is not found with another CSRF token, nor with bytes that are no text."""
        session_id, _ = self.begin()
        for secret in (b"other", b"\xff"):
            self.assertIsNone(self.successResultOf(self.other.sessions.find(session_id, secret)))

    def test_end(self) -> None:
        """A session that ends at one front ends at the other one."""
        secrets = self.begin()
        self.successResultOf(self.other.sessions.end(*secrets))
        self.assertIsNone(self.successResultOf(self.one.sessions.find(*secrets)))

    def test_expiry(self) -> None:
        """A session expires at all fronts."""
        secrets = self.begin()
        self.clock.advance(SESSION_TIMEOUT)
        self.assertIsNone(self.successResultOf(self.one.sessions.find(*secrets)))

    def test_link(self) -> None:
        """A link of the storage process can be used once, at one of the fronts, on this machine."""
        links: Any = self.storage.links
        secret = links.issue(USER)
        local: Any = Request("127.0.0.1")
        remote: Any = Request("192.0.2.1")
        self.assertIsNone(self.one.links.redeem(secret, remote))
        self.assertEqual(self.successResultOf(self.one.links.redeem(secret, local)), USER)
        self.assertIsNone(self.successResultOf(self.other.links.redeem(secret, local)))

    def test_issued_link(self) -> None:
        """A link that one front has issued can be used at another one."""
        local: Any = Request("127.0.0.1")
        secret = self.successResultOf(self.one.links.issue(USER))
        self.assertEqual(self.successResultOf(self.other.links.redeem(secret, local)), USER)
