"""Tests for L{kubetwist.api.jsonpath}."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpath import MAX_VISITED, MAX_VISITED_PER_ITEM, MISSING, JSONPath, JSONPathError

OBJECT = {
    "spec": {"a": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "dotted.name/x": "d"},
    "metadata": {"labels": {"example.com/owner": "ann"}},
}


class JSONPathTests(SynchronousTestCase):
    """Tests for the evaluation of paths."""

    def test_found(self) -> None:
        """Fields, indexes, wildcards, filters and descents find the same values as kubectl."""
        for path, values in {
            ".spec.a": [1],
            ".spec.list[0].n": ["x"],
            ".spec.list[-1].n": ["y"],
            ".spec.list[*].v": [1, 2],
            ".spec.list[0:1].v": [1],
            '.spec.list[?(@.n=="y")].v': [2],
            ".spec.list[?(@.v>1)].n": ["y"],
            r".metadata.labels.example\.com/owner": ["ann"],
            ".metadata.labels['example.com/owner']": ["ann"],
            "..v": [1, 2],
            ".spec.missing.further": [],
            ".spec.a.b": [],
        }.items():
            self.assertEqual(JSONPath(path).find(OBJECT), values, path)

    def test_first(self) -> None:
        """The first value is found without a search for further ones; a null is a value."""
        self.assertEqual(JSONPath("..v").first(OBJECT), 1)
        self.assertIs(JSONPath("..w").first(OBJECT), MISSING)
        self.assertIsNone(JSONPath(".a").first({"a": None}))

    def test_descents_from_descents(self) -> None:
        """The number of visited values is bounded for any path and object; nested descents would multiply it."""
        seen = 0

        class Counted(dict[str, Any]):
            """An object that counts lookups."""

            def __contains__(self, key: object) -> bool:
                nonlocal seen
                seen += 1
                return super().__contains__(key)

        value: Any = "x"
        for _ in range(40):
            value = Counted(a=value, b=value)
        for path in ("..a..a..a..a", "..a..b..missing", "..*..*", '..a[?(@..b=="y")]'):
            seen = 0
            result = JSONPath(path).find(value)
            self.assertLessEqual(len(result), MAX_VISITED)
            self.assertLessEqual(seen, MAX_VISITED)
        many = [{"n": {str(number): number for number in range(MAX_VISITED_PER_ITEM * 2)}}]
        self.assertEqual(JSONPath("[?(@.n.0==0)].n.1").find(many), [1])

    def test_unreadable(self) -> None:
        """An invalid path is rejected when it is compiled, not when it is evaluated."""
        for path in (".a[", ".a[?(@.b==)]", ".a{", ".a[::0]", f".a[{'9' * 5000}]", f".a[{'9' * 5000}:]"):
            self.assertRaises(JSONPathError, JSONPath, path)
