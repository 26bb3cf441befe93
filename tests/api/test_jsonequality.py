"""Tests for L{kubetwist.api.jsonequality}."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonequality import same_json, same_value

values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)


class EqualityTests(SynchronousTestCase):
    """Tests for values that are equal in Python."""

    def test_booleans(self) -> None:
        """True is not 1, and false is not 0, at any depth."""
        for one, other in ((True, 1), (False, 0), (True, 1.0)):
            for pair in ((one, other), ([one], [other]), ({"a": [{"b": one}]}, {"a": [{"b": other}]})):
                self.assertEqual(pair[0], pair[1])
                for same in (same_json, same_value):
                    self.assertFalse(same(*pair), pair)
                    self.assertFalse(same(*reversed(pair)), pair)

    def test_floats(self) -> None:
        """An integer and a float with the same value are equal, but their JSON differs."""
        for pair in ((1, 1.0), ([0], [0.0]), ({"a": 2}, {"a": 2.0})):
            self.assertFalse(same_json(*pair))
            self.assertTrue(same_value(*pair))

    def test_order(self) -> None:
        """The order of an object's keys is ignored; the order of a list's items is not."""
        for same in (same_json, same_value):
            self.assertTrue(same({"a": 1, "b": True}, {"b": True, "a": 1}))
            self.assertFalse(same([1, 2], [2, 1]))

    @given(values, values)
    def test_any(self, one: Any, other: Any) -> None:
        """Any value equals its copy, and values that differ in Python differ."""
        for same in (same_json, same_value):
            self.assertTrue(same(one, copy.deepcopy(one)))
            if one != other:
                self.assertFalse(same(one, other))
