"""Tests for L{kubetwist.cel.library._valueset}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.errors import CostLimitExceeded
from kubetwist.cel.library import _valueset
from kubetwist.cel.library._valueset import ValueSet
from kubetwist.cel.values import UInt, equal

VALUES = st.one_of(
    st.text("ab", max_size=2),
    st.integers(-2, 2),
    st.integers(0, 2).map(UInt),
    st.floats(-2, 2),
    st.lists(st.integers(0, 1), max_size=2),
    st.none(),
    st.booleans(),
    st.binary(max_size=1),
)


class ValueSetTests(SynchronousTestCase):
    """Tests for L{ValueSet}."""

    @given(st.lists(VALUES, max_size=6), VALUES)
    def test_as_comparisons(self, values: list[Any], value: Any) -> None:
        """A value is in the set if it equals a member by CEL's equality."""
        self.assertIs(value in ValueSet(values), any(equal(value, other) for other in values))

    def test_nan(self) -> None:
        """NaN is never in the set, even if it was added."""
        nan = float("nan")
        self.assertNotIn(nan, ValueSet([nan]))

    def test_bounded(self) -> None:
        """Comparisons with values that are not hashed are limited."""
        self.patch(_valueset, "_MAX_COMPARISONS", 10)
        members = ValueSet([[1], [2], [3], [4]])
        self.assertIn([4], members)
        self.assertNotIn([5], members)
        with self.assertRaises(CostLimitExceeded):
            _ = [6] in members
