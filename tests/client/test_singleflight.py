"""Tests for L{kubetwist.client.singleflight}."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.singleflight import SingleFlight


class SharedCallsTests(SynchronousTestCase):
    """Calls that several callers wait for."""

    def setUp(self) -> None:
        """Make calls that are answered later."""
        self.shared: SingleFlight[str, int] = SingleFlight()
        self.calls: list[Deferred[int]] = []

    def call(self) -> Deferred[int]:
        """Call."""
        self.calls.append(Deferred())
        return self.calls[-1]

    def test_shared(self) -> None:
        """Callers of the same key share a call and its result; a later caller makes another."""
        first, second, other = (self.shared.ask(key, self.call) for key in ("a", "a", "b"))
        self.assertEqual((len(self.calls), len(self.shared)), (2, 2))
        self.calls[0].callback(1)
        self.assertEqual((self.successResultOf(first), self.successResultOf(second)), (1, 1))
        self.assertNoResult(other)
        self.shared.ask("a", self.call)
        self.assertEqual(len(self.calls), 3)

    def test_failure(self) -> None:
        """A failure is that of all callers."""
        first, second = self.shared.ask("a", self.call), self.shared.ask("a", self.call)
        self.calls[0].errback(ZeroDivisionError())
        for answer in (first, second):
            self.failureResultOf(answer, ZeroDivisionError)
        self.assertEqual(len(self.shared), 0)

    def test_cancelled(self) -> None:
        """A caller that cancels no longer waits; the call goes on for the others."""
        first, second = self.shared.ask("a", self.call), self.shared.ask("a", self.call)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.calls[0].callback(1)
        self.assertEqual(self.successResultOf(second), 1)
