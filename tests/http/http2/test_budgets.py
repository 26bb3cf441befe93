"""Tests of L{kubetwist.http.http2.budgets}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from kubetwist.http.http2.budgets import (
    CONTROL_FRAMES_PER_DATA,
    CONTROL_FRAMES_PER_SECOND,
    MAX_CONTROL_FRAMES,
    MAX_RESETS,
    Budget,
    ControlBudget,
    reset_budget,
)
from kubetwist.http.http2.frames import ENHANCE_YOUR_CALM, Http2ConnectionError


class BudgetTests(SynchronousTestCase):
    """L{Budget}."""

    def spent(self, budget: Budget, *, refill: bool = True) -> int:
        """Spend a budget, and return the number of tokens."""
        for count in range(100_000):
            try:
                budget.spend(refill=refill)
            except Http2ConnectionError as error:
                self.assertEqual(error.code, ENHANCE_YOUR_CALM)
                return count
        raise AssertionError("the budget has no end")

    def test_limits(self) -> None:
        """A budget allows a burst."""
        now = Clock().seconds
        self.assertEqual(self.spent(ControlBudget(now)), MAX_CONTROL_FRAMES)
        self.assertEqual(self.spent(reset_budget(now)), MAX_RESETS)

    def test_time(self) -> None:
        """Tokens return with time, up to the limit."""
        clock = Clock()
        budget = ControlBudget(clock.seconds)
        budget.spend(MAX_CONTROL_FRAMES)
        clock.advance(2)
        self.assertEqual(self.spent(budget), 2 * CONTROL_FRAMES_PER_SECOND)
        clock.advance(1_000_000)
        self.assertLessEqual(self.spent(budget), MAX_CONTROL_FRAMES)

    def test_no_refill(self) -> None:
        """Without refill the elapsed time does not count."""
        clock = Clock()
        budget = Budget(5, 1.0, clock.seconds, "tests")
        clock.advance(100)
        self.assertEqual(self.spent(budget, refill=False), 5)

    def test_earned(self) -> None:
        """Tokens can be earned, up to the limit."""
        budget = Budget(5, 0.0, Clock().seconds, "tests")
        budget.earn(100)
        budget.spend(4)
        budget.earn(2)
        self.assertEqual(self.spent(budget), 3)

    def test_sent_frames(self) -> None:
        """Sent frames earn control frames, up to the limit, and once."""
        budget = ControlBudget(Clock().seconds)
        budget.spend(MAX_CONTROL_FRAMES)
        budget.sent_frames += 3
        self.assertEqual(self.spent(budget), 3 * CONTROL_FRAMES_PER_DATA)
        budget.sent_frames += MAX_CONTROL_FRAMES
        self.assertLessEqual(self.spent(budget), MAX_CONTROL_FRAMES)
