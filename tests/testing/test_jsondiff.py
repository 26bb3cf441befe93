"""Tests for L{kubetwist.testing._jsondiff}."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpatch import apply_json_patch
from kubetwist.testing._jsondiff import json_patch

_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("a/~", max_size=2),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text("ab/~0", max_size=2), values, max_size=3),
    max_leaves=8,
)
_objects = st.dictionaries(st.text("ab/~0", min_size=1, max_size=2), _values, max_size=4)


class DifferenceTests(SynchronousTestCase):
    """L{json_patch}."""

    def test_operations(self) -> None:
        """Members and items are added, removed and replaced where they differ."""
        before = {"a": {"b/c": 1, "d~": 2}, "l": [1, 2, 3]}
        after = {"a": {"b/c": True, "e": None}, "l": [1, 4]}
        operations = [
            {"op": "remove", "path": "/a/d~0"},
            {"op": "replace", "path": "/a/b~1c", "value": True},
            {"op": "add", "path": "/a/e", "value": None},
            {"op": "remove", "path": "/l/2"},
            {"op": "replace", "path": "/l/1", "value": 4},
        ]
        patch = json_patch(before, after)
        self.assertEqual(sorted(patch, key=json.dumps), sorted(operations, key=json.dumps))
        self.assertEqual(json_patch(before, before), [])
        self.assertEqual(json_patch([], [1]), [{"op": "add", "path": "/-", "value": 1}])

    @given(_objects, _objects)
    def test_applied(self, before: Any, after: Any) -> None:
        """The patch of two objects, applied to the first one, makes the second one."""
        patched = apply_json_patch(json.loads(json.dumps(before)), json_patch(before, after))
        self.assertEqual(json.dumps(patched, sort_keys=True), json.dumps(after, sort_keys=True))
