"""Tests for L{kubetwist.authentication.signinlinks}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.signinlinks import LIFETIME, MAX_LINKS, SignInLinks, is_local, sign_in_url

ALICE = UserInfo("alice")


def request(host: Any = "127.0.0.1", *fields: bytes) -> Any:
    """Return a request of a client with some header fields."""
    return SimpleNamespace(client=SimpleNamespace(host=host), fields={key: [b"x"] for key in fields})


class LinkTests(SynchronousTestCase):
    """Tests for L{SignInLinks}."""

    def setUp(self) -> None:
        """Create a clock and links."""
        self.clock = Clock()
        self.links = SignInLinks(self.clock.seconds)

    def test_once(self) -> None:
        """A link can be used once."""
        secret = self.links.issue(ALICE)
        self.assertEqual(self.links.redeem(secret, request()), ALICE)
        self.assertIsNone(self.links.redeem(secret, request()))

    def test_expires(self) -> None:
        """A link expires after 15 minutes."""
        valid, late = self.links.issue(ALICE), self.links.issue(ALICE)
        self.clock.advance(LIFETIME - 1)
        self.assertEqual(self.links.redeem(valid, request()), ALICE)
        self.clock.advance(1)
        self.assertIsNone(self.links.redeem(late, request()))

    def test_unknown(self) -> None:
        """Unknown secrets of any length and content are rejected."""
        self.links.issue(ALICE)
        for secret in ("", "x", "x" * 10_000, "\ud800"):
            self.assertIsNone(self.links.redeem(secret, request()))

    def test_many(self) -> None:
        """The number of unused links is limited; expired ones are forgotten first."""
        expired = self.links.issue(ALICE)
        self.clock.advance(LIFETIME)
        secrets = [self.links.issue(ALICE) for _ in range(MAX_LINKS + 1)]
        self.assertEqual(len(self.links._links), MAX_LINKS)
        self.assertIsNone(self.links.redeem(expired, request()))
        self.assertIsNone(self.links.redeem(secrets[0], request()))
        self.assertEqual(self.links.redeem(secrets[1], request()), ALICE)

    def test_elsewhere(self) -> None:
        """A client on another machine cannot use a link, and the link stays valid."""
        secret = self.links.issue(ALICE)
        self.assertIsNone(self.links.redeem(secret, request("10.0.0.1")))
        self.assertEqual(self.links.redeem(secret, request()), ALICE)

    def test_local(self) -> None:
        """A client is local if its address is a loopback address and no proxy has forwarded the request."""
        for host, local in (("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("10.0.0.1", False)):
            self.assertIs(is_local(request(host)), local, host)
        for host in (None, "", "localhost", "/run/socket"):
            self.assertFalse(is_local(request(host)), host)
        for field in (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"):
            self.assertFalse(is_local(request("127.0.0.1", field)), field)


class URLTests(SynchronousTestCase):
    """Tests for L{sign_in_url}."""

    def test_hosts(self) -> None:
        """The URL is for a browser on the machine of the server."""
        for address, host in (
            ("0.0.0.0", "127.0.0.1"),
            ("::", "[::1]"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "[::1]"),
            ("192.0.2.1", "192.0.2.1"),
        ):
            self.assertEqual(sign_in_url(address, 6443, "x"), f"https://{host}:6443/ui/#sign-in=x")
