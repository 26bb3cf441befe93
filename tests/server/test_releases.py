"""Tests of servers of other releases than the default."""

from __future__ import annotations

from typing import Any

from kubetwist.resources.apis import install_apis
from tests.server.servercase import ServerCase

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class ReleaseTests(ServerCase):
    """Tests of servers with all APIs."""

    async def start_release(self, version: str, *flags: str) -> Any:
        """Start a server of a release."""
        self.install = install_apis  # type: ignore[method-assign]
        return await self.start(f"--kubernetes-version={version}", "--authorization-mode=AlwaysAllow", *flags)

    async def test_before_watch_list(self) -> None:
        """A server of 1.33 refuses initial events, and its health paths have the checks of 1.33."""
        await self.start_release("1.33")
        connection = await self.connect(self.admin)
        watch = f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=0"
        answer = await self.ask_on(connection, watch)
        self.assertEqual(answer.code, 422)
        self.assertIn(b"unless the WatchList feature gate is enabled", answer.body)
        # Options are validated before the media type is negotiated.
        answer = await self.ask_on(connection, watch, Accept="text/html")
        self.assertEqual(answer.code, 422)
        health = (await self.ask_on(connection, "/healthz?verbose")).body
        for absent in (b"storage-readiness", b"peer-endpoint", b"loopback-serving-certificate"):
            self.assertNotIn(absent, health)
        self.assertIn(b'"gitVersion": "v1.33.13"', (await self.ask_on(connection, "/version")).body)

    async def test_gate(self) -> None:
        """A gate changes what a release answers."""
        await self.start_release("1.33", "--feature-gates=WatchList=true,WatchCacheInitializationPostStartHook=true")
        connection = await self.connect(self.admin)
        watch = f"{CONFIG_MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
        self.assertEqual((await self.ask_on(connection, watch)).code, 200)
        self.assertIn(b"storage-readiness ok", (await self.ask_on(connection, "/healthz?verbose")).body)
