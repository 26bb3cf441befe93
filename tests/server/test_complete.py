"""Tests of L{kubetwist.server.complete}: the configuration of a server, without the server."""

from __future__ import annotations

import socket
import tempfile
from os import getcwd
from pathlib import Path
from typing import Any, cast

from attrs.exceptions import FrozenInstanceError

from twisted.internet import reactor
from twisted.trial.unittest import TestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.interfaces import IServerReactor
from kubetwist.server.complete import Completion, complete, start_error
from kubetwist.server.config import ServerConfig
from kubetwist.server.datadir import DataDirectory
from kubetwist.server.errors import StartError
from kubetwist.storage.errors import StorageUnavailable

REACTOR = cast(IServerReactor, reactor)


class CompleteTests(TestCase):
    """L{complete}."""

    def setUp(self) -> None:
        """Use a data directory of the test."""
        self.folder = Path(tempfile.mkdtemp(dir=getcwd()))

    def options(self, *flags: str) -> Options:
        """Parse a command line."""
        options = Options()
        options.parseOptions(
            [f"--data-dir={self.folder / 'data'}", "--secure-port=0", "--storage-backend=memory", *flags]
        )
        return options

    async def complete(self, *flags: str) -> ServerConfig:
        """Complete a configuration that is released after the test."""
        config = await complete(self.options(*flags), REACTOR)
        self.addCleanup(config.release)
        return config

    async def test_frozen(self) -> None:
        """A complete configuration cannot be changed."""
        config = await self.complete()
        with self.assertRaises(FrozenInstanceError):
            cast(Any, config).backend = None

    async def test_parts(self) -> None:
        """The configuration contains all parts of a server."""
        config = await self.complete("--controllers=namespace-controller")
        self.assertEqual([one.name for one in config.controllers], ["namespace-controller"])
        self.assertIs(config.context.authenticator, config.authenticator)
        self.assertIsNotNone(config.token_issuer)
        self.assertIsNotNone(config.sessions)
        self.assertIsNotNone(config.kubelet_credentials)
        self.assertIsNone(config.encryption)
        self.assertIsNone(config.auditor)
        self.assertFalse(config.traced)

    async def test_address(self) -> None:
        """The address is bound and its port is known, but connections are refused."""
        config = await self.complete()
        port = config.bound.port
        self.assertEqual(config.address, f"127.0.0.1:{port}")
        self.assertEqual(config.external_address, config.address)
        self.assertEqual(config.endpoint[1], port)
        with socket.socket() as client, self.assertRaises(ConnectionRefusedError):
            client.connect(("127.0.0.1", port))

    async def test_external_address(self) -> None:
        """C{--external-hostname} is the host in documents; its port is the server's unless it has its own."""
        config = await self.complete("--external-hostname=example.com")
        self.assertEqual(config.external_address, f"example.com:{config.bound.port}")
        await config.release()
        config = await self.complete("--external-hostname=example.com:1")
        self.assertEqual(config.external_address, "example.com:1")

    async def test_all_addresses(self) -> None:
        """A server on all addresses is reached at loopback from its host, and advertises another address if it can."""
        config = await self.complete("--bind-address=0.0.0.0")
        self.assertEqual(config.address, f"127.0.0.1:{config.bound.port}")

    async def test_released(self) -> None:
        """A released configuration frees the data directory and the address."""
        config = await self.complete()
        port = config.bound.port
        with self.assertRaises(StartError):
            await complete(self.options(f"--secure-port={port}"), REACTOR)
        await config.release()
        again = await self.complete(f"--secure-port={port}")
        self.assertEqual(again.bound.port, port)

    async def test_temporary(self) -> None:
        """A server in memory without C{--data-dir} has a temporary directory, which is removed at the end."""
        options = Options()
        options.parseOptions(["--in-memory", "--secure-port=0"])
        config = await complete(options, REACTOR)
        self.assertTrue(config.data.pki.exists())
        await config.release()
        self.assertFalse(config.data.path.parent.exists())

    async def test_failure(self) -> None:
        """If a file cannot be used, everything that was opened is closed, including plugins."""
        closed: list[str] = []

        class Failing(Completion):
            async def make_access(self, context: Any) -> Any:
                context.closers.append(lambda: closed.append("plugin"))
                raise StorageUnavailable("no disk")

        with self.assertRaises(StartError) as caught:
            await Failing(self.options(), REACTOR).complete()
        self.assertEqual(str(caught.exception), "cannot use the store: no disk")
        self.assertEqual(closed, ["plugin"])
        data = DataDirectory(self.folder / "data")
        data.open()
        data.close()

    async def test_workers(self) -> None:
        """A server in the process of another program cannot have several processes."""
        with self.assertRaises(StartError) as caught:
            await self.complete("--workers=2")
        self.assertEqual(str(caught.exception), "--workers is only possible in a process of twist kubeapi")

    def test_other_errors(self) -> None:
        """Other exceptions are not converted to start errors."""
        self.assertIsNone(start_error(KeyError("x")))
