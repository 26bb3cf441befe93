"""Tests of L{kubetwist.http.connection.ciphers}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.ciphers import openssl_ciphers


class CipherTests(SynchronousTestCase):
    """L{openssl_ciphers}."""

    def test_translated(self) -> None:
        """The order of suites is kept; aliases of one suite count once."""
        names = ["TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]
        self.assertEqual(openssl_ciphers(names), "AES128-SHA:ECDHE-RSA-CHACHA20-POLY1305")
        twice = ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"]
        self.assertEqual(openssl_ciphers(twice), "ECDHE-RSA-CHACHA20-POLY1305")

    def test_always_offered(self) -> None:
        """Suites of TLS 1.3 are accepted, but not part of the list."""
        self.assertEqual(openssl_ciphers(["TLS_AES_128_GCM_SHA256"]), "")

    def test_unknown(self) -> None:
        """An unknown or weak suite is refused with its name."""
        for name in ("TLS_RSA_WITH_RC4_128_SHA", "AES128-SHA", ""):
            error = self.assertRaises(ValueError, openssl_ciphers, ["TLS_AES_128_GCM_SHA256", name])
            self.assertIn(f"Cipher suite {name} not supported", str(error))
