"""Tests of L{kubetwist.registry.generic.validation.tlspairs}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.registry.generic.validation.tlspairs import tls_problem
from kubetwist.registry.strategies import strategy_for
from tests.registry.keypairs import encoded, pair


class PairTests(SynchronousTestCase):
    """Tests of L{tls_problem}."""

    def test_pairs(self) -> None:
        """An invalid TLS secret causes a warning with the message of Go."""
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
