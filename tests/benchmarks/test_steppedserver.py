"""Tests for F{benchmarks/steppedserver.py}: a server that is stepped."""

from __future__ import annotations

import json
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/steppedserver.py")


class ServerTests(SynchronousTestCase):
    """Requests to a server without sockets and threads."""

    def setUp(self) -> None:
        """Start a server."""
        self.server: Any = script.SteppedServer()
        self.addCleanup(self.server.close)
        self.server.start()

    def test_requests(self) -> None:
        """A written object is read, and a watch on another connection receives its event."""
        server, writer, watcher = self.server, self.server.connect(), self.server.connect()
        path = "/api/v1/namespaces/default/configmaps"
        opened = server.call(watcher, server.message("GET", f"{path}?watch=1"))
        self.assertTrue(opened.startswith(b"HTTP/1.1 200 OK\r\n"), opened)
        body = json.dumps({"metadata": {"name": "one"}, "data": {"key": "value"}}).encode()
        created = server.call(writer, server.message("POST", path, body, Content_Type="application/json"))
        self.assertTrue(created.startswith(b"HTTP/1.1 201 Created\r\n"), created)
        self.assertIn(b'{"type":"ADDED"', watcher.take())
        read = server.call(writer, server.message("GET", f"{path}/one"))
        self.assertEqual({"key": "value"}, json.loads(read.partition(b"\r\n\r\n")[2])["data"])
        self.assertEqual(b"", watcher.take())
