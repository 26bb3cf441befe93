"""Tests of L{kubetwist.filters.bodies}."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.filters.bodies import by_head, with_body
from kubetwist.http.request import KubeRequest
from tests.filters.answers import PODS
from tests.http.harness import Client, filtered_site


class BodyTests(SynchronousTestCase):
    """Requests with large bodies."""

    def test_by_head(self) -> None:
        """A request with a pending body is passed to the other handler."""
        seen: list[str] = []
        handler = by_head(lambda request: seen.append("complete"), lambda request: seen.append("early"))
        for pending in (False, True):
            request: Any = SimpleNamespace(body_pending=pending)
            handler(request)
        self.assertEqual(seen, ["complete", "early"])

    def test_with_body(self) -> None:
        """The handler is called after the body is collected."""
        collected: list[Any] = []
        request: Any = SimpleNamespace(collect_body=collected.append)

        def answer(request: KubeRequest) -> None:
            """Answer."""

        with_body(answer)(request)
        self.assertEqual(collected, [answer])

    def test_large(self) -> None:
        """A large body arrives completely at the handler."""
        sizes: list[int] = []

        def answer(request: KubeRequest) -> None:
            sizes.append(len(request.read_body()))
            request.respond(200, b"", b"text/plain")

        client = Client(filtered_site(answer))
        head = f"POST {PODS} HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n".encode()
        client.send(head + b"x" * 100_000)
        self.assertEqual(sizes, [])
        client.send(b"x" * 100_000)
        self.assertEqual(sizes, [200_000])
