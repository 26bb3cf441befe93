"""Tests of L{kubetwist.client.singleflight}."""

from __future__ import annotations

from twisted.internet.defer import CancelledError, Deferred
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.client.singleflight import SingleFlight


class SingleFlightTests(SynchronousTestCase):
    """L{SingleFlight<kubetwist.client.singleflight.SingleFlight>}."""

    def setUp(self) -> None:
        """Create a single flight whose calls are completed by the tests."""
        self.shared: SingleFlight[str, int] = SingleFlight()
        self.calls: list[Deferred[int]] = []

    def call(self) -> Deferred[int]:
        """Start a call."""
        self.calls.append(Deferred())
        return self.calls[-1]

    def test_shared(self) -> None:
        """Concurrent callers with the same key share one call and its result; a later caller starts a new call."""
        first, second, other = (self.shared.do(key, self.call) for key in ("a", "a", "b"))
        self.assertEqual((len(self.calls), len(self.shared)), (2, 2))
        self.calls[0].callback(1)
        self.assertEqual((self.successResultOf(first), self.successResultOf(second)), (1, 1))
        self.assertNoResult(other)
        self.shared.do("a", self.call)
        self.assertEqual(len(self.calls), 3)

    def test_failure(self) -> None:
        """A failure is reported to all callers."""
        first, second = self.shared.do("a", self.call), self.shared.do("a", self.call)
        self.calls[0].errback(ZeroDivisionError())
        for answer in (first, second):
            self.failureResultOf(answer, ZeroDivisionError)
        self.assertEqual(len(self.shared), 0)

    def test_cancelled(self) -> None:
        """A cancelled caller stops waiting; the call continues for the other callers."""
        first, second = self.shared.do("a", self.call), self.shared.do("a", self.call)
        first.cancel()
        self.failureResultOf(first, CancelledError)
        self.calls[0].callback(1)
        self.assertEqual(self.successResultOf(second), 1)
