"""Test case of a server with custom resources, over HTTP in memory."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.resources.customserver import CustomServer, definition


class CustomTestCase(SynchronousTestCase):
    """Test case with a server without definitions."""

    def setUp(self) -> None:
        """Create the server."""
        self.server = CustomServer()
        self.client = self.server.client()

    def define(self, *arguments: Any, **version: Any) -> dict[str, Any]:
        """Create a definition."""
        return self.server.define(self.client, definition(*arguments, **version))

    def text(self, path: str) -> tuple[int, bytes]:
        """Return the plain-text response for a path."""
        answer = self.client.answer("GET", path)
        return answer.code, answer.body
