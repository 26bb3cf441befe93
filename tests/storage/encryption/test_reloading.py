"""Tests for L{kubetwist.storage.encryption.reloading}."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.resource import GroupResource
from kubetwist.storage.encryption._ciphers import TransformError
from kubetwist.storage.encryption._configuration import KeyService
from kubetwist.storage.encryption._kms import ServiceError
from kubetwist.storage.encryption._transformers import Plain
from kubetwist.storage.encryption.reloading import FileEncryption

from .test_kms import FakeService

KEY = "/r/secrets/default/db"
PLACE = KEY.encode()
UNAVAILABLE = ServiceError("gone", True)


def resource_of(key: str) -> GroupResource | None:
    """Return the storage prefix of a resource."""
    return GroupResource("", key.split("/")[2]) if key.startswith("/r/") else None


def configuration(*providers: str) -> bytes:
    """Return a configuration file."""
    return (
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n"
        f"resources: [{{resources: [secrets], providers: [{', '.join(providers)}]}}]"
    ).encode()


def gcm(name: str) -> str:
    """Return a provider with a separate key."""
    return f"{{aesgcm: {{keys: [{{name: {name}, secret: {b64encode(name.encode() * 16).decode()}}}]}}}}"


def kms(name: str, timeout: str = "3s") -> str:
    """Return a provider with a service."""
    return f"{{kms: {{apiVersion: v2, name: {name}, endpoint: 'unix:///{name}', timeout: {timeout}}}}}"


class Files:
    """A file whose changes are triggered by the test."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.load: Any = None
        self.use: Any = None

    def watch(
        self, paths: Sequence[str], load: Callable[[Sequence[bytes]], Any], use: Callable[[Any], object], what: str
    ) -> Any:
        """See L{kubetwist.server.watchedfiles.FileReloader.watch}."""
        self.load, self.use = load, use
        return load([self.content])

    def change(self, content: bytes) -> Any:
        """Replace the content."""
        return self.use(self.load([content]))


class FileEncryptionTests(SynchronousTestCase):
    """Encryption that is configured by a file."""

    def setUp(self) -> None:
        """Create services on request."""
        self.clock = Clock()
        self.services: list[FakeService] = []
        self.problem: ServiceError | None = None

    def make(self, service: KeyService, reactor: Any) -> FakeService:
        """Return the client of a service."""
        made = FakeService()
        made.problem = self.problem
        self.services.append(made)
        return made

    def followed(self, content: bytes) -> FileEncryption:
        """Create encryption with a watched file."""
        self.files = Files(content)
        encryption = FileEncryption("/etc/enc", resource_of, self.clock, self.make)
        encryption.follow(self.files)
        self.changes = 0

        def changed() -> None:
            self.changes += 1

        encryption.changed = changed
        self.successResultOf(encryption.start())
        self.addCleanup(encryption.stop)
        return encryption

    def written(self, encryption: FileEncryption) -> bytes:
        """Return the stored form of a value."""
        transformer = encryption.transformer(KEY)
        assert transformer is not None
        data = transformer.encrypt(b"value", PLACE)
        self.assertEqual(transformer.decrypt(data, PLACE), Plain(b"value", False))
        return data

    def test_read(self) -> None:
        """A file that is not watched is read once."""
        path = Path(self.mktemp())
        path.write_bytes(configuration(gcm("a")))
        encryption = FileEncryption(str(path), resource_of, self.clock, self.make)
        encryption.read()
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:a:"))
        self.assertIs(encryption.transformer("/other/x"), None)
        self.assertEqual((encryption.has_services, self.successResultOf(encryption.problem())), (False, None))

    def test_no_file(self) -> None:
        """The error of a missing file is the reference's."""
        error = self.assertRaises(ValueError, FileEncryption("/no/file", resource_of, self.clock).read)
        self.assertEqual(
            str(error),
            "error while parsing file: error while loading file: error reading encryption provider configuration file "
            '"/no/file": open /no/file: no such file or directory',
        )

    def test_change(self) -> None:
        """New content is used immediately; values of the old content are decrypted, and are stale."""
        encryption = self.followed(configuration(gcm("a")))
        old = self.written(encryption)
        self.assertIs(self.files.change(configuration(gcm("b"), gcm("a"))), None)
        self.assertEqual(self.changes, 1)
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:b:"))
        transformer = encryption.transformer(KEY)
        assert transformer is not None
        self.assertEqual(transformer.decrypt(old, PLACE), Plain(b"value", True))
        self.files.change(configuration(gcm("b")))
        transformer = encryption.transformer(KEY)
        assert transformer is not None
        self.assertRaises(TransformError, transformer.decrypt, old, PLACE)

    def test_bad_change(self) -> None:
        """Invalid content changes nothing."""
        encryption = self.followed(configuration(gcm("a")))
        self.assertRaises(ValueError, self.files.change, b"bad")
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:a:"))

    def test_to_service(self) -> None:
        """A new service is used when it is healthy; the old one is closed when no call can wait for it."""
        encryption = self.followed(configuration(kms("a"), "{identity: {}}"))
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:kms:v2:a:"))
        used = self.files.change(configuration(kms("b"), kms("c")))
        self.assertIs(self.successResultOf(used), None)
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:kms:v2:b:"))
        first, second, third = self.services
        self.clock.advance(5.9)
        self.assertFalse(first.closed)
        self.clock.advance(0.1)
        self.assertEqual([service.closed for service in self.services], [True, False, False])
        encryption.stop()
        self.assertEqual((second.closed, third.closed, self.clock.getDelayedCalls()), (True, True, []))

    def test_to_ill_service(self) -> None:
        """New content with an unhealthy service is retried, and used when the service is healthy."""
        encryption = self.followed(configuration(gcm("a")))
        self.problem = UNAVAILABLE
        used = self.files.change(configuration(kms("b"), gcm("a")))
        self.clock.pump([0.1] * 50)
        self.assertNoResult(used)
        self.clock.pump([0.1] * 60)
        error = str(self.failureResultOf(used, ValueError).value)
        self.assertEqual(
            error,
            "health check for new transformers failed, polling error timed out waiting for the condition: "
            "kms-provider-0: gone",
        )
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:a:"))
        self.assertEqual([service.closed for service in self.services], [True])
        self.clock.pump([1] * 40)
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:a:"))
        self.problem = None
        self.clock.pump([1] * 60)
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:kms:v2:b:"))
        self.assertEqual([service.closed for service in self.services[:-1]], [True] * (len(self.services) - 1))

    def test_superseded(self) -> None:
        """Newer content replaces content that waits for its services."""
        encryption = self.followed(configuration(gcm("a")))
        self.problem = UNAVAILABLE
        used: Deferred[None] = self.files.change(configuration(kms("b")))
        self.clock.pump([0.1] * 5)
        self.files.change(configuration(gcm("c")))
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:c:"))
        self.clock.pump([1] * 100)
        self.assertEqual(str(self.failureResultOf(used, ValueError).value), "the file has changed again")
        self.assertTrue(self.written(encryption).startswith(b"k8s:enc:aesgcm:v1:c:"))
        self.assertEqual(([service.closed for service in self.services], self.clock.getDelayedCalls()), ([True], []))

    def test_health(self) -> None:
        """All services are checked, with their indexes as names."""
        encryption = self.followed(configuration(kms("a"), kms("b"), kms("c")))
        self.assertTrue(encryption.has_services)
        self.assertEqual(self.successResultOf(encryption.problem()), None)
        self.clock.advance(20)
        self.services[1].problem = UNAVAILABLE
        start = "kms-provider-1: failed to perform status section of the healthz check for KMS Provider b, error: gone"
        self.assertEqual(self.successResultOf(encryption.problem()), start)
        self.clock.advance(20)
        self.services[2].healthz = "ill"
        problem = self.successResultOf(encryption.problem())
        self.assertEqual(
            problem,
            f"[{start}, kms-provider-2: kmsv2 Provider c is not healthy, error: got unexpected healthz status: ill]",
        )

    def test_start_without_service(self) -> None:
        """An unreachable service does not prevent the start."""
        self.problem = UNAVAILABLE
        encryption = self.followed(configuration(kms("a")))
        transformer = encryption.transformer(KEY)
        assert transformer is not None
        self.assertRaises(TransformError, transformer.encrypt, b"", PLACE)
        self.services[0].problem = None
        self.clock.advance(10)
        self.written(encryption)
