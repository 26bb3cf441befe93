"""Tests for L{kubetwist.api.jsonpath}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpath import JSONPath, JSONPathError

OBJECT = {
    "spec": {"a": 1, "list": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "dotted.name/x": "d"},
    "metadata": {"labels": {"example.com/owner": "ann"}},
}


class JSONPathTests(SynchronousTestCase):
    """Values at paths."""

    def test_found(self) -> None:
        """Fields, indexes, wildcards, filters and descents find what kubectl finds."""
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

    def test_unreadable(self) -> None:
        """What is no path is refused when it is read, not when it is used."""
        for path in (".a[", ".a[?(@.b==)]", ".a{", ".a[::0]"):
            self.assertRaises(JSONPathError, JSONPath, path)
