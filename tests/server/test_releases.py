"""Tests of servers of other releases than the default."""

from __future__ import annotations

import shutil
from typing import Any

from kubetwist.resources.apis import install_apis
from tests.http.harness import parse_answers
from tests.server.servercase import ServerCase, is_whole

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

    async def test_router(self) -> None:
        """A patch without a body and type has another error since 1.34."""
        for version, codes in (("1.33", (406, 415)), ("1.34", (415, 415))):
            await self.start_release(version)
            connection = await self.connect(self.admin)
            for code, fields in zip(codes, ("Content-Length: 0\r\n", ""), strict=True):
                request = f"PATCH {CONFIG_MAPS}/a HTTP/1.1\r\nHost: x\r\n{fields}\r\n"
                connection.received = b""
                connection.transport.write(request.encode())
                (answer,) = parse_answers(await connection.until(is_whole))
                self.assertEqual(answer.code, code, (version, fields))
            await self.service.stopService()
            shutil.rmtree(self.folder / "data")
