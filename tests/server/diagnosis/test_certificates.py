"""Tests for L{kubetwist.server.diagnosis.certificates}."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from attrs import evolve
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials.certificates import CertConfig, CertificateAuthority
from kubetwist.server.diagnosis.certificates import (
    CertificateFile,
    check_certificate,
    check_certificates,
    judge_algorithms,
)
from kubetwist.server.diagnosis.findings import Finding, Severity

NOW = datetime.now(UTC)


class CertificateTests(SynchronousTestCase):
    """Checks of certificates."""

    def setUp(self) -> None:
        """Issue and write a certificate."""
        self.authority = CertificateAuthority.make("ca")
        self.pair = self.authority.issue(CertConfig("x", names=("a.test", "*.b.test", "10.0.0.1"), server=True))
        self.folder = Path(self.mktemp())
        self.folder.mkdir()
        self.file = CertificateFile("serving", self.write("x.crt", self.pair.certificate))
        self.file = evolve(self.file, key_path=self.write("x.key", self.pair.key))
        self.file = evolve(self.file, authority_path=self.write("ca.crt", self.authority.pair.certificate))

    def write(self, name: str, content: bytes) -> str:
        """Write a file."""
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def check(self, file: CertificateFile | None = None, now: datetime = NOW) -> Finding:
        """Return the only finding."""
        (found,) = check_certificate(file or self.file, now)
        self.assertEqual(found.id, "certificates/serving")
        return found

    def test_good(self) -> None:
        """A valid certificate has no problem."""
        file = evolve(self.file, names=("a.test", "x.b.test", "10.0.0.1"))
        self.assertIs(self.check(file).severity, Severity.OK)
        self.assertEqual([one.severity for one in check_certificates([file])], [Severity.OK])

    def test_validity(self) -> None:
        """A certificate that has expired or is not valid yet is an error, one about to expire a warning."""
        cases = ((400, False, Severity.ERROR), (-2, False, Severity.ERROR), (350, False, Severity.WARNING))
        for days, renewed, expected in (*cases, (350, True, Severity.NOTE), (400, True, Severity.ERROR)):
            found = self.check(evolve(self.file, renewed=renewed), NOW + timedelta(days=days))
            self.assertIs(found.severity, expected, (days, renewed))

    def test_authority(self) -> None:
        """An authority is to be replaced long before it expires."""
        file = CertificateFile("serving", self.file.authority_path, authority=True)
        self.assertIs(self.check(file).severity, Severity.OK)
        self.assertIs(self.check(file, NOW + timedelta(days=3560)).severity, Severity.WARNING)
        no_authority = CertificateFile("serving", self.file.path, authority=True)
        self.assertIn("no authority", self.check(no_authority).message)

    def test_key(self) -> None:
        """A key of another certificate is an error."""
        other = self.write("other.key", self.authority.pair.key)
        self.assertIn("do not match", self.check(evolve(self.file, key_path=other)).message)

    def test_issuer(self) -> None:
        """A certificate of another authority is an error, and so is a broken chain."""
        stranger = CertificateAuthority.make("ca").pair.certificate
        found = self.check(evolve(self.file, authority_path=self.write("other.crt", stranger)))
        self.assertIn("was not issued by", found.message)
        chain = self.write("chain.crt", self.pair.certificate + stranger)
        found = self.check(evolve(self.file, path=chain, authority_path=""))
        self.assertIn("is broken", found.message)

    def test_previous_authority(self) -> None:
        """The chain of a new authority, which goes on to the previous one, is no problem."""
        new = CertificateAuthority.make("new")
        chained = new.issue(CertConfig("x")).certificate + self.authority.cross_sign(new)
        file = evolve(self.file, path=self.write("chained.crt", chained), key_path="")
        for trusted in (self.authority.certificate, new.certificate, new.certificate + self.authority.certificate):
            self.write("ca.crt", trusted)
            self.assertIs(self.check(file).severity, Severity.OK)
        self.write("ca.crt", CertificateAuthority.make("new").certificate)
        self.assertIn("was not issued by", self.check(file).message)

    def test_names(self) -> None:
        """Missing names are a warning; in a certificate that a start issues again they are a note."""
        file = evolve(self.file, names=("a.test", "c.test", "x.y.b.test", "10.0.0.2"))
        found = self.check(file)
        self.assertIs(found.severity, Severity.WARNING)
        self.assertTrue(found.message.endswith("the names c.test, x.y.b.test, 10.0.0.2"), found.message)
        self.assertIs(self.check(evolve(file, renewed=True)).severity, Severity.NOTE)

    def test_unreadable(self) -> None:
        """A missing or damaged file is an error, and none of its content is shown."""
        found = self.check(evolve(self.file, path=str(self.folder / "missing")))
        self.assertIn("missing cannot be read: No such file", found.message)
        found = self.check(evolve(self.file, key_path=self.write("bad.key", b"s3cret")))
        self.assertIs(found.severity, Severity.ERROR)
        self.assertNotIn("s3cret", str(found))

    def test_algorithms(self) -> None:
        """Short keys are a warning, SHA-1 is an error, except in a root."""
        weak = rsa.generate_private_key(65537, 1024)
        strong = ec.generate_private_key(ec.SECP256R1())
        file = CertificateFile("serving", "x.crt")
        found = list(judge_algorithms(file, self.certificate(weak, hashes.SHA256(), "x")))
        self.assertEqual([one.severity for one in found], [Severity.WARNING])
        self.assertIn("1024 bits", found[0].message)
        found = list(judge_algorithms(file, self.certificate(strong, hashes.SHA1(), "x")))
        self.assertEqual([one.severity for one in found], [Severity.ERROR])
        self.assertEqual(list(judge_algorithms(file, self.certificate(strong, hashes.SHA1(), "issuer"))), [])

    def certificate(
        self, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, digest: hashes.HashAlgorithm, name: str
    ) -> x509.Certificate:
        """Return a certificate that is signed with a hash."""
        issuer, subject = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in ("issuer", name))
        builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), NOW, NOW)
        try:
            return builder.sign(key, digest)  # type: ignore[arg-type] # old hashes are refused by the types, too
        except (ValueError, TypeError, UnsupportedAlgorithm):
            signed = builder.sign(key, hashes.SHA256())

            class Weak:
                """A certificate with another hash, where the library does not sign with it."""

                issuer, subject = signed.issuer, signed.subject
                signature_hash_algorithm = digest
                public_key = signed.public_key

            return Weak()  # type: ignore[return-value] # it has what is judged

    def test_encoding(self) -> None:
        """A certificate in DER is not accepted, as the server does not read it."""
        der = x509.load_pem_x509_certificate(self.pair.certificate).public_bytes(Encoding.DER)
        found = self.check(evolve(self.file, path=self.write("x.der", der)))
        self.assertIn("no PEM file", found.message)
