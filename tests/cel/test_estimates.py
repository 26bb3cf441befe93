"""Tests for L{kubetwist.cel.estimates}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.estimates import MAX, UNKNOWN, Estimate, fixed, scale

NUMBERS = st.integers(0, MAX)
ESTIMATES = st.tuples(NUMBERS, NUMBERS).map(lambda pair: Estimate(min(pair), max(pair)))


class EstimateTests(SynchronousTestCase):
    """Tests for L{Estimate}."""

    @given(ESTIMATES, ESTIMATES)
    def test_ranges(self, one: Estimate, other: Estimate) -> None:
        """Every operation returns a range whose ends do not exceed 64 bits."""
        for made in (one.add(other), one.multiply(other), one.union(other), one.multiply_by_cost_factor(0.1)):
            self.assertTrue(0 <= made.min <= made.max <= MAX, made)

    @given(ESTIMATES, ESTIMATES)
    def test_union(self, one: Estimate, other: Estimate) -> None:
        """The union contains both ranges."""
        both = one.union(other)
        self.assertTrue(both.min <= min(one.min, other.min) and both.max >= max(one.max, other.max))

    def test_examples(self) -> None:
        """Minimum and maximum are added, multiplied and rounded up separately."""
        self.assertEqual(Estimate(1, 5).add(fixed(2)), Estimate(3, 7))
        self.assertEqual(Estimate(1, 5).multiply(fixed(3)), Estimate(3, 15))
        self.assertEqual(Estimate(1, 11).multiply_by_cost_factor(0.1), Estimate(1, 2))
        self.assertEqual(UNKNOWN.add(fixed(1)), Estimate(1, MAX))

    def test_scale(self) -> None:
        """A product is rounded up and limited to the maximum."""
        self.assertEqual([scale(0, 0.1), scale(1, 0.1), scale(10, 0.1), scale(MAX, 2)], [0, 1, 1, MAX])
