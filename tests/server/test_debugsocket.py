"""Tests for L{kubetwist.server.debugsocket}, over a Unix socket."""

from __future__ import annotations

import http.client
import os
import socket
import stat
import tempfile
from pathlib import Path

from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.server.errors import StartError
from kubetwist.testing._inprocess import InProcessServer


class UnixConnection(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(30)
        self.sock.connect(self._path)


def ask(path: str, method: str, url: str, body: str | None = None) -> tuple[int, str]:
    """Send a request without credentials; return the status and the text of the answer. Blocking."""
    connection = UnixConnection(path)
    try:
        connection.request(method, url, body)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class DebugSocketTests(TestCase):
    """A server with a socket for debugging."""

    timeout = 60

    def setUp(self) -> None:
        """Create a folder: the path of a socket has at most about a hundred bytes."""
        folder = tempfile.TemporaryDirectory(prefix="debug-")
        self.addCleanup(folder.cleanup)
        self.path = str(Path(folder.name) / "s")

    async def test_served(self) -> None:
        """Only profiles and the log level are there, without credentials and also with --profiling=false."""
        flags = (f"--debug-socket-path={self.path}", "--profiling=false")
        async with InProcessServer(*flags, controllers="") as server:
            mode = os.lstat(self.path).st_mode
            self.assertTrue(stat.S_ISSOCK(mode))
            self.assertEqual(stat.S_IMODE(mode), 0o600)
            code, text = await deferToThread(ask, self.path, "GET", "/debug/pprof/goroutine")
            self.assertEqual(code, 200)
            self.assertIn("MainThread", text)
            code, _ = await deferToThread(ask, self.path, "PUT", "/debug/flags/v", "4")
            self.assertEqual((code, server._service.server.config.options.verbosity.level), (200, 4))
            for url in ("/", "/api/v1/namespaces", "/metrics", "/version"):
                self.assertEqual((await deferToThread(ask, self.path, "GET", url))[0], 404, url)
            code, _ = await deferToThread(server.request, "GET", "/debug/pprof/")
            self.assertEqual(code, 404)
        self.assertFalse(os.path.lexists(self.path))

    async def test_leftover(self) -> None:
        """The socket of a process that was killed is replaced."""
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(self.path)
        async with InProcessServer(f"--debug-socket-path={self.path}", controllers=""):
            self.assertEqual((await deferToThread(ask, self.path, "GET", "/debug/pprof/"))[0], 200)

    async def test_refused(self) -> None:
        """A file that is no socket is kept, and the server does not start; nor does it without the folder."""
        Path(self.path).write_text("kept")
        for path, reason in ((self.path, "is not a socket"), (f"{self.path}/s", "cannot listen on")):
            server = InProcessServer(f"--debug-socket-path={path}", controllers="")
            with self.assertRaises(StartError) as raised:
                await server.start()
            self.assertIn(reason, str(raised.exception))
        self.assertEqual(Path(self.path).read_text(), "kept")
