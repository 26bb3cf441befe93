"""Tests of L{kubetwist.server.endpoints.logs}, over HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import InProcessServer
from kubetwist.testing.trial import KubeAPIMixin

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
NOWHERE = (404, "404 page not found\n")


class LogFileTests(KubeAPIMixin, TestCase):
    """Access to files of the log directory only."""

    timeout = 60

    async def serve(self, *arguments: str) -> None:
        """Start a server with a log directory beside a secret file."""
        folder = Path(self.mktemp())
        self.folder = folder / "log"
        (self.folder / "pods").mkdir(parents=True)
        (folder / "secret").write_text("hunter2")
        (self.folder / "a & <b>.log").write_text("one\n")
        (self.folder / "pods" / "c.log").write_text("two\n")
        (self.folder / "out").symlink_to("../secret")
        (self.folder / "up").symlink_to("..")
        (self.folder / "in").symlink_to("pods")
        os.mkfifo(self.folder / "pipe")
        arguments = arguments or ("--enable-logs-handler",)
        self.server: InProcessServer = await self.startKubeAPI(
            "--controllers=", f"--logs-directory={self.folder}", *arguments
        )

    async def ask(self, method: str, path: str, body: Any = None, **options: Any) -> tuple[int, Any]:
        """Send a request as the admin, or with a token."""
        connection = self.server.connection.with_token(options.pop("token", self.server.connection.token))
        return await deferToThread(connection.request, method, path, body, **options)

    async def test_files(self) -> None:
        """A directory is a page of escaped links; a file is returned as text."""
        await self.serve()
        code, page = await self.ask("GET", "/logs/")
        self.assertEqual(code, 200)
        self.assertIn('<a href="./a%20%26%20%3Cb%3E.log">a &amp; &lt;b&gt;.log</a>\n', page)
        self.assertIn('<a href="./pods/">pods/</a>\n', page)
        self.assertEqual(await self.ask("GET", "/logs/a%20%26%20%3Cb%3E.log"), (200, "one\n"))
        self.assertEqual(await self.ask("GET", "/logs/pods/c.log"), (200, "two\n"))
        self.assertEqual((await self.ask("GET", "/logs"))[0], 301)
        self.assertEqual((await self.ask("GET", "/logs/pods"))[0], 301)
        self.assertEqual((await self.ask("POST", "/logs/pods/c.log", {}))[0], 405)

    async def test_large(self) -> None:
        """A file larger than a piece is returned completely, and so is an empty file."""
        await self.serve()
        text = "x" * 1_000_003
        (self.folder / "large").write_text(text)
        (self.folder / "empty").write_text("")
        self.assertEqual(await self.ask("GET", "/logs/large"), (200, text))
        self.assertEqual((await self.ask("GET", "/logs/empty"))[0], 200)

    async def test_outside(self) -> None:
        """Files outside of the directory are not served: neither by C{..} in any spelling, nor by symbolic links."""
        await self.serve()
        for path in (
            *("../secret", "%2e%2e/secret", "..%2fsecret", "pods/../../secret", "pods/%2e%2e/%2e%2e/secret", "."),
            *(
                "out",
                "up/secret",
                "up/",
                "in/c.log",
                "pipe",
                "none",
                "pods/c.log/d",
                "a%00b",
                "x" * 300,
                "//etc/passwd",
            ),
        ):
            code, text = await self.ask("GET", f"/logs/{path}")
            self.assertNotIn("hunter2", str(text), path)
            self.assertIn(code, (301, 403, 404), path)

    async def test_refused(self) -> None:
        """Unauthorized users are refused."""
        await self.serve()
        await self.ask("POST", ACCOUNTS, {"metadata": {"name": "a"}})
        _, answer = await self.ask("POST", f"{ACCOUNTS}/a/token", {"spec": {}})
        code, _ = await self.ask("GET", "/logs/pods/c.log", token=answer["status"]["token"])
        self.assertEqual(code, 403)

    async def test_off(self) -> None:
        """The path does not exist unless it is enabled."""
        await self.serve("--enable-logs-handler=false")
        for path in ("/logs", "/logs/", "/logs/pods/c.log"):
            self.assertEqual(await self.ask("GET", path), NOWHERE)
