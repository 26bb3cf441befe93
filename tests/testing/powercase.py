"""Test case with a server in the test's process, its administrator and watches."""

from __future__ import annotations

import http.client
import json
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin

MAPS = "/api/v1/namespaces/default/configmaps"


class Watch:
    """A watch of a blocking client; its methods run in threads."""

    def __init__(self, server: InProcessServer, path: str) -> None:
        connection = server.connection
        self._http = http.client.HTTPSConnection(
            "127.0.0.1", connection.port, context=connection.ssl_context(), timeout=30
        )
        self._http.request("GET", path, headers={"Authorization": f"Bearer {connection.token}"})
        self.response = self._http.getresponse()

    def event(self) -> Any:
        """Return the next event; L{None} at the end of the stream."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


class PowerTestCase(KubeAPIMixin, TestCase):
    """Test case with a server and helper methods for requests."""

    timeout = 60

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a blocking request in a thread."""
        return await deferToThread(self.server.request, method, path, body)

    async def make(self, name: str) -> Any:
        """Create a ConfigMap in the default namespace."""
        code, created = await self.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"of": name}})
        self.assertEqual(code, 201, created)
        return created

    async def watch(self, path: str) -> Watch:
        """Begin a watch."""
        watch: Watch = await deferToThread(Watch, self.server, path)
        self.addCleanup(watch.close)
        return watch

    async def begin(self, *arguments: str) -> None:
        """Start the server of the test."""
        self.server = await self.startKubeAPI(*arguments)
