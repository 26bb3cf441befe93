"""Tests of L{kubetwist.server.context}."""

from __future__ import annotations

from typing import Any

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.services import NoSuchService
from kubetwist.server.context import PluginContext


class PluginContextTests(SynchronousTestCase):
    """L{PluginContext}."""

    def setUp(self) -> None:
        """Create a context before the server is built."""
        options: Any = {"webhook-url-denied-cidrs": ()}
        clock: Any = Clock()
        data: Any = None
        self.context = PluginContext(options, clock, data, "127.0.0.1:6443")

    def test_services(self) -> None:
        """Outgoing calls find services in the stores."""

        class Stores:
            def get_decoded(self, *place: str) -> Any:
                self.asked = place

        stores: Any = Stores()
        self.context.stores = stores
        with self.assertRaises(NoSuchService):
            self.context.outgoing.services.resolve("default", "web", 443)
        self.assertEqual(stores.asked, ("", "services", "default", "web"))

    def test_tokens(self) -> None:
        """Tokens are authenticated by all authenticators after their creation."""
        with self.assertRaises(AssertionError):
            self.context.authenticate_token("x")

        class Authenticator:
            def authenticate_token(self, token: str, audiences: Any) -> Any:
                return token, audiences

        authenticator: Any = Authenticator()
        self.context.authenticator = authenticator
        self.assertEqual(self.context.authenticate_token("x", ["y"]), ("x", ["y"]))

    def test_close(self) -> None:
        """Closing the context calls the closers in order."""
        calls: list[int] = []
        self.context.closers += [lambda: calls.append(1), lambda: calls.append(2)]
        self.successResultOf(self.context.close())  # type: ignore[arg-type]
        self.assertEqual(calls, [1, 2])
