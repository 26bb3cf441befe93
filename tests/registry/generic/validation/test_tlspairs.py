"""Tests for L{kubetwist.registry.generic.validation.tlspairs}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.validation.tlspairs import tls_problem
from kubetwist.registry.strategies import strategy_for
from tests.registry.keypairs import encoded, pair


class PairTests(SynchronousTestCase):
    """Certificates and their keys."""

    def test_pairs(self) -> None:
        """A secret for TLS that no server could use is told of, in Go's words."""
        certificate, key = pair()
        strategy = strategy_for("", "Secret")

        def warned(crt: bytes, private: bytes) -> str:
            data = {"tls.crt": encoded(crt), "tls.key": encoded(private)}
            found = strategy.warnings({"type": "kubernetes.io/tls", "data": data}, None)
            self.assertEqual("".join(found), tls_problem(data))
            return "".join(found)

        self.assertEqual(warned(certificate, key), "")
        self.assertEqual(warned(b"", key), "tls: failed to find any PEM data in certificate input")
        self.assertEqual(warned(certificate, b"no"), "tls: failed to find any PEM data in key input")
        self.assertIn("may have been switched", warned(key, certificate))
        self.assertIn("rather than a key", warned(certificate, certificate))
        self.assertEqual(warned(certificate, pair()[1]), "tls: private key does not match public key")
