"""Tests for L{kubetwist.schema.merge.fieldpath}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.schema.merge.fieldpath import (
    InvalidPathElement,
    canonical_path_element,
    key_path_element,
    value_path_element,
)
from kubetwist.schema.merge.fieldset import (
    decode,
    field_set_from_paths,
    sort_field_set,
)


class PathElementTests(SynchronousTestCase):
    """Tests for L{kubetwist.schema.merge.fieldpath}."""

    def test_order(self) -> None:
        """Fields come first, then items by keys, by value and by index; numbers are ordered by size."""
        fields = field_set_from_paths(
            [(step,) for step in ("i:2", "v:10", "v:9", 'v:"a"', 'k:{"p":80}', 'k:{"p":9}', "f:z", "f:b")]
        )
        expected = ["f:b", "f:z", 'k:{"p":9}', 'k:{"p":80}', "v:9", "v:10", 'v:"a"', "i:2"]
        self.assertEqual(list(sort_field_set(fields)), expected)

    def test_membership(self) -> None:
        """A dot marks a node with children as a member."""
        self.assertEqual(decode({"f:a": {".": {}, "f:b": {}}}), field_set_from_paths([("f:a",), ("f:a", "f:b")]))
        self.assertEqual(decode({"f:a": {".": {}}}), field_set_from_paths([("f:a",)]))
        self.assertEqual(decode({".": {}}), {})
        self.assertEqual(decode(None), {})

    def test_canonical(self) -> None:
        """Path elements that select the same have the same canonical form."""
        self.assertEqual(
            decode({'k:{"b": 1, "a":"x"}': {"f:c": {}}, 'k:{"a":"x","b":1}': {}}),
            {'k:{"a":"x","b":1}': {".": {}, "f:c": {}}},
        )
        self.assertEqual(canonical_path_element('v: "a"'), 'v:"a"')

    def test_unknown_types(self) -> None:
        """Path elements of an unknown type are ignored."""
        self.assertEqual(decode({"f:a": {"x:y": {}}, "z:b": {"f:c": {}}}), field_set_from_paths([("f:a",)]))

    def test_large_indices(self) -> None:
        """An index has 64 bits; more digits are an error."""
        self.assertEqual(canonical_path_element("i:+0007"), "i:7")
        self.assertEqual(canonical_path_element(f"i:-{1 << 63}"), f"i:-{1 << 63}")
        for step in (f"i:{1 << 63}", "i:" + "9" * 20, "i:" + "9" * 10_000, "i:-" + "9" * 10_000):
            self.assertRaisesRegex(InvalidPathElement, "value out of range", canonical_path_element, step)

    def test_escapes(self) -> None:
        """Values are encoded as in Go, with characters escaped that are unsafe in HTML."""
        self.assertEqual(value_path_element("a<b>&c"), 'v:"a\\u003cb\\u003e\\u0026c"')
        self.assertEqual(key_path_element({"port": 80.0, "on": True}), 'k:{"port":80,"on":true}')
