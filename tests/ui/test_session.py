"""Tests for L{kubetwist.ui.session}: audit events of sign-in and sign-out; further tests are in C{test_page.py}."""

from __future__ import annotations

import json
from typing import Any

from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.audit.auditedrequest import audited_request
from kubetwist.audit.auditor import Auditor
from kubetwist.audit.errors import Counts
from kubetwist.audit.policy import read_policy
from kubetwist.authentication.sessions import SessionAuthenticator, SessionStore
from kubetwist.authentication.signinlinks import LIFETIME, SignInLinks
from kubetwist.authentication.union import TokenAuthentication
from kubetwist.ui.page import with_ui

from ..audit.events import RecordingBackend
from ..http.harness import (
    Answer,
    Client,
    echo,
    make_site,
)

ALICE = UserInfo("alice", groups=("qa",))


class AuditTests(SynchronousTestCase):
    """Sign-in and sign-out are audited like non-resource requests."""

    def make(self, level: str = "RequestResponse", *, strict: bool = False) -> None:
        """Create a server whose audit policy has one rule."""
        self.kept = RecordingBackend(waits=strict)
        rules = [{"level": level}]
        policy = json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}).encode()
        auditor = Auditor(read_policy(policy), [self.kept], strict, Counts())
        self.good = {"good"}
        self.sessions = SessionStore(Clock().seconds)
        self.clock = Clock()
        self.links = SignInLinks(self.clock.seconds)
        authenticator = SessionAuthenticator(self.sessions, lambda: b"__Host-c", self.authenticate_token, self.links)
        self.site = make_site(with_ui(echo, authenticator, Clock(), auditor=auditor))
        site: Any = self.site
        site.requestFactory = audited_request(auditor)

    def authenticate_token(self, token: str) -> Any:
        """Authenticate valid tokens as Alice."""
        return TokenAuthentication(ALICE if token in self.good else None)

    def sign_in(self, token: str = "good", client: Client | None = None) -> Answer:
        """Send a sign-in request."""
        body = json.dumps({"token": token}).encode()
        headers = {"Content_Type": "application/json", "X_Kubetwist_UI": "1"}
        return (client or Client(self.site)).request("POST", "/ui/session", body, **headers)

    def sign_out(self, signed_in: Answer) -> Answer:
        """Send a sign-out request."""
        cookie = (signed_in.header("Set-Cookie") or "").partition(";")[0]
        key = json.loads(signed_in.body)["key"]
        return Client(self.site).request("DELETE", "/ui/session", Cookie=cookie, X_Kubetwist_UI=key)

    def audit_summary(self) -> list[tuple[Any, ...]]:
        """Return a summary of the audit events."""
        events = [json.loads(event.json()) for event in self.kept.events]
        return [
            (one["stage"], one["verb"], one.get("user", {}).get("username"), one.get("responseStatus", {}).get("code"))
            for one in events
        ]

    def test_in_and_out(self) -> None:
        """Sign-in and sign-out are audited with the user, and with the audit id of the response."""
        self.make()
        signed_in = self.sign_in()
        self.assertEqual(signed_in.code, 201)
        self.assertEqual(self.sign_out(signed_in).code, 204)
        self.assertEqual(
            self.audit_summary(),
            [
                ("RequestReceived", "post", "alice", None),
                ("ResponseComplete", "post", "alice", 201),
                ("RequestReceived", "delete", "alice", None),
                ("ResponseComplete", "delete", "alice", 204),
            ],
        )
        first = json.loads(self.kept.events[0].json())
        self.assertEqual((first["requestURI"], first["user"]["groups"]), ("/ui/session", ["qa"]))
        self.assertEqual(first["auditID"], signed_in.header("Audit-Id"))

    def test_secrets(self) -> None:
        """Token, key and cookie are not audited at any level."""
        self.make("RequestResponse")
        signed_in = self.sign_in()
        self.sign_in("unknown-to-all")
        self.sign_out(signed_in)
        logged = "".join(event.json().decode() for event in self.kept.events)
        cookie = (signed_in.header("Set-Cookie") or "").partition(";")[0].partition("=")[2]
        self.assertGreater(len(cookie), 20)
        for secret in (cookie, json.loads(signed_in.body)["key"], '"good"', "unknown-to-all"):
            self.assertNotIn(secret, logged)

    def test_refused(self) -> None:
        """Invalid tokens, and requests that were not sent by the page, are audited."""
        self.make()
        self.assertEqual(self.sign_in("bad").code, 401)
        self.assertEqual(Client(self.site).request("POST", "/ui/session", b"{}").code, 400)
        self.assertEqual(
            self.audit_summary(), [("ResponseStarted", "post", None, 401), ("ResponseStarted", "post", None, 400)]
        )

    def test_policy(self) -> None:
        """The policy can exclude these requests."""
        self.make("None")
        self.assertEqual(self.sign_in().code, 201)
        self.assertEqual(self.audit_summary(), [])

    def follow(self, secret: str, peer: str = "127.0.0.1", **headers: str) -> Answer:
        """Sign in with a link, as a client at the address C{peer}."""
        body = json.dumps({"link": secret}).encode()
        client = Client(self.site)
        client.transport.peerAddr = IPv4Address("TCP", peer, 50000)
        return client.request(
            "POST", "/ui/session", body, Content_Type="application/json", X_Kubetwist_UI="1", **headers
        )

    def test_link_works_once(self) -> None:
        """A link signs in once; its secret is not part of the audit event."""
        self.make()
        secret = self.links.issue(ALICE)
        self.assertEqual([self.follow(secret).code, self.follow(secret).code], [201, 401])
        self.assertEqual(self.audit_summary()[0], ("RequestReceived", "post", "alice", None))
        self.assertNotIn(secret, "".join(event.json().decode() for event in self.kept.events))

    def test_link_expires(self) -> None:
        """An expired link is rejected."""
        self.make()
        secret = self.links.issue(ALICE)
        self.clock.advance(LIFETIME)
        self.assertEqual(self.follow(secret).code, 401)

    def test_link_from_elsewhere(self) -> None:
        """A link is rejected if the request comes through a proxy or from another machine."""
        self.make()
        secret = self.links.issue(ALICE)
        self.assertEqual(self.follow(secret, X_Forwarded_For="192.0.2.1").code, 401)
        self.assertEqual(self.follow(secret, peer="192.0.2.1").code, 401)
        self.assertEqual(self.follow("unknown").code, 401)
        self.assertEqual(self.follow(secret).code, 201)

    def test_link_sign_out(self) -> None:
        """A session that began with a link can be signed out."""
        self.make()
        self.assertEqual(self.sign_out(self.follow(self.links.issue(ALICE))).code, 204)
        self.assertEqual(len(self.sessions), 0)

    def test_files(self) -> None:
        """Requests for the files of the page are not audited."""
        self.make()
        Client(self.site).request("GET", "/ui")
        self.assertEqual(self.audit_summary(), [])

    def test_unwritten(self) -> None:
        """In blocking-strict mode sign-in fails if its audit event cannot be written."""
        self.make(strict=True)
        client = Client(self.site)
        with self.assertRaises(ValueError):
            self.sign_in(client=client)
        self.kept.answer(fine=False)
        (answer,) = client.answers()
        self.assertEqual((answer.code, len(self.sessions)), (500, 0))

    def test_token_no_more_good(self) -> None:
        """
        A sign-out is audited with the user even if the token has become invalid; without a session it is not audited.
        """
        self.make()
        signed_in = self.sign_in()
        self.good.clear()
        self.kept.events.clear()
        self.assertEqual(self.sign_out(signed_in).code, 204)
        self.assertEqual(self.audit_summary()[-1], ("ResponseComplete", "delete", "alice", 204))
        self.assertEqual(len(self.sessions), 0)
        self.kept.events.clear()
        self.assertEqual(self.sign_out(signed_in).code, 204)
        self.assertEqual(self.audit_summary(), [])
