"""Tests of the server, started by C{twist}, behind a Kubernetes API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve

from twisted.application.service import IServiceMaker
from twisted.internet.threads import deferToThread
from twisted.plugin import getPlugins
from twisted.trial.unittest import TestCase

from kubetwist.api.resource import UserInfo
from kubetwist.testing.trial import KubeAPIMixin

from .. import server as fortunes

GROUP = "/apis/fun.example.com/v1"


class FortunesTests(KubeAPIMixin, TestCase):
    """Tests with both servers in one process."""

    timeout = 60

    async def setUp(self) -> None:
        """Start both servers with the same administrator's token."""
        front = await self.startKubeAPI()
        folder = Path(self.mktemp()).resolve()
        maker = next(one for one in getPlugins(IServiceMaker) if one.tapname == "fortunes")
        options = maker.options()
        options.parseOptions(
            [f"--data-dir={folder}", "--in-memory", "--secure-port=0", f"--kubeconfig={front.connection.kubeconfig}"]
        )
        service = maker.makeService(options)
        service.startService()
        self.addCleanup(service.stopService)
        await service.ready
        ca = service.server.config.credentials.ca_bundle.decode()
        self.connection = evolve(front.connection, url=service.server.url, ca=ca)

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request of the administrator."""
        return await deferToThread(self.connection.request, method, path, body)

    async def test_fortunes(self) -> None:
        """Fortunes are defaulted and validated."""
        obj = {"apiVersion": "fun.example.com/v1", "kind": "Fortune", "metadata": {"name": "a"}}
        path = f"{GROUP}/namespaces/default/fortunes"
        code, made = await self.ask("POST", path, {**obj, "spec": {"text": "You will read this."}})
        self.assertEqual((code, made["spec"]["luck"]), (201, 7))
        obj["metadata"] = {"name": "b"}
        code, refused = await self.ask("POST", path, {**obj, "spec": {"text": "x" * 20, "luck": 13}})
        self.assertEqual(code, 422)
        self.assertIn("bad luck must be short", refused["message"])

    async def test_visitors(self) -> None:
        """A list of visitors contains the user of the request."""
        code, found = await self.ask("GET", f"{GROUP}/visitors")
        self.assertEqual(code, 200)
        (visitor,) = found["items"]
        self.assertIn("system:masters", visitor["groups"])
        (one,) = fortunes.visitors("", UserInfo("system:node:a"))
        self.assertEqual(one["metadata"]["name"], "system-node-a")
