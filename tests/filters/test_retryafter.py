"""Tests of L{kubetwist.filters.retryafter}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.retryafter import with_retry_after
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
