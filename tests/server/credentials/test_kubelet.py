"""Tests of L{kubetwist.server.credentials.kubelet}."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from attrs import define, field
from cryptography import x509

from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.trial.unittest import TestCase

from kubetwist.api import times
from kubetwist.resources.proxy.upstreamclients import KubeletTLS
from kubetwist.server.credentials.certificates import CERTIFICATE_LIFETIME, CertConfig, CertificateAuthority
from kubetwist.server.credentials.kubelet import KubeletCredentials
from kubetwist.server.datadir import DataDirectory
from kubetwist.server.errors import StartError
from kubetwist.server.watchedfiles import FileReloader


@define
class Config:
    """The parts of a server's configuration that the credentials use."""

    data: DataDirectory
    reactor: Any = reactor
    files: FileReloader = field(factory=lambda: FileReloader(reactor))


class KubeletCredentialsTests(TestCase):
    """L{KubeletCredentials}."""

    def setUp(self) -> None:
        """Create a data directory."""
        self.folder = Path(self.mktemp())
        data = DataDirectory(self.folder / "data", durable=False)
        data.open()
        self.addCleanup(data.close)
        self.config = Config(data)

    def make(self, **options: Any) -> KubeletCredentials:
        """Return credentials for some flags."""
        names = ("kubelet-client-certificate", "kubelet-client-key", "kubelet-certificate-authority")
        given = {name.replace("_", "-"): str(value) for name, value in options.items()}
        return KubeletCredentials(
            {name: given.get(name, "") for name in names}, self.config.reactor, self.config.data, self.config.files
        )

    def files(self, name: str) -> dict[str, Path]:
        """Write a certificate to files."""
        pair = CertificateAuthority.make("clients").issue(CertConfig(name))
        paths = {"kubelet_client_certificate": self.folder / "c.crt", "kubelet_client_key": self.folder / "c.key"}
        for path, content in zip(paths.values(), (pair.certificate, pair.key), strict=True):
            path.write_bytes(content)
        return paths

    async def test_issued(self) -> None:
        """A certificate is issued at the first use, once for concurrent callers, and reused by the next start."""
        credentials = self.make()
        path = self.config.data.pki / "apiserver-kubelet-client.crt"
        self.assertFalse(path.exists())
        several: list[KubeletTLS] = await gatherResults(
            [Deferred.fromCoroutine(credentials.current()) for _ in range(5)]
        )
        self.assertEqual({one.certificate for one in several}, {path.read_bytes()})
        certificate = x509.load_pem_x509_certificate(path.read_bytes())
        self.assertEqual(certificate.subject.rfc4514_string(), "CN=kube-apiserver-kubelet-client,O=system:masters")
        self.assertTrue(credentials.is_client_certificate(certificate))
        again = await self.make().current()
        self.assertEqual((again.certificate, again.ca), (several[0].certificate, b""))

    async def test_renewed(self) -> None:
        """The certificate is renewed before it expires."""
        credentials = self.make()
        first = await credentials.current()
        later = times.posix_now() + (CERTIFICATE_LIFETIME - timedelta(days=20)).total_seconds()
        self.patch(times, "_clock", lambda: later)
        self.patch(
            self.config.data, "ensure_certificate", lambda folder, name, authority, subject: authority.issue(subject)
        )
        second = await credentials.current()
        self.assertNotEqual(second.certificate, first.certificate)
        for presented in (first, second):
            self.assertTrue(credentials.is_client_certificate(x509.load_pem_x509_certificate(presented.certificate)))

    async def test_full_disk(self) -> None:
        """If no certificate can be written, kubelets are called without one."""

        def fail(*arguments: Any) -> Any:
            raise StartError("cannot write it: No space left on device")

        self.patch(self.config.data, "ensure_certificate", fail)
        self.assertEqual(await self.make().current(), KubeletTLS())

    async def test_files(self) -> None:
        """The certificate of the files is presented, also after a change; invalid files are ignored."""
        paths = self.files("first")
        credentials = self.make(**paths)
        first = await credentials.current()
        self.assertEqual(first.certificate, paths["kubelet_client_certificate"].read_bytes())
        self.files("second")
        self.config.files._running = True
        self.config.files._apply_changes(self.config.files._changes())
        second = await credentials.current()
        self.assertNotEqual(second.certificate, first.certificate)
        paths["kubelet_client_key"].write_text("garbage")
        self.config.files._apply_changes(self.config.files._changes())
        self.assertEqual(await credentials.current(), second)
        self.assertFalse((self.config.data.pki / "apiserver-kubelet-client.crt").exists())

    def test_bad(self) -> None:
        """Unusable files fail the start with the name of the flag."""
        paths = self.files("one")
        with self.assertRaisesRegex(StartError, "must be set together"):
            self.make(kubelet_client_key=paths["kubelet_client_key"])
        with self.assertRaisesRegex(StartError, "cannot read .*nowhere"):
            self.make(kubelet_certificate_authority=self.folder / "nowhere")
        with self.assertRaisesRegex(StartError, "cannot use --kubelet-certificate-authority"):
            self.make(kubelet_certificate_authority=paths["kubelet_client_key"])
        with self.assertRaisesRegex(StartError, "--kubelet-client-certificate, --kubelet-client-key: tls: "):
            self.make(
                kubelet_client_certificate=paths["kubelet_client_key"], kubelet_client_key=paths["kubelet_client_key"]
            )
