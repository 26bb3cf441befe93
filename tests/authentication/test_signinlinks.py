"""Tests for L{kubetwist.authentication.signinlinks}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import UserInfo
from kubetwist.authentication.signinlinks import LIFETIME, SignInLinks, is_local

ALICE = UserInfo("alice")


def request(host: Any = "127.0.0.1", *fields: bytes) -> Any:
    """A request of a client with some header fields."""
    return SimpleNamespace(client=SimpleNamespace(host=host), fields={key: [b"x"] for key in fields})


class LinkTests(SynchronousTestCase):
    """Tests for L{SignInLinks}."""

    def setUp(self) -> None:
        """Have a clock and links."""
        self.clock = Clock()
        self.links = SignInLinks(self.clock.seconds)

    def test_once(self) -> None:
        """A link signs in once."""
        secret = self.links.issue(ALICE)
        self.assertEqual(self.links.redeem(secret, request()), ALICE)
        self.assertIsNone(self.links.redeem(secret, request()))

    def test_expires(self) -> None:
        """A link is good for 15 minutes."""
        good, late = self.links.issue(ALICE), self.links.issue(ALICE)
        self.clock.advance(LIFETIME - 1)
        self.assertEqual(self.links.redeem(good, request()), ALICE)
        self.clock.advance(1)
        self.assertIsNone(self.links.redeem(late, request()))

    def test_unknown(self) -> None:
        """Other texts sign nobody in, be they long or no text at all."""
        self.links.issue(ALICE)
        for secret in ("", "x", "x" * 10_000, "\ud800"):
            self.assertIsNone(self.links.redeem(secret, request()))

    def test_elsewhere(self) -> None:
        """A client on another machine gets nothing, and the link stays good."""
        secret = self.links.issue(ALICE)
        self.assertIsNone(self.links.redeem(secret, request("10.0.0.1")))
        self.assertEqual(self.links.redeem(secret, request()), ALICE)

    def test_local(self) -> None:
        """A client is local if its address is a loopback one and no proxy has passed the request on."""
        for host, local in (("127.0.0.1", True), ("127.8.9.1", True), ("::1", True), ("10.0.0.1", False)):
            self.assertIs(is_local(request(host)), local, host)
        for host in (None, "", "localhost", "/run/socket"):
            self.assertFalse(is_local(request(host)), host)
        for field in (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via"):
            self.assertFalse(is_local(request("127.0.0.1", field)), field)
