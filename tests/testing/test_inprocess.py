"""Tests for L{kubetwist.testing._inprocess} and L{kubetwist.testing.trial}, on trial's reactor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.server.credentials import keygeneration
from kubetwist.testing import InProcessServer
from kubetwist.testing._reactorthread import running_reactor
from kubetwist.testing.trial import KubeAPIMixin


class InProcessServerTests(KubeAPIMixin, TestCase):
    """L{InProcessServer}."""

    async def ask(self, server: InProcessServer, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a blocking request in a thread."""
        return await deferToThread(server.request, method, path, body)

    async def test_serves(self) -> None:
        """A started server answers its administrator; a second server has separate data."""
        first, second = await self.startKubeAPI(), await self.startKubeAPI()
        self.assertNotEqual(first.url, second.url)
        body = {"metadata": {"name": "mine"}}
        code, created = await self.ask(first, "POST", "/api/v1/namespaces", body)
        self.assertEqual((code, created["metadata"]["name"]), (201, "mine"))
        code, _ = await self.ask(second, "GET", "/api/v1/namespaces/mine")
        self.assertEqual(code, 404)

    async def test_key_ahead(self) -> None:
        """The key of a further server is generated after a start."""
        await self.startKubeAPI()
        (pending,) = keygeneration._pending
        self.assertIsNotNone(await deferToThread(pending.get))
        keygeneration._pending.clear()

    async def test_stops(self) -> None:
        """A stopped server no longer listens and has removed its files; stopping is idempotent."""
        server = InProcessServer()
        await server.start()
        kubeconfig = server.kubeconfig
        self.assertTrue(kubeconfig.exists())
        await server.stop()
        self.assertFalse(kubeconfig.exists())
        with self.assertRaises(OSError):
            await self.ask(server, "GET", "/readyz")
        await server.stop()

    async def test_arguments(self) -> None:
        """The arguments are flags of the server."""
        server = await self.startKubeAPI("--kubernetes-version=1.30")
        _, version = await self.ask(server, "GET", "/version")
        self.assertEqual(version["minor"], "30")

    async def test_keeps_a_data_directory(self) -> None:
        """A given data directory is not removed."""
        folder = Path(self.mktemp()).absolute()
        async with InProcessServer(data_dir=folder) as server:
            self.assertEqual(server.kubeconfig, folder / "admin.kubeconfig")
        self.assertTrue((folder / "admin.kubeconfig").exists())

    async def test_no_waiting_on_the_reactor(self) -> None:
        """Blocking calls in the reactor's thread raise an error."""
        await deferLater(reactor, 0)  # Trial starts the reactor when a test first waits, not before.
        with self.assertRaisesRegex(RuntimeError, "InProcessServer"):
            running_reactor()
        self.assertIs(await deferToThread(running_reactor), reactor)
