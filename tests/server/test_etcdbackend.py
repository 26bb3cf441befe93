"""Tests of L{kubetwist.server.etcdbackend}."""

from __future__ import annotations

from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.testing import MemoryReactorClock as Clock
from twisted.python.usage import UsageError
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from kubetwist.cli.kubeapi import Options
from kubetwist.interfaces import IStorageWrapper
from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.errors import StartError
from kubetwist.server.plugins import make_backend
from kubetwist.storage.errors import StorageUnavailable
from kubetwist.storage.etcd import EtcdStorage
from kubetwist.storage.etcd._grpcclient import GRPCClient
from kubetwist.storage.etcd.gateway import GatewayClient
from kubetwist.storage.memory import MemoryStorage
from kubetwist.storage.wrappers import find_shared_storage, unwrap_backend


def options(*arguments: str) -> Options:
    """Parse a command line."""
    parsed = Options()
    parsed.parseOptions(list(arguments))
    return parsed


class EtcdBackendTests(SynchronousTestCase):
    """C{--etcd-servers} and related flags."""

    def refused(self, *arguments: str) -> str:
        """Return the error of a refused command line."""
        with self.assertRaises(StartError) as caught:
            make_backend(options(*arguments), Clock())
        return str(caught.exception)

    def test_servers(self) -> None:
        """C{--etcd-servers} selects etcd; no connection is opened before the store."""
        given = options("--etcd-servers=http://127.0.0.1:1,http://127.0.0.1:2", "--etcd-prefix=mine/")
        self.assertEqual((given["storage-backend"], given["etcd-prefix"]), ("etcd3", "/mine"))
        storage = make_backend(given, Clock())
        self.assertIsInstance(storage, EtcdStorage)
        self.assertEqual(storage.client.endpoints, "http://127.0.0.1:1, http://127.0.0.1:2")
        self.assertIs(find_shared_storage(storage), storage)

    def test_transports(self) -> None:
        """C{--etcd-transport} selects gRPC, the default, or the gateway; other values are refused."""
        servers = "--etcd-servers=http://127.0.0.1:1"
        for flags, kind in (
            ((), GRPCClient),
            (("--etcd-transport=grpc",), GRPCClient),
            (("--etcd-transport=gateway",), GatewayClient),
        ):
            storage = make_backend(options(servers, *flags), Clock())
            self.assertEqual([type(member) for member in storage.client.members], [kind])
        with self.assertRaises(UsageError) as caught:
            options(servers, "--etcd-transport=http")
        self.assertIn("etcd-transport", str(caught.exception))

    def test_timeout(self) -> None:
        """The start waits for etcd up to the configured timeout."""
        clock = Clock()
        flags = ("--etcd-servers=http://127.0.0.1:1", "--storage-initialization-timeout=2s")
        storage = make_backend(options(*flags), clock)

        async def refuse(timeout: float | None = None) -> int:
            raise StorageUnavailable("connection refused")

        storage.client.revision = refuse
        opened = Deferred.fromCoroutine(storage.open())
        clock.advance(1)
        self.assertNoResult(opened)
        clock.advance(1)
        self.assertIn("no etcd at http://127.0.0.1:1", str(self.failureResultOf(opened, StorageUnavailable).value))

    def test_layers(self) -> None:
        """A wrapped store is shared if the inner store is."""

        @implementer(IStorageWrapper)
        class Over:
            def __init__(self, inner: object) -> None:
                self.inner = inner

        memory, shared = MemoryStorage(Clock()), make_backend(options("--etcd-servers=http://127.0.0.1:1"), Clock())
        self.assertIs(unwrap_backend(Over(Over(memory))), memory)
        self.assertIsNone(find_shared_storage(Over(memory)))
        self.assertIs(find_shared_storage(Over(shared)), shared)

    def test_refusals(self) -> None:
        """The error of an unusable flag names it."""
        self.assertEqual(self.refused("--storage-backend=etcd3"), "--etcd-servers must be specified")
        self.assertIn("'ftp://x' is not the URL", self.refused("--etcd-servers=ftp://x"))
        servers = "--etcd-servers=https://127.0.0.1:1"
        self.assertEqual(
            self.refused(servers, "--etcd-certfile=c"), "--etcd-certfile and --etcd-keyfile must be set together"
        )
        self.assertIn("--etcd-cafile: No such file", self.refused(servers, "--etcd-cafile=/nowhere/ca"))
        folder = Path(self.mktemp())
        folder.mkdir()
        pair = CertificateAuthority.make("ca").issue(CertConfig("client"))
        for name, content in (("crt", pair.certificate), ("key", CertificateAuthority.make("other").pair.key)):
            (folder / name).write_bytes(content)
        why = self.refused(servers, f"--etcd-certfile={folder}/crt", f"--etcd-keyfile={folder}/key")
        self.assertIn("private key does not match", why)
