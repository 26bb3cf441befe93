"""A server with custom resources, for the tests that ask for them over HTTP in memory."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.customserver import CustomServer, definition


class CustomTestCase(SynchronousTestCase):
    """A test with a server that has no definitions yet."""

    def setUp(self) -> None:
        """Build it."""
        self.server = CustomServer()
        self.client = self.server.client()

    def define(self, *arguments: Any, **version: Any) -> dict[str, Any]:
        """Have something defined."""
        return self.server.define(self.client, definition(*arguments, **version))

    def text(self, path: str) -> tuple[int, bytes]:
        """The answer at a path that may be nobody's."""
        answer = self.client.answer("GET", path)
        return answer.code, answer.body
