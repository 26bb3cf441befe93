"""Tests for L{kubetwist.authentication.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.authentication.errors import AuthenticationFailed, RequestRefused


class ErrorTests(SynchronousTestCase):
    """Tests for what authenticators raise."""

    def test_texts(self) -> None:
        """An error of several authenticators has the text of each, besides its own."""
        error = AuthenticationFailed("[a, b]", ["a", "b"])
        self.assertEqual((str(error), error.texts), ("[a, b]", ["a", "b"]))
        self.assertEqual(AuthenticationFailed("a").texts, ())

    def test_refusals_are_failures(self) -> None:
        """Whoever handles failures handles refused requests, too."""
        with self.assertRaises(AuthenticationFailed):
            raise RequestRefused("odd header")
