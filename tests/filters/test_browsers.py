"""Tests for L{kubetwist.filters.browsers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.browsers import with_cors, with_hsts
from tests.http.harness import Client, echo, make_site

ORIGIN = "https://page.example.com"


class TransportSecurityTests(SynchronousTestCase):
    """What browsers are told of TLS."""

    def test_directives(self) -> None:
        """Every answer says what was configured."""
        client = Client(make_site(with_hsts(echo, ("max-age=31536000", "includeSubDomains"))))
        answer = client.request("GET", "/")
        self.assertEqual(answer.header("strict-transport-security"), "max-age=31536000; includeSubDomains")


class OriginTests(SynchronousTestCase):
    """Which pages may ask this server."""

    def setUp(self) -> None:
        """A server that the pages of one host may ask."""
        self.client = Client(make_site(with_cors(echo, ("//nowhere$", r"^https://page\.example\.com(:|$)"))))

    def test_allowed(self) -> None:
        """A request from an allowed page is answered as ever, and its browser is told that it may be."""
        answer = self.client.request("GET", "/x", Origin=ORIGIN)
        self.assertEqual((answer.code, answer.body), (200, b"GET /x "))
        self.assertEqual(answer.header("access-control-allow-origin"), ORIGIN)
        self.assertEqual(answer.header("access-control-allow-credentials"), "true")
        self.assertIn("PATCH", answer.header("access-control-allow-methods") or "")

    def test_question(self) -> None:
        """The question whether a page may is answered here; nobody else sees it."""
        answer = self.client.request("OPTIONS", "/x", Origin=f"{ORIGIN}:8443")
        self.assertEqual((answer.code, answer.body), (204, b""))
        self.assertEqual(answer.header("access-control-allow-origin"), f"{ORIGIN}:8443")

    def test_others(self) -> None:
        """Others are answered as if nothing were allowed, and what is no origin is not looked at."""
        for origin in ("https://page.example.com.evil.test", "null", "https://x/" + "//nowhere" * 100, ""):
            answer = self.client.request("OPTIONS", "/x", Origin=origin)
            self.assertEqual((answer.code, answer.body), (200, b"OPTIONS /x "), origin[:40])
            self.assertIsNone(answer.header("access-control-allow-origin"))
