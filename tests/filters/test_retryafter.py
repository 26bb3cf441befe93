"""Tests of L{kubetwist.filters.retryafter}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.retryafter import with_not_ready, with_retry_after
from tests.http.harness import Client, echo, make_site


class StoppingTests(SynchronousTestCase):
    """L{with_retry_after}."""

    def setUp(self) -> None:
        """Create a server whose shutdown is started by the test."""
        self.stopping = False
        self.site = make_site(with_retry_after(echo, lambda: self.stopping))

    def test_running(self) -> None:
        """A running server answers."""
        self.assertEqual(Client(self.site).request("GET", "/api").code, 200)

    def test_stopping(self) -> None:
        """A server that shuts down answers 429 with Retry-After and closes the connection."""
        client = Client(self.site)
        self.stopping = True
        answer = client.request("GET", "/api")
        self.assertEqual((answer.code, answer.header("retry-after")), (429, "5"))
        self.assertTrue(client.transport.disconnecting)

    def test_exempt(self) -> None:
        """Health checks and metrics are answered until the end."""
        self.stopping = True
        for path in ("/readyz", "/livez/ping", "/healthz", "/metrics"):
            self.assertEqual(Client(self.site).request("GET", path).code, 200, path)


class StartingTests(SynchronousTestCase):
    """L{with_not_ready}."""

    def test_not_ready(self) -> None:
        """A server that was never ready answers 503 with Retry-After, and health checks as usual."""
        ready = False
        site = make_site(with_not_ready(echo, lambda: ready))
        answer = Client(site).request("GET", "/api")
        self.assertEqual((answer.code, answer.header("retry-after")), (503, "5"))
        self.assertEqual(answer.body, b"The apiserver hasn't been fully initialized yet, please try again later.\n")
        for path in ("/readyz", "/livez/ping", "/healthz", "/metrics"):
            self.assertEqual(Client(site).request("GET", path).code, 200, path)
        ready = True
        self.assertEqual(Client(site).request("GET", "/api").code, 200)
