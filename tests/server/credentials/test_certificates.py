"""Tests of L{kubetwist.server.credentials.certificates}."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.credentials import certificates
from kubetwist.server.credentials.certificates import (
    BadCertificate,
    CertConfig,
    CertificateAuthority,
    CertKeyPair,
    serving_names,
)


class CertificateTests(SynchronousTestCase):
    """L{CertificateAuthority}."""

    def test_issue(self) -> None:
        """An issued certificate is valid for its issuer, subject and usage only."""
        authority = CertificateAuthority.make("ours")
        subject = CertConfig("x", names=("localhost", "127.0.0.1"), server=True)
        pair = authority.issue(subject)
        self.assertTrue(authority.is_valid_for(pair, subject))
        self.assertTrue(authority.is_valid_for(pair, CertConfig("x", names=("localhost",), server=True)))
        self.assertFalse(authority.is_valid_for(pair, CertConfig("y")))
        self.assertFalse(authority.is_valid_for(pair, CertConfig("x", names=("other",))))
        self.assertFalse(CertificateAuthority.make("ours").is_valid_for(pair, subject))
        self.assertFalse(authority.is_valid_for(CertKeyPair(pair.certificate, b"garbage"), subject))

    def test_not_longer_than_the_authority(self) -> None:
        """A certificate expires with its issuer at the latest."""
        self.patch(certificates, "AUTHORITY_LIFETIME", timedelta(days=3))
        certificate, _ = CertificateAuthority.make("short").issue(CertConfig("x")).parsed()
        self.assertLess(certificate.not_valid_after_utc, datetime.now(UTC) + timedelta(days=4))

    def test_mixed_up(self) -> None:
        """An authority requires the matching key."""
        one, other = CertificateAuthority.make("one").pair, CertificateAuthority.make("other").pair
        self.assertRaises(BadCertificate, CertificateAuthority, CertKeyPair(one.certificate, other.key))

    def test_serving_names(self) -> None:
        """Serving names contain no unspecified addresses and no duplicates."""
        names = serving_names("Host", ("10.0.0.0/24", "fd00::/112"), ("0.0.0.0", "", "127.0.0.1"))
        self.assertIn("host", names)
        self.assertIn("fd00::1", names)
        self.assertNotIn("0.0.0.0", names)
        self.assertEqual(len(names), len(set(names)))
