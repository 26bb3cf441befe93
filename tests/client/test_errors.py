"""Tests for L{kubetwist.client.errors}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.errors import AddressNotAllowed, CallError, NoSuchHost, Unreachable


class ErrorTests(SynchronousTestCase):
    """What went wrong with a call."""

    def test_text(self) -> None:
        """The text is as Go writes it: the method as a word, the URL in quotes, and why."""
        error = CallError("POST", 'https://example.com/"a', "EOF", timed_out=True)
        self.assertEqual(str(error), 'Post "https://example.com/\\"a": EOF')
        self.assertEqual((error.why, error.timed_out, error.retriable), ("EOF", True, False))

    def test_unreachable(self) -> None:
        """Whatever keeps a connection from being made is caught as one thing."""
        for kind in (AddressNotAllowed, NoSuchHost):
            with self.assertRaises(Unreachable) as caught:
                raise kind("no route", retriable=True)
            self.assertTrue(caught.exception.retriable)
