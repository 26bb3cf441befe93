"""Tests for L{kubetwist.http.connection.curves}."""

from __future__ import annotations

from OpenSSL import SSL

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.connection.curves import curves_supported, parse_curves, set_curves

#: Reason to skip tests that select a curve.
UNSUPPORTED = "" if curves_supported() else "the installed cryptography does not export the function"


class CurveTests(SynchronousTestCase):
    """The groups of the key exchange."""

    def test_numbers(self) -> None:
        """The numbers of Go's curves are accepted, in their order."""
        self.assertEqual(parse_curves(("29", "23", "24")), (29, 23, 24))
        self.assertEqual(parse_curves(()), ())

    if UNSUPPORTED:
        test_numbers.skip = UNSUPPORTED

    def test_bad_numbers(self) -> None:
        """Other texts are rejected."""
        for text in ("22", "x", "", "-23", "2" * 1000, "\u0662\u0663"):
            error = self.assertRaises(ValueError, parse_curves, (text,))
            self.assertIn("is not the number of a curve: 23, 24", str(error))

    def test_repeated(self) -> None:
        """Repeated numbers are rejected."""
        self.assertEqual(str(self.assertRaises(ValueError, parse_curves, ("23", "23"))), "the curve 23 is repeated")

    if UNSUPPORTED:
        test_repeated.skip = UNSUPPORTED

    def test_without_the_function(self) -> None:
        """A pyOpenSSL that does not export the function refuses all curves."""
        context = SSL.Context(SSL.TLS_METHOD)
        self.patch(SSL, "_lib", object())
        error = self.assertRaises(ValueError, set_curves, context, (23,))
        self.assertEqual(str(error), "the installed OpenSSL does not support the curve P-256")

    def test_unsupported(self) -> None:
        """A curve that OpenSSL does not support is rejected."""

        class Library:
            """An OpenSSL without any curve."""

            def SSL_CTX_set1_curves_list(self, context: object, names: bytes) -> int:
                """Refuse."""
                return 0

        context = SSL.Context(SSL.TLS_METHOD)
        set_curves(context, (23, 29))
        self.patch(SSL, "_lib", Library())
        self.assertRaises(ValueError, set_curves, context, (23,))

    if UNSUPPORTED:
        test_unsupported.skip = UNSUPPORTED
