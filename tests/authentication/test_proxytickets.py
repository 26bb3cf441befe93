"""Tests for L{kubetwist.authentication.proxytickets}."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.proxytickets import MAX_TICKETS, TICKET_LIFETIME, ProxyTickets, is_target
from kubetwist.authentication.sessions import IDLE_TIMEOUT, SessionStore

TARGET = "/api/v1/namespaces/default/services/web:80/proxy/"


class TicketTests(SynchronousTestCase):
    """Tests for L{ProxyTickets}."""

    def setUp(self) -> None:
        """Begin a session."""
        self.now = 1000.0
        self.sessions = SessionStore(lambda: self.now)
        self.tickets = ProxyTickets(self.sessions)
        self.session_id, self.key = (secret.encode() for secret in self.sessions.begin("t", UserInfo("alice")))

    def issue(self, target: str = TARGET) -> bytes:
        """Issue a ticket."""
        ticket = self.tickets.issue(self.session_id, self.key, target)
        assert ticket is not None
        return ticket.encode()

    def test_find(self) -> None:
        """A ticket has its session and its target; each ticket is another one."""
        one, other = self.issue(), self.issue(TARGET.replace("web", "api"))
        found = self.tickets.find(one)
        assert isinstance(found, tuple)
        self.assertEqual((found[0].user.name, found[1]), ("alice", TARGET))
        self.assertNotEqual(one, other)
        for wrong in (b"", b"x", self.session_id, self.key, one + b"x", b"x" * 10_000, b"\xff"):
            self.assertIsNone(self.tickets.find(wrong))

    def test_session(self) -> None:
        """A ticket is issued to a session only, and ends with it."""
        self.assertIsNone(self.tickets.issue(self.session_id, b"x", TARGET))
        self.assertIsNone(self.tickets.issue(b"x", self.key, TARGET))
        ticket = self.issue()
        self.sessions.end(self.session_id, self.key)
        self.assertIsNone(self.tickets.find(ticket))

    def test_expiry(self) -> None:
        """A ticket expires, and its use does not prolong its session."""
        ticket = self.issue()
        self.now += TICKET_LIFETIME - 1
        self.assertIsNotNone(self.tickets.find(ticket))
        self.now += 1
        self.assertIsNone(self.tickets.find(ticket))
        ticket = self.issue()
        self.now += TICKET_LIFETIME - 1
        self.tickets.find(ticket)
        self.now += IDLE_TIMEOUT - TICKET_LIFETIME + 1
        self.assertIsNone(self.sessions.find(self.session_id, self.key))

    def test_refresh(self) -> None:
        """The token of the session is refreshed first if it has expired."""
        session_id, key = (secret.encode() for secret in self.sessions.begin("t", UserInfo("bob"), "refresh"))
        ticket = self.tickets.issue(session_id, key, TARGET)
        assert ticket is not None
        refreshing: Deferred[None] = Deferred()
        self.sessions.refresh = lambda session: refreshing
        found = self.tickets.find(ticket.encode())
        assert isinstance(found, Deferred)
        self.assertNoResult(found)
        refreshing.callback(None)
        session, target = self.successResultOf(found)
        self.assertEqual((session.user.name, target), ("bob", TARGET))

    def test_bounded(self) -> None:
        """A session has a limited number of tickets, and evicts none of another session; expired ones are removed."""
        session_id, key = (secret.encode() for secret in self.sessions.begin("t", UserInfo("bob")))
        other = self.tickets.issue(session_id, key, TARGET)
        assert other is not None
        first = self.issue()
        for _ in range(MAX_TICKETS):
            self.issue()
        self.assertEqual(len(self.tickets), MAX_TICKETS + 1)
        self.assertIsNone(self.tickets.find(first))
        self.assertIsNotNone(self.tickets.find(other.encode()))
        self.now += TICKET_LIFETIME
        self.issue()
        self.assertEqual(len(self.tickets), 1)

    def test_targets(self) -> None:
        """Only the proxy of a port of a pod or service is a target."""
        self.assertTrue(is_target(TARGET))
        self.assertTrue(is_target("/api/v1/namespaces/a/pods/https:web-0.x:http/proxy/"))
        for path in (
            "/api/v1/nodes/one:80/proxy/",
            "/api/v1/namespaces/default/secrets/web:80/proxy/",
            "/api/v1/namespaces/default/services/web/proxy/",
            TARGET + "x",
            TARGET[:-1],
            TARGET + "\n",
            TARGET.replace("web", ".."),
            TARGET.replace("web", "we/b"),
            TARGET.replace("web", "we%2fb"),
            TARGET.replace("web", "ftp:web"),
            TARGET.replace("default", "a/../b"),
            TARGET + "?x",
        ):
            self.assertFalse(is_target(path), path)
