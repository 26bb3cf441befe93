"""Base of tests of the server's endpoints."""

from __future__ import annotations

from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin


class EndpointCase(KubeAPIMixin, TestCase):
    """A server without controllers."""

    timeout = 60

    async def serve(self, *arguments: str) -> None:
        """Start a server."""
        self.server: InProcessServer = await self.startKubeAPI("--controllers=", *arguments)

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Send a request as the admin, or with a token."""
        connection = self.server.connection.with_token(options.pop("token", self.server.connection.token))
        return await deferToThread(connection.request, method, path, body, **options)
