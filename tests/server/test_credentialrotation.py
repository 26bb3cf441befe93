# mypy: allow-untyped-calls
"""Tests for L{kubetwist.server.credentialrotation}, with a clock and threads that run at once."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from cryptography import x509

from twisted.internet.defer import execute
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.kubeapi import Options
from kubetwist.server import credentialrotation
from kubetwist.server.credentialrotation import CHECK_INTERVAL, CredentialRotation
from kubetwist.server.credentials import certificates, rotation
from kubetwist.server.credentials.certificates import CertKeyPair
from kubetwist.server.datadir import Credentials, DataDirectory
from kubetwist.server.watchedfiles import POLL_INTERVAL, FileReloader


class CredentialRotationTests(SynchronousTestCase):
    """The certificates of a running server."""

    def setUp(self) -> None:
        """Start to follow the files of a data directory."""
        self.data = DataDirectory(Path(self.mktemp()), durable=False)
        self.data.open()
        self.addCleanup(self.data.close)
        self.clock = Clock()
        self.patch(credentialrotation, "deferToThreadPool", lambda reactor, pool, call: execute(call))
        options = Options()
        options.parseOptions([f"--data-dir={self.data.path}"])
        self.moved = timedelta()
        real = certificates.current_time
        for module in (certificates, rotation):
            self.patch(module, "current_time", lambda: real() + self.moved)
        self.credentials = Credentials(self.data, options)
        self.credentials.write_kubeconfig("https://127.0.0.1:1")
        self.files = FileReloader(cast(Any, self.clock), in_thread=execute)
        self.files.start()
        self.presented: list[CertKeyPair] = []
        self.bundles: list[bytes] = []
        self.credentials.ca_bundle_listeners.append(lambda: self.bundles.append(self.credentials.ca_bundle))
        config = SimpleNamespace(options=options, credentials=self.credentials, files=self.files, is_front=False)
        reactor = SimpleNamespace(callLater=self.clock.callLater, getThreadPool=lambda: None)
        self.rotation = CredentialRotation(cast(Any, config), cast(Any, reactor), self.presented.append)
        self.rotation.follow("https://127.0.0.1:1")
        self.rotation.start()
        self.addCleanup(self.rotation.stop)

    def advance(self, seconds: float) -> None:
        """Advance the clock, poll by poll."""
        for _ in range(int(seconds // POLL_INTERVAL)):
            self.clock.advance(POLL_INTERVAL)

    def test_renewal(self) -> None:
        """The serving certificate and the admin's are renewed when they are due, and are used without a restart."""
        before, kubeconfig = self.credentials.serving, self.data.kubeconfig.read_bytes()
        self.advance(CHECK_INTERVAL)
        self.assertEqual(self.presented, [])
        self.moved = timedelta(days=300)
        self.advance(CHECK_INTERVAL)
        (presented,) = self.presented
        self.assertNotEqual(presented, before)
        self.assertEqual(presented.certificate, (self.data.pki / "apiserver.crt").read_bytes())
        self.assertEqual(self.credentials.serving, presented)
        self.assertNotEqual(self.data.kubeconfig.read_bytes(), kubeconfig)
        self.advance(2 * CHECK_INTERVAL)
        self.assertEqual(len(self.presented), 1)
        self.assertEqual(self.bundles, [])

    def test_front_proxy(self) -> None:
        """A rotated authority of the front proxy is used by the next poll, and its listeners are called."""
        published: list[bytes] = []
        self.credentials.front_proxy_listeners.append(lambda: published.append(self.credentials.front_proxy_authority))
        old = self.credentials.front_proxy_authority
        rotation.rotate_authority(self.data.pki, "front-proxy-ca")
        self.advance(POLL_INTERVAL)
        (both,) = published
        self.assertTrue(both != old and both.endswith(old))
        self.assertEqual(self.bundles, [])

    def test_command(self) -> None:
        """Certificates that a command has renewed are used by the next poll."""
        rotation.renew(self.data.pki)
        self.advance(POLL_INTERVAL)
        self.assertEqual([one.certificate for one in self.presented], [(self.data.pki / "apiserver.crt").read_bytes()])

    def test_authority(self) -> None:
        """A rotated authority is published, and all certificates are issued by it."""
        rotation.rotate_authority(self.data.pki)
        self.advance(CHECK_INTERVAL)
        bundle = (self.data.pki / "ca.crt").read_bytes()
        self.assertEqual(self.bundles, [bundle])
        self.assertEqual(self.credentials.ca_bundle, bundle)
        new = x509.load_pem_x509_certificates(bundle)[0].subject
        for content in (self.presented[-1].certificate, (self.data.pki / "admin.crt").read_bytes()):
            self.assertEqual(x509.load_pem_x509_certificate(content).issuer, new)
        rotation.retire_authority(self.data.pki)
        self.advance(POLL_INTERVAL)
        self.assertEqual(len(x509.load_pem_x509_certificates(self.bundles[-1])), 1)

    def test_overlap(self) -> None:
        """Keys of service account tokens are removed at the end of their overlap."""
        rotation.rotate_service_account_key(self.data.pki, 3600, lambda: None)
        self.advance(CHECK_INTERVAL)
        self.assertEqual(len(rotation.list_token_keys(self.data.pki)), 2)
        self.moved = timedelta(hours=2)
        self.advance(CHECK_INTERVAL)
        self.assertEqual(len(rotation.list_token_keys(self.data.pki)), 1)

    def test_failure(self) -> None:
        """If certificates cannot be renewed, the present ones stay in use, and the next check retries."""
        ca = (self.data.pki / "ca.key").read_bytes()
        (self.data.pki / "ca.key").write_bytes(b"x")
        self.moved = timedelta(days=300)
        self.advance(CHECK_INTERVAL)
        self.assertEqual(self.presented, [])
        (self.data.pki / "ca.key").write_bytes(ca)
        self.advance(CHECK_INTERVAL)
        self.assertEqual(len(self.presented), 1)

    def test_stopped(self) -> None:
        """A stopped rotation has no timer."""
        self.rotation.stop()
        self.files.stop()
        self.assertEqual(self.clock.getDelayedCalls(), [])
