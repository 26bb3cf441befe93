"""Tests of L{kubetwist.client.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import AddressNotAllowed, CallError, NoSuchHost, Unreachable


class ErrorTests(SynchronousTestCase):
    """L{CallError<kubetwist.client.errors.CallError>} and L{Unreachable<kubetwist.client.errors.Unreachable>}."""

    def test_text(self) -> None:
        """The text has Go's format: method, quoted URL and reason."""
        error = CallError("POST", 'https://example.com/"a', "EOF", timed_out=True)
        self.assertEqual(str(error), 'Post "https://example.com/\\"a": EOF')
        self.assertEqual((error.reason, error.timed_out, error.retriable), ("EOF", True, False))

    def test_unreachable(self) -> None:
        """All reasons for a failed connection are subclasses of Unreachable."""
        for kind in (AddressNotAllowed, NoSuchHost):
            with self.assertRaises(Unreachable) as caught:
                raise kind("no route", retriable=True)
            self.assertTrue(caught.exception.retriable)
