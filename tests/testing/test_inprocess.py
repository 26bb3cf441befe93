"""Tests for L{kubetwist.testing._inprocess} and L{kubetwist.testing.trial}, on trial's reactor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing._reactorthread import running_reactor
from kubetwist.testing.trial import KubeAPIMixin


class InProcessServerTests(KubeAPIMixin, TestCase):
    """Tests for L{InProcessServer}."""

    async def ask(self, server: InProcessServer, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """A blocking request, from a thread."""
        return await deferToThread(server.request, method, path, body)

    async def test_serves(self) -> None:
        """A server that is started answers its administrator, and another beside it knows nothing of the first."""
        first, second = await self.startKubeAPI(), await self.startKubeAPI()
        self.assertNotEqual(first.url, second.url)
        body = {"metadata": {"name": "mine"}}
        code, made = await self.ask(first, "POST", "/api/v1/namespaces", body)
        self.assertEqual((code, made["metadata"]["name"]), (201, "mine"))
        code, _ = await self.ask(second, "GET", "/api/v1/namespaces/mine")
        self.assertEqual(code, 404)

    async def test_stops(self) -> None:
        """A server that is stopped no longer listens, and has taken its files away; stopping again does no harm."""
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
        """Arguments are flags of the server."""
        server = await self.startKubeAPI("--kubernetes-version=1.30")
        _, version = await self.ask(server, "GET", "/version")
        self.assertEqual(version["minor"], "30")

    async def test_keeps_a_data_directory(self) -> None:
        """A data directory that was given is not removed."""
        folder = Path(self.mktemp()).absolute()
        async with InProcessServer(data_dir=folder) as server:
            self.assertEqual(server.kubeconfig, folder / "admin.kubeconfig")
        self.assertTrue((folder / "admin.kubeconfig").exists())

    async def test_no_waiting_on_the_reactor(self) -> None:
        """Code on the reactor is refused what would wait for the reactor."""
        await deferLater(reactor, 0)  # Trial starts the reactor when a test first waits, not before.
        with self.assertRaisesRegex(RuntimeError, "InProcessServer"):
            running_reactor()
        self.assertIs(await deferToThread(running_reactor), reactor)
