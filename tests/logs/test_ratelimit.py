"""Tests for L{kubetwist.logs.ratelimit}."""

from __future__ import annotations

from hypothesis import given
from hypothesis.strategies import integers, lists

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.logs.ratelimit import RateLimiter, RepeatFilter


class RateLimiterTests(SynchronousTestCase):
    """Tests for L{RateLimiter}."""

    @given(lists(integers(0, 50), max_size=20))
    def test_counts(self, counts: list[int]) -> None:
        """Every line is allowed or reported as suppressed, and at most the limit is allowed within a second."""
        suppressed: list[int] = []
        limiter = RateLimiter(suppressed.append, per_second=10)
        allowed = 0
        for second, count in enumerate(counts):
            now = sum(limiter.allow(float(second)) for _ in range(count))
            self.assertEqual(now, min(count, 10))
            allowed += now
        limiter.allow(float(len(counts)))
        self.assertEqual(allowed + sum(suppressed), sum(counts))


class RepeatFilterTests(SynchronousTestCase):
    """Tests for L{RepeatFilter}."""

    def test_interval(self) -> None:
        """An event is new again when the interval has passed since it was last new."""
        repeats = RepeatFilter(60.0)
        self.assertEqual([repeats.is_new("a", now) for now in (0.0, 59.0, 60.0, 61.0)], [True, False, True, False])

    def test_bounded(self) -> None:
        """The oldest events are forgotten when there are too many."""
        repeats = RepeatFilter(60.0, size=2)
        self.assertEqual([repeats.is_new(event, 0.0) for event in "abcca"], [True, True, True, False, True])
