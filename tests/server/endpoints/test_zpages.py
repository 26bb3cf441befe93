"""Tests of L{kubetwist.server.endpoints.zpages}."""

from __future__ import annotations

from .endpointcase import EndpointCase


class ZPagesTests(EndpointCase):
    """The pages over HTTP."""

    async def test_older(self) -> None:
        """Releases before 1.36 have the pages only with their feature gates."""
        await self.serve("--kubernetes-version=1.35", "--feature-gates=ComponentFlagz=true")
        self.assertEqual((await self.ask("GET", "/statusz"))[0], 404)
        self.assertEqual((await self.ask("GET", "/flagz", accept="*/*"))[0], 200)

    async def test_index(self) -> None:
        """The pages are listed in the index; debugging paths are not."""
        await self.serve()
        _, answer = await self.ask("GET", "/")
        self.assertLessEqual({"/statusz", "/flagz"}, set(answer["paths"]))
        self.assertEqual([path for path in answer["paths"] if path.startswith("/debug")], [])
