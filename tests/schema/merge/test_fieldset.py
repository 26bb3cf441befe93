"""Tests for L{kubetwist.schema.merge.fieldset} and L{kubetwist.schema.merge.fieldpath}."""

from __future__ import annotations

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.merge.fieldpath import (
    MalformedStep,
    canonical,
    key_step,
    shown,
    value_step,
)
from kubetwist.schema.merge.fieldset import (
    FieldSet,
    decode,
    difference,
    has,
    intersection,
    leaves,
    of_paths,
    ordered,
    paths,
    recursive_difference,
    union,
)

Paths = frozenset[tuple[str, ...]]

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"', "v:3", "i:0"])
PATHS: st.SearchStrategy[Paths] = st.frozensets(st.lists(STEPS, min_size=1, max_size=4).map(tuple), max_size=12)


def members(fields: FieldSet) -> Paths:
    """The paths in a set."""
    return frozenset(paths(fields))


class AlgebraTests(SynchronousTestCase):
    """Sets of fields behave like sets of paths."""

    @settings(max_examples=60)
    @given(PATHS)
    def test_members(self, some: Paths) -> None:
        """A set has the paths that it was made of, and no others."""
        fields = of_paths(some)
        self.assertEqual(members(fields), some)
        for path in some:
            self.assertTrue(has(fields, path))
            self.assertEqual(has(fields, path[:-1]), path[:-1] in some)

    @settings(max_examples=60)
    @given(PATHS, PATHS)
    def test_operations(self, one: Paths, other: Paths) -> None:
        """Union, intersection and difference are those of the paths, and leave their operands alone."""
        left, right = of_paths(one), of_paths(other)
        before = orjson.dumps([left, right])
        self.assertEqual(members(union(left, right)), one | other)
        self.assertEqual(members(intersection(left, right)), one & other)
        self.assertEqual(members(difference(left, right)), one - other)
        self.assertEqual(orjson.dumps([left, right]), before)

    @settings(max_examples=60)
    @given(PATHS, PATHS)
    def test_recursive_difference(self, one: Paths, other: Paths) -> None:
        """A recursive difference also loses what is below the paths that are taken away."""
        kept = frozenset(path for path in one if not any(path[:end] in other for end in range(1, len(path) + 1)))
        self.assertEqual(members(recursive_difference(of_paths(one), of_paths(other))), kept)

    @settings(max_examples=60)
    @given(PATHS, PATHS)
    def test_results_are_normal(self, one: Paths, other: Paths) -> None:
        """There is one dictionary for a set, however it was come by."""
        left, right = of_paths(one), of_paths(other)
        self.assertEqual(union(left, right), of_paths(one | other))
        self.assertEqual(intersection(left, right), of_paths(one & other))
        self.assertEqual(difference(left, right), of_paths(one - other))

    @settings(max_examples=60)
    @given(PATHS)
    def test_leaves(self, some: Paths) -> None:
        """The leaves are the members with no members below them."""
        expected = frozenset(
            path for path in some if not any(other[: len(path)] == path and other != path for other in some)
        )
        self.assertEqual(members(leaves(of_paths(some))), expected)

    def test_unchanged_is_the_same(self) -> None:
        """A set that loses nothing is given back as it is."""
        fields = of_paths([("f:a", "f:b"), ("f:a",), ("f:c",)])
        self.assertIs(difference(fields, of_paths([("f:a", "f:x"), ("f:z",)])), fields)
        self.assertIs(recursive_difference(fields, of_paths([("f:a", "f:x"), ("f:z",)])), fields)


class EncodingTests(SynchronousTestCase):
    """How sets are written and read."""

    @settings(max_examples=60)
    @given(PATHS)
    def test_round_trip(self, some: Paths) -> None:
        """A set written as FieldsV1 and read again is the same set."""
        fields = of_paths(some)
        self.assertEqual(decode(orjson.loads(orjson.dumps(ordered(fields)))), fields)

    def test_order(self) -> None:
        """Fields come first, then items by their keys, by value and by position; numbers by their size."""
        fields = of_paths(
            [(step,) for step in ("i:2", "v:10", "v:9", 'v:"a"', 'k:{"p":80}', 'k:{"p":9}', "f:z", "f:b")]
        )
        expected = ["f:b", "f:z", 'k:{"p":9}', 'k:{"p":80}', "v:9", "v:10", 'v:"a"', "i:2"]
        self.assertEqual(list(ordered(fields)), expected)

    def test_membership(self) -> None:
        """A dot stands for the field itself, where others are below it."""
        self.assertEqual(decode({"f:a": {".": {}, "f:b": {}}}), of_paths([("f:a",), ("f:a", "f:b")]))
        self.assertEqual(decode({"f:a": {".": {}}}), of_paths([("f:a",)]))
        self.assertEqual(decode({".": {}}), {})
        self.assertEqual(decode(None), {})

    def test_equal_steps(self) -> None:
        """Steps that select the same are the same, however a client wrote them."""
        self.assertEqual(
            decode({'k:{"b": 1, "a":"x"}': {"f:c": {}}, 'k:{"a":"x","b":1}': {}}),
            {'k:{"a":"x","b":1}': {".": {}, "f:c": {}}},
        )
        self.assertEqual(canonical('v: "a"'), 'v:"a"')

    def test_unknown_steps(self) -> None:
        """Steps of a type that nobody knows are ignored."""
        self.assertEqual(decode({"f:a": {"x:y": {}}, "z:b": {"f:c": {}}}), of_paths([("f:a",)]))

    def test_malformed(self) -> None:
        """What is no set is refused."""
        for fields in ({"f": {}}, {"name": {}}, {"k:[1]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}, [], {"f:a": 1}):
            self.assertRaises(MalformedStep, decode, fields)

    def test_large_indexes(self) -> None:
        """An index is a number of Go, however many digits somebody writes."""
        self.assertEqual(canonical("i:+0007"), "i:7")
        self.assertEqual(canonical(f"i:-{1 << 63}"), f"i:-{1 << 63}")
        for step in (f"i:{1 << 63}", "i:" + "9" * 20, "i:" + "9" * 10_000, "i:-" + "9" * 10_000):
            self.assertRaisesRegex(MalformedStep, "value out of range", canonical, step)

    def test_escapes(self) -> None:
        """Values are written as Go writes them: safe within HTML."""
        self.assertEqual(value_step("a<b>&c"), 'v:"a\\u003cb\\u003e\\u0026c"')
        self.assertEqual(key_step({"port": 80.0, "on": True}), 'k:{"port":80,"on":true}')

    def test_shown(self) -> None:
        """Paths in messages have dots before fields, and items in brackets."""
        path = ("f:spec", 'k:{"port":80,"protocol":"TCP"}', 'v:"x"', "i:3", "f:on", 'k:{"a":null,"b":true}')
        self.assertEqual(shown(path), '.spec[port=80,protocol="TCP"][="x"][3].on[a=null,b=true]')
