"""Tests for L{kubetwist.testing._sharedservers}."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.testing import _sharedservers
from kubetwist.testing._connection import Connection
from kubetwist.testing._sharedservers import SharedServer, SharedServerError, SharedServers


class FakeServer:
    """A server without a process."""

    def __init__(self, url: str) -> None:
        self.kubeconfig = Path("kubeconfig")
        self.connection = Connection(url, self.kubeconfig, "token", "ca", "certificate", "key", folder=Path("folder"))
        self.stopped = False

    def __exit__(self, *exc: object) -> None:
        self.stopped = True


class SharedServersTests(SynchronousTestCase):
    """A controller, and workers in threads."""

    def setUp(self) -> None:
        """Start the controller."""
        self.started: list[FakeServer] = []
        self.prepared: list[str] = []

        def started(kind: str, arguments: Any) -> FakeServer:
            if "--broken" in arguments:
                raise ValueError("no such flag")
            self.started.append(FakeServer(f"https://127.0.0.1:{len(self.started) + 1}"))
            return self.started[-1]

        self.patch(_sharedservers, "_started", started)
        self.servers = SharedServers()
        self.addCleanup(self.servers.stop)

    def worker(self, *arguments: str, kind: str = "child") -> SharedServer:
        """Return a server in a worker."""
        server = SharedServer(self.servers.address, kind, *arguments)
        return server.prepared(lambda server: self.prepared.append(server.url))

    def test_shared(self) -> None:
        """Workers with the same flags share a server, which one of them prepares."""
        first = self.worker("--a")
        self.assertEqual(first.connection, self.started[0].connection)
        results: list[str] = []
        threads = [threading.Thread(target=lambda: results.append(self.worker("--a").url)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [first.url] * 5)
        self.assertEqual(self.prepared, [first.url])
        self.assertNotEqual(self.worker("--b").url, first.url)
        self.assertNotEqual(self.worker("--a", kind="process").url, first.url)
        self.assertEqual(len(self.started), 3)

    def test_wait(self) -> None:
        """A worker waits until the first one has prepared the server."""
        order: list[str] = []
        begun, go_on = threading.Event(), threading.Event()

        def prepare(server: SharedServer) -> None:
            begun.set()
            go_on.wait(10)
            order.append("prepared")

        def second() -> None:
            self.worker()
            order.append("second")

        first = threading.Thread(target=lambda: SharedServer(self.servers.address, "child").prepared(prepare))
        first.start()
        self.assertTrue(begun.wait(10))
        waiting = threading.Thread(target=second)
        waiting.start()
        go_on.set()
        first.join()
        waiting.join()
        self.assertEqual(order, ["prepared", "second"])

    def test_failed_preparation(self) -> None:
        """After a failed preparation the next worker has a new server, and prepares that."""

        def fail(server: SharedServer) -> None:
            raise ValueError("no manifests")

        server = SharedServer(self.servers.address, "child")
        self.assertRaises(ValueError, server.prepared, fail)
        self.assertEqual(self.worker().url, self.started[1].connection.url)
        self.assertTrue(self.started[0].stopped)
        self.assertEqual(self.prepared, [self.started[1].connection.url])

    def test_error(self) -> None:
        """A server that does not start is an error in each worker."""
        for _ in range(2):
            error = self.assertRaises(SharedServerError, self.worker, "--broken")
            self.assertEqual(str(error), "ValueError: no such flag")

    def test_disturbing(self) -> None:
        """Methods that would disturb other workers are missing, with an explanation."""
        server = self.worker()
        error = self.assertRaises(AttributeError, lambda: server.reset)
        self.assertIn("reset would disturb the tests of other workers", str(error))
        self.assertEqual(str(self.assertRaises(AttributeError, lambda: server.nothing)), "nothing")

    def test_stop(self) -> None:
        """A stop ends all servers, and removes the socket."""
        self.worker()
        self.servers.stop()
        self.servers.stop()
        self.assertTrue(self.started[0].stopped)
        self.assertFalse(Path(self.servers.address).exists())
