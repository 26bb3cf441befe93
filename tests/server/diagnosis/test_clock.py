"""Tests for L{kubetwist.server.diagnosis.clock}."""

from __future__ import annotations

from datetime import UTC, datetime

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.server.diagnosis.clock import ClockFacts, judge_clock, judge_skews, kernel_synchronized
from kubetwist.server.diagnosis.findings import Severity

NOW = datetime(2026, 11, 29, tzinfo=UTC)


class ClockTests(SynchronousTestCase):
    """Checks of the clock."""

    def test_synchronized(self) -> None:
        """A clock that is not synchronized, or not known to be, is a note."""
        for state, expected in ((True, Severity.OK), (False, Severity.NOTE), (None, Severity.NOTE)):
            (found,) = judge_clock(ClockFacts(NOW, state))
            self.assertEqual((found.id, found.severity), ("clock/synchronization", expected))

    def test_past(self) -> None:
        """A clock in the past is an error."""
        first, _ = judge_clock(ClockFacts(datetime(1970, 1, 1, tzinfo=UTC), True))
        self.assertEqual((first.id, first.severity), ("clock/time", Severity.ERROR))

    def test_skews(self) -> None:
        """The severity grows with the difference, in both directions."""
        expected = {0.9: 0, -1.5: 0, 3.0: 2, -10.0: 2, 100.0: 3}
        for skew, severity in expected.items():
            (found,) = judge_skews({"etcd-1": skew})
            self.assertEqual(found.severity, severity, skew)
            self.assertIn("etcd-1", found.message)
        (found,) = judge_skews({"etcd-1": -10.0})
        self.assertEqual(found.message, "the clock is 10.0 s behind the one of etcd-1")

    def test_kernel(self) -> None:
        """The kernel is asked without setting anything."""
        self.assertIn(kernel_synchronized(), (True, False, None))
