"""Tests for L{kubetwist.authentication.sessions}."""

from __future__ import annotations

from typing import Any

import jwt

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.errors import RequestRefused
from kubetwist.authentication.sessions import (
    IDLE_TIMEOUT,
    MAX_SESSIONS,
    MAX_SESSIONS_PER_USER,
    SESSION_TIMEOUT,
    SessionAuthenticator,
    SessionStore,
    pop_cookie,
    pop_csrf_protocol,
)
from kubetwist.authentication.signinlinks import SignInLinks
from kubetwist.authentication.union import TokenAuthentication
from kubetwist.interfaces import IAuthenticator

COOKIE = b"__Host-kubetwist-6443"


class Request:
    """The part of a request that the authenticator uses."""

    def __init__(self, method: bytes = b"GET", **fields: str) -> None:
        self.method = method
        self.fields = {name.replace("_", "-").encode(): [value.encode()] for name, value in fields.items()}
        self.connection = self
        self.certificate: Any = "some"

    def peer_certificates(self) -> list[Any]:
        """Return the client certificates of the connection."""
        return [self.certificate] if self.certificate is not None else []


class SessionsTests(SynchronousTestCase):
    """Tests for L{SessionStore}."""

    def setUp(self) -> None:
        """Create a store with a clock."""
        self.now = 1000.0
        self.sessions = SessionStore(lambda: self.now, lambda: self.now + 1_000_000)

    def result(self, secret: str, key: str) -> bool:
        """Return whether a session exists."""
        return self.sessions.find(secret.encode(), key.encode()) is not None

    def remaining(self, secrets: tuple[str, str]) -> float | None:
        """Return the seconds until a session ends."""
        return self.sessions.remaining(secrets[0].encode(), secrets[1].encode())

    def test_remaining(self) -> None:
        """A session ends without use, at the latest after 12 hours; to ask for its end is no use."""
        secrets = self.sessions.begin("t", UserInfo("alice"))
        self.assertEqual(self.remaining(secrets), IDLE_TIMEOUT)
        self.now += 60
        self.assertEqual(self.remaining(secrets), IDLE_TIMEOUT - 60)
        self.assertTrue(self.result(*secrets))
        self.assertEqual(self.remaining(secrets), IDLE_TIMEOUT)
        for _ in range(11):
            self.now += 3600
            self.assertTrue(self.result(*secrets))
        self.assertEqual(self.remaining(secrets), 3600 - 60)
        self.now += 3600
        self.assertIsNone(self.remaining(secrets))
        self.assertEqual(len(self.sessions), 0)

    def test_remaining_of_token(self) -> None:
        """A session ends with its token, whose expiry is a time of another clock."""
        expires = int(self.now) + 1_000_000 + 300
        token = jwt.encode({"exp": expires}, "key" * 12, algorithm="HS256")
        secrets = self.sessions.begin(token, UserInfo("alice"))
        self.assertEqual(self.remaining(secrets), 300)
        self.now += 301
        self.assertEqual(self.remaining(secrets), 0)

    def test_remaining_of_none(self) -> None:
        """Both secrets are needed to ask for the end of a session."""
        secret, key = self.sessions.begin("t", UserInfo("alice"))
        for pair in ((secret, "x"), ("x", key), (secret, key * 9)):
            self.assertIsNone(self.remaining(pair))

    def test_both(self) -> None:
        """A session is found by its id and its CSRF token together, not by one of them."""
        secret, key = self.sessions.begin("t", UserInfo("alice"))
        other_secret, other_key = self.sessions.begin("t", UserInfo("alice"))
        self.assertTrue(self.result(secret, key))
        for pair in (
            (secret, other_key),
            (other_secret, key),
            (secret, ""),
            ("", key),
            (key, secret),
            (secret, "é" * 99),
        ):
            self.assertFalse(self.result(*pair))
        self.assertTrue(self.result(other_secret, other_key))

    def test_end(self) -> None:
        """Ending a session requires both its id and its CSRF token."""
        secret, key = self.sessions.begin("t", UserInfo("alice"))
        self.sessions.end(secret.encode(), b"x")
        self.assertTrue(self.result(secret, key))
        self.sessions.end(secret.encode(), key.encode())
        self.assertFalse(self.result(secret, key))
        self.assertEqual(len(self.sessions), 0)

    def test_idle(self) -> None:
        """A session expires after two hours without requests."""
        secret, key = self.sessions.begin("t", UserInfo("alice"))
        self.now += IDLE_TIMEOUT - 1
        self.assertTrue(self.result(secret, key))
        self.now += IDLE_TIMEOUT
        self.assertFalse(self.result(secret, key))
        self.assertEqual(len(self.sessions), 0)

    def test_longest(self) -> None:
        """A session expires after twelve hours, also if it is used."""
        secret, key = self.sessions.begin("t", UserInfo("alice"))
        while self.now + IDLE_TIMEOUT / 2 < 1000 + SESSION_TIMEOUT:
            self.now += IDLE_TIMEOUT / 2
            self.assertTrue(self.result(secret, key))
        self.now = 1000 + SESSION_TIMEOUT
        self.assertFalse(self.result(secret, key))

    def test_bounded(self) -> None:
        """The number of sessions is limited per user and in total; the least recently used session is evicted."""
        first, *_, last = [self.sessions.begin("t", UserInfo("alice")) for _ in range(MAX_SESSIONS_PER_USER + 1)]
        self.assertEqual(len(self.sessions), MAX_SESSIONS_PER_USER)
        self.assertFalse(self.result(*first))
        for number in range(MAX_SESSIONS):
            self.assertTrue(self.result(*last))
            self.sessions.begin("t", UserInfo(f"user-{number}"))
        self.assertEqual(len(self.sessions), MAX_SESSIONS)

    def test_expired_are_evicted(self) -> None:
        """Expired sessions do not count towards the limits."""
        self.sessions.begin("t", UserInfo("alice"))
        self.now += IDLE_TIMEOUT
        self.sessions.begin("t", UserInfo("bob"))
        self.assertEqual(len(self.sessions), 1)


class AuthenticatorTests(SynchronousTestCase):
    """Tests for L{SessionAuthenticator}."""

    def setUp(self) -> None:
        """Begin a session."""
        self.finding: Any = TokenAuthentication(UserInfo("alice"))
        self.tokens: list[str] = []
        self.sessions = SessionStore(lambda: 0.0)
        self.links = SignInLinks(lambda: 0.0)
        self.authenticator = SessionAuthenticator(self.sessions, lambda: COOKIE, self.authenticate_token, self.links)
        self.secret, self.key = self.sessions.begin("the-token", UserInfo("alice"))
        self.cookie = f"{COOKIE.decode()}={self.secret}"

    def test_without_token(self) -> None:
        """A session that began with a sign-in link has the user of the link without a token authentication."""
        secret, key = self.sessions.begin("", UserInfo("root"))
        cookie = f"{COOKIE.decode()}={secret}"
        self.assertEqual(self.authenticate(cookie=cookie, x_kubetwist_ui=key).name, "root")
        self.assertEqual(self.tokens, [])

    def authenticate_token(self, token: str) -> Any:
        """Return the configured result."""
        self.tokens.append(token)
        return self.finding

    def authenticate(self, method: bytes = b"GET", **fields: str) -> Any:
        """Return the result for a request."""
        return self.authenticator.authenticate(Request(method, **fields))

    def test_interface(self) -> None:
        """The authenticator implements its interface."""
        verifyObject(IAuthenticator, self.authenticator)

    def test_token_authentication(self) -> None:
        """Each request authenticates the token of the session, synchronously or asynchronously."""
        user = self.authenticate(cookie=self.cookie, x_kubetwist_ui=self.key)
        self.assertEqual((user.name, self.tokens), ("alice", ["the-token"]))
        self.finding = succeed(TokenAuthentication(UserInfo("alice")))
        result: Deferred[UserInfo] = self.authenticate(cookie=self.cookie, x_kubetwist_ui=self.key)
        self.assertEqual(self.successResultOf(result).name, "alice")

    def test_revoked(self) -> None:
        """A session whose token has become invalid is rejected."""
        self.finding = TokenAuthentication(None, error="gone")
        with self.assertRaises(RequestRefused):
            self.authenticate(cookie=self.cookie, x_kubetwist_ui=self.key)

    def test_cookie_alone(self) -> None:
        """The cookie alone, which cross-site requests have too, does not authenticate a request."""
        self.assertIsNone(self.authenticate(cookie=self.cookie))
        self.assertIsNone(self.authenticate(x_kubetwist_ui=self.key))
        self.assertEqual(self.tokens, [])

    def test_wrong_key(self) -> None:
        """A request with a wrong CSRF token is rejected without calling further authenticators."""
        with self.assertRaises(RequestRefused):
            self.authenticate(cookie=self.cookie, x_kubetwist_ui="x")

    def test_cross_site(self) -> None:
        """A cross-site request with a session is rejected."""
        for site in ("cross-site", "same-site"):
            with self.assertRaises(RequestRefused):
                self.authenticate(cookie=self.cookie, x_kubetwist_ui=self.key, sec_fetch_site=site)
        self.assertIsNotNone(
            self.authenticate(cookie=self.cookie, x_kubetwist_ui=self.key, sec_fetch_site="same-origin")
        )

    def test_certificates(self) -> None:
        """A cross-site page cannot use the client certificate of a browser for writes or WebSockets."""
        for method in (b"POST", b"PUT", b"PATCH", b"DELETE"):
            with self.assertRaises(RequestRefused):
                self.authenticate(method, sec_fetch_site="cross-site")
            self.assertIsNone(self.authenticate(method, sec_fetch_site="same-origin"))
            self.assertIsNone(self.authenticate(method, sec_fetch_site="cross-site", authorization="Bearer x"))
            self.assertIsNone(self.authenticate(method))
        with self.assertRaises(RequestRefused):
            self.authenticate(sec_fetch_site="cross-site", upgrade="websocket")
        self.assertIsNone(self.authenticate(sec_fetch_site="cross-site"))

    def test_origins(self) -> None:
        """Without Sec-Fetch-Site, as in WebSocket handshakes of some browsers, the Origin is checked."""
        agent = "Mozilla/5.0 (X11; Linux x86_64)"
        there = {"host": "10.0.0.1:6443", "user_agent": agent}
        for origin in ("https://evil.example", "https://10.0.0.1", "null", "https://10.0.0.1:6443.evil.example"):
            with self.assertRaises(RequestRefused):
                self.authenticate(origin=origin, upgrade="websocket", **there)
            with self.assertRaises(RequestRefused):
                self.authenticate(b"POST", origin=origin, **there)
            with self.assertRaises(RequestRefused):
                self.authenticate(b"POST", cookie=self.cookie, x_kubetwist_ui=self.key, origin=origin, **there)
            self.assertIsNone(self.authenticate(origin=origin, **there))
            self.assertIsNone(self.authenticate(origin=origin, upgrade="websocket", authorization="Bearer x", **there))
            self.assertIsNone(
                self.authenticate(origin=origin, upgrade="websocket", host="10.0.0.1:6443", user_agent="Go")
            )
        self.assertIsNone(self.authenticate(origin="https://10.0.0.1:6443", upgrade="websocket", **there))
        # A cross-site page that has a token may use it: it has no other credentials.
        request = Request(origin="https://dashboard.example", upgrade="websocket", **there)
        request.certificate = None
        self.assertIsNone(self.authenticator.authenticate(request))

    def test_removed_from_headers(self) -> None:
        """Later handlers get neither the session cookie nor the CSRF token; other cookies are kept."""
        request = Request(cookie=f"a=b; {self.cookie}; c=d", x_kubetwist_ui=self.key)
        self.authenticator.authenticate(request)
        self.assertEqual(request.fields, {b"cookie": [b"a=b; c=d"]})
        request = Request(cookie=self.cookie, authorization="Bearer x")
        self.assertIsNone(self.authenticator.authenticate(request))
        self.assertEqual(request.fields, {b"authorization": [b"Bearer x"]})

    def handshake(self, protocols: str, **fields: str) -> Request:
        """Return the handshake of a WebSocket that a browser sends for a page of this server."""
        origin = {"origin": "https://10.0.0.1:6443", "host": "10.0.0.1:6443", "user_agent": "Mozilla/5.0"}
        protocol = {"sec_websocket_protocol": protocols}
        return Request(**{"upgrade": "websocket", "cookie": self.cookie} | origin | protocol | fields)

    def test_websocket(self) -> None:
        """The handshake of a WebSocket has the CSRF token in a subprotocol, which is removed."""
        request = self.handshake(f"csrf.kubetwist.dev.{self.key}, v5.channel.k8s.io")
        user: Any = self.authenticator.authenticate(request)
        self.assertEqual(user.name, "alice")
        self.assertEqual(request.fields[b"sec-websocket-protocol"], [b"v5.channel.k8s.io"])
        self.assertNotIn(b"cookie", request.fields)
        request = self.handshake("v5.channel.k8s.io")
        self.assertIsNone(self.authenticator.authenticate(request))

    def test_websocket_refused(self) -> None:
        """A handshake needs the cookie, the right CSRF token and the origin of this server."""
        protocols = f"csrf.kubetwist.dev.{self.key}, v5.channel.k8s.io"
        for origin in ("https://evil.example", "null", "https://10.0.0.1", "https://10.0.0.1:6443.evil.example"):
            request = self.handshake(protocols, origin=origin)
            request.certificate = None
            with self.assertRaises(RequestRefused):
                self.authenticator.authenticate(request)
        for site in ("cross-site", "same-site"):
            with self.assertRaises(RequestRefused):
                self.authenticator.authenticate(self.handshake(protocols, sec_fetch_site=site))
        with self.assertRaises(RequestRefused):
            self.authenticator.authenticate(self.handshake("csrf.kubetwist.dev.x, v5.channel.k8s.io"))
        request = self.handshake(protocols)
        del request.fields[b"origin"]
        self.assertIsNone(self.authenticator.authenticate(request))
        request = self.handshake(protocols)
        del request.fields[b"cookie"]
        self.assertIsNone(self.authenticator.authenticate(request))
        # The CSRF token is removed also if the request has other credentials, and may be forwarded.
        self.assertEqual(request.fields[b"sec-websocket-protocol"], [b"v5.channel.k8s.io"])
        self.assertEqual(self.tokens, [])

    def test_protocol(self) -> None:
        """The subprotocol is only used in the handshake of a WebSocket, and only once."""
        for protocols, upgrade in (
            (b"csrf.kubetwist.dev.a", b"h2c"),
            (b"csrf.kubetwist.dev.a, csrf.kubetwist.dev.b", b"websocket"),
        ):
            fields = {b"sec-websocket-protocol": [protocols], b"upgrade": [upgrade]}
            self.assertIsNone(pop_csrf_protocol(fields))
            self.assertEqual(fields, {b"upgrade": [upgrade]})
        fields = {b"sec-websocket-protocol": [b"csrf.kubetwist.dev.a", b"x"], b"upgrade": [b"WebSocket"]}
        self.assertEqual(pop_csrf_protocol(fields), b"a")
        self.assertEqual(fields[b"sec-websocket-protocol"], [b"x"])

    def test_repeated_cookie(self) -> None:
        """A repeated cookie is ignored."""
        fields = {b"cookie": [b"k=1; k=2"]}
        self.assertIsNone(pop_cookie(fields, b"k"))
        self.assertEqual(fields, {})
        fields = {b"cookie": [b"kk=1", b"x=k"]}
        self.assertIsNone(pop_cookie(fields, b"k"))
        self.assertEqual(b"; ".join(fields[b"cookie"]), b"kk=1; x=k")
