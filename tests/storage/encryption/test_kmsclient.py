"""Tests for L{kubetwist.storage.encryption._kmsclient} with a gRPC server on a socket."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase, TestCase

from kubetwist.storage.encryption._configuration import KeyService
from kubetwist.storage.encryption._envelope import DEKSource
from kubetwist.storage.encryption._kms import (
    ServiceError,
    ServiceStatus,
)
from kubetwist.storage.encryption._kmsclient import GRPCKMSService
from kubetwist.testing.storage import StorageReactor

from .kmsplugin import KMSPlugin


class ClientTests(TestCase):
    """Calls over a real socket."""

    def setUp(self) -> None:
        """Start a plugin and its client."""
        from twisted.internet import reactor

        # The path of a Unix socket is limited to about 100 bytes.
        folder = tempfile.TemporaryDirectory(prefix="kms-")
        self.addCleanup(folder.cleanup)
        self.plugin = KMSPlugin(Path(folder.name) / "s")
        self.addCleanup(self.plugin.stop)
        self.reactor = reactor

    def client(self, timeout: float = 30.0) -> GRPCKMSService:
        """Return a client of the plugin."""
        client = GRPCKMSService(KeyService("foo", str(self.plugin.path), timeout), self.reactor)
        self.addCleanup(client.close)
        return client

    async def test_calls(self) -> None:
        """The three calls transfer their requests and responses."""
        self.plugin.start()
        client = self.client()
        self.assertEqual(await client.status(), ServiceStatus("v2", "ok", "key-1"))
        source = await client.encrypt("u" * 36, bytes(range(32)))
        self.assertEqual(source, DEKSource("key-1", bytes(range(32))[::-1], (("note.example.com", b"key-1"),)))
        self.assertEqual(await client.decrypt("u", source), bytes(range(32)))
        self.assertEqual(self.plugin.calls, ["status", "encrypt key-1", "decrypt key-1"])

    async def test_refusal(self) -> None:
        """An error of the plugin has its message, and does not mark the plugin as unavailable."""
        self.plugin.start()
        self.plugin.lost.add("key-0")
        error = await self.assertFailure(self.client().decrypt("u", DEKSource("key-0", b"x")), ServiceError)
        self.assertEqual(str(error), "rpc error: code = NotFound desc = key-0 is lost")
        self.assertFalse(error.unavailable)

    async def test_not_there(self) -> None:
        """The client waits for a plugin that is not running until the timeout."""
        error = await self.assertFailure(self.client(timeout=0.05).status(), ServiceError)
        self.assertEqual(str(error), "rpc error: code = DeadlineExceeded desc = context deadline exceeded")
        self.assertTrue(error.unavailable)
        waiting = self.client().status()
        self.plugin.start()
        self.assertEqual((await waiting).key_id, "key-1")

    async def test_close(self) -> None:
        """Closing the client fails its calls immediately, and later calls."""
        client = self.client()
        waiting = client.status()
        client.close()
        self.assertTrue((await self.assertFailure(waiting, ServiceError)).unavailable)
        self.assertTrue((await self.assertFailure(client.status(), ServiceError)).unavailable)


class WithoutGRPCTests(SynchronousTestCase):
    """A Python installation without gRPC."""

    def test_missing_package(self) -> None:
        """A service cannot be configured, and the error names the missing package."""
        self.addCleanup(sys.modules.__setitem__, "grpc", sys.modules["grpc"])
        sys.modules["grpc"] = None  # type: ignore[assignment]
        service = KeyService("foo", "/run/kms.sock", 3.0)
        error = self.assertRaises(ValueError, GRPCKMSService, service, StorageReactor())
        self.assertIn("kubetwist[kms]", str(error))
