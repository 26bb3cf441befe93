"""Tests of L{kubetwist.server.credentials.namedcertificates}."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import BadCertificate, CertConfig, CertificateAuthority, CertKeyPair
from kubetwist.server.credentials.namedcertificates import NamedCertificates, NamedFiles, certificate_names
from kubetwist.server.errors import StartError


class NamedCertificateTests(SynchronousTestCase):
    """L{NamedCertificates}."""

    def setUp(self) -> None:
        """Create an authority."""
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.authority = CertificateAuthority.make("ca")
        self.made: list[CertKeyPair] = []

    def files(self, name: str, *shown_for: str, names: tuple[str, ...] = ()) -> NamedFiles:
        """Write a certificate to files."""
        pair = self.authority.issue(CertConfig(name, names=names, server=True))
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        certificate.write_bytes(pair.certificate)
        key.write_bytes(pair.key)
        return NamedFiles(str(certificate), str(key), shown_for)

    def make(self, pair: CertKeyPair) -> Any:
        """Return the first name of a certificate in place of a context."""
        self.made.append(pair)
        return certificate_names(pair.certificate)[0]

    def test_names_in_certificates(self) -> None:
        """Without given names the host names of the certificate are used."""
        files = self.files("one.test", names=("a.test", "*.b.test", "192.0.2.1"))
        self.assertEqual(certificate_names(Path(files.certificate).read_bytes()), ["one.test", "a.test", "*.b.test"])
        named = NamedCertificates([files], self.make)
        for name in ("a.test", "A.TEST", "x.b.test", "one.test", "a.test."):
            self.assertEqual(named.find(name), "one.test", name)
        for name in ("b.test", "x.y.b.test", "192.0.2.1", ""):
            self.assertIsNone(named.find(name), name)

    def test_order(self) -> None:
        """Given names precede names of certificates, exact names precede wildcards, then the first file wins."""
        named = NamedCertificates(
            [
                self.files("one.test", names=("x.c.test",)),
                self.files("two.test", "*.c.test"),
                self.files("three.test", "y.c.test", "*.c.test"),
            ],
            self.make,
        )
        self.assertEqual([named.find(f"{one}.c.test") for one in "xyz"], ["one.test", "three.test", "two.test"])

    def test_damage(self) -> None:
        """A missing or mismatched file fails the start."""
        files = self.files("one.test")
        with self.assertRaises(StartError):
            NamedCertificates([NamedFiles(files.certificate, f"{files.key}.not")], self.make)
        Path(files.key).write_bytes(self.authority.pair.key)
        with self.assertRaises(StartError) as caught:
            NamedCertificates([files], self.make)
        self.assertIn("certificate and key do not match", str(caught.exception))

    def test_new_content(self) -> None:
        """Changed files are used for new connections; invalid ones are ignored."""

        class Watched:
            """Takes what would follow the files."""

            def watch(self, paths: Any, load: Any, use: Any, what: str) -> None:
                self.load, self.use = load, use

        files = self.files("one.test")
        named, watched = NamedCertificates([files], self.make), Watched()
        named.follow(watched)
        other = self.authority.issue(CertConfig("other.test", server=True))
        watched.use(watched.load([other.certificate, other.key]))
        self.assertEqual((named.find("other.test"), named.find("one.test")), ("other.test", None))
        with self.assertRaises(BadCertificate):
            watched.use(CertKeyPair(other.certificate, self.authority.pair.key))
        self.assertEqual(named.find("other.test"), "other.test")
