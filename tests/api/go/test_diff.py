"""Tests for L{kubetwist.api.go.diff}."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.diff import (
    diff,
    pretty,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


class DiffTests(SynchronousTestCase):
    """Tests for L{diff}."""

    @given(VALUES)
    def test_pretty(self, value: object) -> None:
        """The printed lines are the JSON of the value, and a value has no difference to itself."""
        self.assertEqual(json.loads("".join(pretty(value))), value)
        self.assertEqual(diff(value, value), "")

    def test_escapes(self) -> None:
        """HTML characters are escaped as in Go."""
        self.assertEqual(pretty("<a&b>"), ['"\\u003ca\\u0026b\\u003e"\n'])
        self.assertEqual(pretty({"a": [], "b": {}}), ["{\n", ' "a": [],\n', ' "b": {}\n', "}\n"])

    def test_hunks(self) -> None:
        """A change is shown with three lines of context before and after it."""
        old = {"a": 1, "b": {"c": None, "d": [1, 2]}, "e": "x", "f": True}
        new = {"a": 1, "b": {"c": None, "d": [1, 3]}, "e": "x", "f": True}
        self.assertEqual(
            diff(old, new),
            '@@ -4,7 +4,7 @@\n   "c": null,\n   "d": [\n    1,\n-   2\n+   3\n   ]\n  },\n  "e": "x",\n',
        )

    def test_large(self) -> None:
        """Values of thousands of lines are compared only if few lines differ."""
        self.assertEqual(diff(list(range(6000)), [1]), "")
        self.assertEqual(diff(list(range(5500)), [*range(5499), 0]).count("\n-"), 1)
        self.assertEqual(diff(list(range(7000)), [*range(6999), 0]), "")

    def test_many_changes(self) -> None:
        """All changes are shown in values of a few thousand lines."""
        old = [{"name": f"a{index}", "value": "v"} for index in range(500)]
        new = [{"name": f"a{index}", "value": "w"} for index in range(500)]
        shown = diff(old, new)
        self.assertEqual((shown.count("\n-"), shown.count("\n+")), (500, 500))
