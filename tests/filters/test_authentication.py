"""Tests of L{kubetwist.filters.authentication}."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import formatEvent, globalLogPublisher
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.errors import AuthenticationFailed
from kubetwist.filters.authentication import LINES_PER_SECOND, with_authentication
from kubetwist.http.request import KubeRequest
from tests.filters.answers import PODS, FixedResult
from tests.http.harness import Client, Everyone, filtered_site, make_site


class AuthenticationTests(SynchronousTestCase):
    """C{with_authentication}."""

    def setUp(self) -> None:
        """Create a list of the users of handled requests."""
        self.users: list[UserInfo | None] = []

    def handle(self, request: KubeRequest) -> None:
        """Record the user, and answer."""
        self.users.append(request.user)
        request.respond(200, b"", b"text/plain")

    def ask(self, authenticator: Any) -> Any:
        """Send a request to a site with one authenticator."""
        return Client(filtered_site(self.handle, authenticator=authenticator)).request("GET", PODS)

    def assert_refused(self, authenticator: Any) -> None:
        """Assert that a request is answered with a 401 without a reason."""
        answer = self.ask(authenticator)
        self.assertEqual(
            (answer.code, json.loads(answer.body)),
            (
                401,
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Failure",
                    "message": "Unauthorized",
                    "reason": "Unauthorized",
                    "code": 401,
                },
            ),
        )
        self.assertIsNone(answer.header("x-content-type-options"))
        self.assertEqual(self.users, [])

    def test_known(self) -> None:
        """The handler sees the user of a synchronous and of an asynchronous authenticator."""
        user = UserInfo("alice")
        for authenticator in (Everyone(user), FixedResult(succeed(user))):
            self.assertEqual(self.ask(authenticator).code, 200)
        self.assertEqual(self.users, [user, user])

    def test_unknown(self) -> None:
        """A request without a user is answered with 401."""
        self.assert_refused(FixedResult(None))
        self.assert_refused(FixedResult(succeed(None)))

    def test_bad(self) -> None:
        """A request with bad credentials is answered with a 401 without a reason."""
        self.assert_refused(FixedResult(AuthenticationFailed("secret")))
        self.assert_refused(FixedResult(fail(AuthenticationFailed("secret"))))

    def test_logged(self) -> None:
        """The reason is logged in one line with the audit id; further lines of a flood are counted."""
        logged: list[str] = []

        def observe(event: Any) -> None:
            logged.append(formatEvent(event))

        globalLogPublisher.addObserver(observe)
        self.addCleanup(globalLogPublisher.removeObserver, observe)
        now = 0.0
        bad = FixedResult(AuthenticationFailed("bad\nline " + "x" * 2000))
        handler = with_authentication(self.handle, bad, (frozenset(), ()), lambda: now)

        def named(request: KubeRequest) -> None:
            request.audit_id = "id-1"
            handler(request)

        client = Client(make_site(named))
        for _ in range(150):
            client.request("GET", PODS)
        self.assertEqual(len(logged), LINES_PER_SECOND)
        self.assertIn("unable to authenticate a request (id-1): bad line xxx", logged[0])
        self.assertLess(len(logged[0]), 1100)
        now = 1.0
        client.request("GET", PODS)
        self.assertIn("rate limit: 50 requests with bad credentials were not logged", logged[-2])
        self.assertEqual(len(logged), LINES_PER_SECOND + 2)

    def test_credentials(self) -> None:
        """CVE-2019-16276: credentials and headers of proxies are removed before the handler, in every spelling."""
        seen: dict[bytes, Any] = {}

        def handle(request: KubeRequest) -> None:
            seen.update(request.fields)
            self.handle(request)

        protocol = "base64url.bearer.authorization.k8s.io.YQ"
        client = Client(filtered_site(handle, authenticator=FixedResult(UserInfo("alice"))))
        client.request(
            "GET",
            PODS,
            Authorization="Bearer secret",
            X_Remote_User="root",
            X_Remote_Extra_Scopes="all",
            Sec_WebSocket_Protocol=f"v5.channel.k8s.io, {protocol}",
            X_Other="kept",
        )
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX_Remote_Group: system:masters\r\nX-Remote_Extra-A: b\r\n\r\n")
        self.assertEqual(set(seen), {b"host", b"sec-websocket-protocol", b"x-other"})
        self.assertEqual(seen[b"sec-websocket-protocol"], [b"v5.channel.k8s.io"])

    def test_disconnected(self) -> None:
        """A request whose client disconnects during authentication is not handled."""
        later: Deferred[UserInfo] = Deferred()
        client = Client(filtered_site(self.handle, authenticator=FixedResult(later)))
        client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        client.channel.connectionLost(RuntimeError("gone"))
        later.callback(UserInfo("alice"))
        self.assertEqual(self.users, [])
