"""Tests for L{kubetwist.schema.validation.constraints}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.validation.constraints import (
    Choices,
    distinct,
    fits_int64,
    is_exact,
    maximum,
    maximum_exclusive,
    minimum,
    minimum_exclusive,
    multiple,
)
from tests.api.strategies import documents


class NumberTests(SynchronousTestCase):
    """Tests for constraints of numbers."""

    def test_bounds(self) -> None:
        """A bound is included in its range unless it is exclusive."""
        self.assertEqual((minimum(1, 1), maximum(1, 1)), ("", ""))
        self.assertEqual(minimum(0, 1), "should be greater than or equal to 1")
        self.assertEqual(maximum(2, 1), "should be less than or equal to 1")
        self.assertEqual((minimum_exclusive(2, 1), maximum_exclusive(0, 1)), ("", ""))
        self.assertEqual(minimum_exclusive(1, 1), "should be greater than 1")
        self.assertEqual(maximum_exclusive(1, 1), "should be less than 1")

    @given(st.integers(-(10**6), 10**6), st.integers(1, 1000))
    def test_multiples(self, number: int, factor: int) -> None:
        """A product is a multiple of its factors; the product plus one is a multiple of 1 only."""
        self.assertEqual(multiple(number * factor, factor), "")
        self.assertEqual(bool(multiple(number * factor + 1, factor)), factor != 1)

    def test_fractions(self) -> None:
        """Rounding errors of floats are tolerated; a factor must be positive."""
        self.assertEqual((multiple(0.3, 0.1), multiple(1.1, 0.1)), ("", ""))
        self.assertEqual(multiple(0.35, 0.1), "should be a multiple of 0.1")
        self.assertEqual(multiple(1, 0), "must be positive")

    def test_exact(self) -> None:
        """Whole floats are exact up to the precision of doubles; integers have 64 bits."""
        self.assertTrue(is_exact(4.0))
        self.assertFalse(is_exact(4.5) or is_exact(1e300))
        self.assertTrue(fits_int64(2**63 - 1) and fits_int64(-(2**63)))
        self.assertFalse(fits_int64(2**63))


class ChoiceTests(SynchronousTestCase):
    """Tests for L{Choices}."""

    def test_converted(self) -> None:
        """As in kube-openapi, a number may be the code of a character, and a fraction is truncated."""
        self.assertIn(65, Choices(["A"]))
        self.assertIn(1.5, Choices([1]))
        self.assertNotIn(1.5, Choices([1.0]))
        self.assertNotIn("1", Choices([1]))
        self.assertNotIn(True, Choices([1]))

    def test_null(self) -> None:
        """Null is never contained."""
        self.assertNotIn(None, Choices([None]))

    @given(st.lists(documents, max_size=4))
    def test_contained(self, values: list[Any]) -> None:
        """Every value but null is contained in an enum with that value."""
        choices = Choices(values)
        for value in values:
            self.assertEqual(value in choices, value is not None)

    def test_distinct(self) -> None:
        """Values are distinct if no two are equal, independent of the order of their keys."""
        self.assertTrue(distinct([1, "1", [1], {"a": 1}]))
        self.assertFalse(distinct([{"a": 1, "b": 2}, {"b": 2, "a": 1}]))
