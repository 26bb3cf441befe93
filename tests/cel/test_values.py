"""Tests for L{kubetwist.cel.values}."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel import types
from kubetwist.cel.errors import CelError
from kubetwist.cel.values import (
    MISSING,
    NONE,
    Duration,
    MixedMap,
    Optional,
    Timestamp,
    UInt,
    compare,
    equal,
    find,
    size_for_cost,
    type_of,
)

VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 2),
        st.integers(0, 2).map(UInt),
        st.floats(-2, 2),
        st.text("ab", max_size=2),
        st.integers(0, 2).map(Duration),
        st.integers(0, 2).map(Timestamp),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


class EqualityTests(SynchronousTestCase):
    """Tests for L{equal}."""

    @given(VALUES)
    def test_reflexive(self, value: Any) -> None:
        """Every value without NaN equals itself."""
        self.assertTrue(equal(value, value))

    @given(VALUES, VALUES)
    def test_symmetric(self, one: Any, other: Any) -> None:
        """Equality does not depend on the order of the operands."""
        self.assertIs(equal(one, other), equal(other, one))

    def test_numbers(self) -> None:
        """Numbers are compared across types, with doubles as doubles; booleans are not numbers."""
        self.assertTrue(equal(1, 1.0) and equal(1, UInt(1)) and equal(UInt(1), 1.0))
        self.assertTrue(equal(2**53 + 1, float(2**53)))
        self.assertFalse(equal(True, 1) or equal(False, 0.0) or equal(float("nan"), float("nan")))

    def test_moments(self) -> None:
        """A duration never equals a timestamp; equality ignores the offset of a timestamp."""
        self.assertFalse(equal(Duration(1), Timestamp(1)))
        self.assertTrue(equal(Timestamp(1, 3600), Timestamp(1)))

    def test_optionals(self) -> None:
        """Optionals are equal if both are empty or have equal values."""
        self.assertTrue(equal(NONE, NONE) and equal(Optional(1), Optional(1.0)))
        self.assertFalse(equal(NONE, Optional(None)) or equal(Optional(1), 1))


class OrderTests(SynchronousTestCase):
    """Tests for L{compare}."""

    def test_ordered(self) -> None:
        """Numbers are ordered across types, other values within their type."""
        for less, more in ((1, 1.5), (UInt(1), 2), ("a", "b"), (b"a", b"b"), (False, True), (Duration(1), Duration(2))):
            self.assertEqual((compare(less, more), compare(more, less), compare(less, less)), (-1, 1, 0))

    def test_none(self) -> None:
        """Values of different types, lists, maps and NaN cannot be ordered."""
        for left, right in ((1, "a"), (1, True), ([1], [1]), ({}, {}), (Duration(1), Timestamp(1)), (None, None)):
            self.assertEqual(self.assertRaises(CelError, compare, left, right).message, "no such overload")
        error = self.assertRaises(CelError, compare, 1, float("nan"))
        self.assertEqual(error.message, "NaN values cannot be ordered")


class MapTests(SynchronousTestCase):
    """Tests for L{find} and L{MixedMap}."""

    def test_keys(self) -> None:
        """Keys of different number types are equal, but booleans and numbers are not."""
        self.assertEqual(find({1: "x"}, 1.0), "x")
        self.assertEqual(find({True: "x"}, True), "x")
        self.assertIs(find({1: "x"}, True), MISSING)
        self.assertIs(find({False: "x"}, 0), MISSING)
        self.assertIs(find({"a": "x"}, None), MISSING)

    def test_mixed(self) -> None:
        """A map may have booleans and numbers as keys; a later entry of a key replaces the earlier one."""
        self.assertTrue(MixedMap.needed([True, 1]))
        self.assertFalse(MixedMap.needed([True, "a"]) or MixedMap.needed([1, 2.0]))
        mixed = MixedMap([(True, "yes"), (1, "one"), ("a", "text"), (1, "uno")])
        self.assertEqual((find(mixed, True), find(mixed, 1), find(mixed, "a"), len(mixed)), ("yes", "uno", "text", 3))
        self.assertEqual(list(mixed), [True, 1, "a"])


class SizeTests(SynchronousTestCase):
    """Tests for L{size_for_cost} and L{type_of}."""

    def test_sizes(self) -> None:
        """Strings, bytes, lists and maps have their length as size, optionals the size of their value, the rest 1."""
        for value, size in (
            ("abc", 3),
            (b"ab", 2),
            ([1, 2], 2),
            ({}, 0),
            (7, 1),
            (None, 1),
            (Optional("ab"), 2),
            (NONE, 1),
        ):
            self.assertEqual(size_for_cost(value), size, value)

    def test_types(self) -> None:
        """The type of a list or map has no parameters, and the type of a type is C{type}."""
        for value, type_ in ((1, types.INT), (UInt(1), types.UINT), ([1], types.LIST), (types.INT, types.TYPE)):
            self.assertEqual(type_of(value), type_)

    def test_dereference(self) -> None:
        """Reading the value of an empty optional is an error."""
        self.assertEqual(Optional(1).value, 1)
        self.assertEqual(str(self.assertRaises(CelError, lambda: NONE.value)), "optional.none() dereference")
