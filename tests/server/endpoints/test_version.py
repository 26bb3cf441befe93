"""Tests of L{kubetwist.server.endpoints.version}, with a whole server."""

from __future__ import annotations

from tests.server.servercase import ServerCase


class VersionTests(ServerCase):
    """C{/version}."""

    async def test_version(self) -> None:
        """The version is returned as JSON to GET only."""
        await self.start("--kubernetes-version=1.30", "--authorization-mode=AlwaysAllow")
        answer = await self.ask("/version", self.admin)
        self.assertIn(b'"gitVersion": "v1.30.0"', answer.body)
        self.assertEqual((await self.ask("/version", self.admin, Accept="application/yaml")).code, 406)
        view = "application/json;as=Table;v=v1;g=meta.k8s.io"
        self.assertEqual((await self.ask("/version", self.admin, Accept=view)).code, 200)
        self.assertEqual((await self.ask("/version/x", self.admin)).code, 404)
