"""Tests of L{kubetwist.filters.browsers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.browsers import with_cors, with_hsts
from tests.http.harness import Client, echo, make_site

ORIGIN = "https://page.example.com"


class TransportSecurityTests(SynchronousTestCase):
    """C{with_hsts}."""

    def test_directives(self) -> None:
        """Every response has the configured directives."""
        client = Client(make_site(with_hsts(echo, ("max-age=31536000", "includeSubDomains"))))
        answer = client.request("GET", "/")
        self.assertEqual(answer.header("strict-transport-security"), "max-age=31536000; includeSubDomains")


class OriginTests(SynchronousTestCase):
    """C{with_cors}."""

    def setUp(self) -> None:
        """Create a server that allows the origins of one host."""
        self.client = Client(make_site(with_cors(echo, ("//nowhere$", r"^https://page\.example\.com(:|$)"))))

    def test_allowed(self) -> None:
        """A request from an allowed origin is handled, and its response has the CORS headers."""
        answer = self.client.request("GET", "/x", Origin=ORIGIN)
        self.assertEqual((answer.code, answer.body), (200, b"GET /x "))
        self.assertEqual(answer.header("access-control-allow-origin"), ORIGIN)
        self.assertEqual(answer.header("access-control-allow-credentials"), "true")
        self.assertIn("PATCH", answer.header("access-control-allow-methods") or "")

    def test_preflight(self) -> None:
        """A preflight request from an allowed origin is answered by the filter."""
        answer = self.client.request("OPTIONS", "/x", Origin=f"{ORIGIN}:8443")
        self.assertEqual((answer.code, answer.body), (204, b""))
        self.assertEqual(answer.header("access-control-allow-origin"), f"{ORIGIN}:8443")

    def test_other_origins(self) -> None:
        """A request from another or malformed origin gets no CORS headers."""
        for origin in ("https://page.example.com.evil.test", "null", "https://x/" + "//nowhere" * 100, ""):
            answer = self.client.request("OPTIONS", "/x", Origin=origin)
            self.assertEqual((answer.code, answer.body), (200, b"OPTIONS /x "), origin[:40])
            self.assertIsNone(answer.header("access-control-allow-origin"))
