"""Tests for L{kubetwist.schema.merge.fieldset} and L{kubetwist.schema.merge.fieldpath}."""

from __future__ import annotations

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.merge.fieldpath import (
    InvalidPathElement,
    format_path,
    path_element_sort_key,
)
from kubetwist.schema.merge.fieldset import (
    FieldSet,
    contains,
    decode,
    difference,
    field_set_from_paths,
    has,
    intersection,
    leaves,
    paths,
    recursive_difference,
    sort_field_set,
    union,
)

Paths = frozenset[tuple[str, ...]]


STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "v:3", "i:0"])


PATHS: st.SearchStrategy[Paths] = st.frozensets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=12)


def members(fields: FieldSet) -> Paths:
    """Return the paths in a set."""
    return frozenset(paths(fields))


class AlgebraTests(SynchronousTestCase):
    """Tests that field sets behave like sets of paths."""

    @settings(max_examples=60)
    @given(PATHS)
    def test_members(self, some: Paths) -> None:
        """A set contains exactly the paths from which it was made."""
        fields = field_set_from_paths(some)
        self.assertEqual(members(fields), some)
        for path in some:
            self.assertTrue(has(fields, path))
            self.assertEqual(has(fields, path[:-1]), path[:-1] in some)

    @settings(max_examples=60)
    @given(PATHS, PATHS)
    def test_operations(self, one: Paths, other: Paths) -> None:
        """Union, intersection and difference agree with sets of paths, and do not modify their operands."""
        left, right = field_set_from_paths(one), field_set_from_paths(other)
        before = orjson.dumps([left, right])
        self.assertEqual(members(union(left, right)), one | other)
        self.assertEqual(members(intersection(left, right)), one & other)
        self.assertEqual(members(difference(left, right)), one - other)
        self.assertEqual(contains(left, right), one >= other)
        self.assertTrue(contains(union(left, right), right))
        self.assertEqual(orjson.dumps([left, right]), before)

    @settings(max_examples=60)
    @given(PATHS, PATHS)
    def test_recursive_difference(self, one: Paths, other: Paths) -> None:
        """A recursive difference also removes the children of removed paths."""
        kept = frozenset(path for path in one if not any(path[:end] in other for end in range(1, len(path) + 1)))
        self.assertEqual(members(recursive_difference(field_set_from_paths(one), field_set_from_paths(other))), kept)

    @settings(max_examples=60)
    @given(PATHS, PATHS)
    def test_canonical(self, one: Paths, other: Paths) -> None:
        """Equal sets are equal dictionaries, independent of how they were computed."""
        left, right = field_set_from_paths(one), field_set_from_paths(other)
        self.assertEqual(union(left, right), field_set_from_paths(one | other))
        self.assertEqual(intersection(left, right), field_set_from_paths(one & other))
        self.assertEqual(difference(left, right), field_set_from_paths(one - other))

    @settings(max_examples=60)
    @given(PATHS)
    def test_leaves(self, some: Paths) -> None:
        """The leaves are the members without children."""
        expected = frozenset(
            path for path in some if not any(other[: len(path)] == path and other != path for other in some)
        )
        self.assertEqual(members(leaves(field_set_from_paths(some))), expected)

    def test_unchanged(self) -> None:
        """A difference that removes nothing returns the same object."""
        fields = field_set_from_paths([("f:a", "f:b"), ("f:a",), ("f:c",)])
        self.assertIs(difference(fields, field_set_from_paths([("f:a", "f:x"), ("f:z",)])), fields)
        self.assertIs(recursive_difference(fields, field_set_from_paths([("f:a", "f:x"), ("f:z",)])), fields)


class EncodingTests(SynchronousTestCase):
    """Tests for the encoding and decoding of sets."""

    @settings(max_examples=60)
    @given(PATHS)
    def test_round_trip(self, some: Paths) -> None:
        """A set that is encoded as FieldsV1 and decoded is the same set."""
        fields = field_set_from_paths(some)
        self.assertEqual(decode(orjson.loads(orjson.dumps(sort_field_set(fields)))), fields)

    @given(PATHS)
    def test_sorted(self, some: Paths) -> None:
        """Each level is in order; a set that is in order already is returned itself, and no set is modified."""
        fields = field_set_from_paths(some)
        before = orjson.dumps(fields)
        ordered = sort_field_set(fields)
        self.assertEqual((ordered, orjson.dumps(fields)), (fields, before))
        levels = [ordered]
        while levels:
            level = levels.pop()
            elements = [element for element in level if element != "."]
            self.assertEqual(elements, sorted(elements, key=path_element_sort_key))
            self.assertIn(".", list(level)[:1] if "." in level else ["."])
            levels += level.values()
        self.assertIs(sort_field_set(ordered), ordered)

    def test_malformed(self) -> None:
        """Malformed sets are rejected."""
        for fields in ({"f": {}}, {"name": {}}, {"k:[1]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}, [], {"f:a": 1}):
            self.assertRaises(InvalidPathElement, decode, fields)

    def test_format_path(self) -> None:
        """Formatted paths have dots before fields, and items in brackets."""
        path = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', 'v:"x"', "i:3", "f:on", 'k:{"a":null,"b":true}')
        self.assertEqual(format_path(path), '.spec[port=80,protocol="TCP"][="x"][3].on[a=null,b=true]')
