"""Tests for L{kubetwist.authentication.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authentication.errors import AuthenticationFailed, RequestRefused


class ErrorTests(SynchronousTestCase):
    """Tests for L{AuthenticationFailed} and L{RequestRefused}."""

    def test_texts(self) -> None:
        """An aggregated error has the texts of all errors."""
        error = AuthenticationFailed("[a, b]", ["a", "b"])
        self.assertEqual((str(error), error.texts), ("[a, b]", ["a", "b"]))
        self.assertEqual(AuthenticationFailed("a").texts, ())

    def test_refusals_are_failures(self) -> None:
        """A rejected request is an authentication failure."""
        with self.assertRaises(AuthenticationFailed):
            raise RequestRefused("odd header")
