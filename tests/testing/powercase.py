"""A server in the test's process, its admin and their watches."""

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
    """A watch as a blocking client has it; its methods are for threads."""

    def __init__(self, server: InProcessServer, path: str) -> None:
        connection = server.connection
        self._http = http.client.HTTPSConnection(
            "127.0.0.1", connection.port, context=connection.ssl_context(), timeout=30
        )
        self._http.request("GET", path, headers={"Authorization": f"Bearer {connection.token}"})
        self.response = self._http.getresponse()

    def event(self) -> Any:
        """The next one; L{None} at the end of the stream."""
        line = self.response.readline()
        return json.loads(line) if line else None

    def close(self) -> None:
        """Leave."""
        self._http.close()


class PowerTestCase(KubeAPIMixin, TestCase):
    """With a server, and a few words to talk to it."""

    timeout = 60

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A blocking request, from a thread."""
        return await deferToThread(self.server.request, method, path, body)

    async def make(self, name: str) -> Any:
        """A ConfigMap in the default namespace."""
        code, made = await self.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"of": name}})
        self.assertEqual(code, 201, made)
        return made

    async def watch(self, path: str) -> Watch:
        """Begin to watch."""
        watch: Watch = await deferToThread(Watch, self.server, path)
        self.addCleanup(watch.close)
        return watch

    async def begin(self, *arguments: str) -> None:
        """Start the server of the test."""
        self.server = await self.startKubeAPI(*arguments)
