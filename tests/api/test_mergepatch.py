"""Tests for L{kubetwist.api.mergepatch}."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.jsonpatch import (
    PatchError,
)
from kubetwist.api.mergepatch import check_merge_patch, merge_patch
from tests.api.strategies import documents


def rfc7386(target: Any, patch: Any) -> Any:
    """Apply a patch by the algorithm in the RFC."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = rfc7386(merged.get(key), value)
    return merged


def without_lists(document: Any) -> bool:
    """Return whether a document has no lists."""
    if isinstance(document, dict):
        return all(map(without_lists, document.values()))
    return not isinstance(document, list)


objects = st.dictionaries(st.sampled_from("abc"), documents, max_size=3)


class MergePatchTests(SynchronousTestCase):
    """Tests for merge patches."""

    def test_merge(self) -> None:
        """Objects are merged, null removes a key, and other values replace."""
        document = {"a": {"x": 1, "y": 2}, "l": [1, 2], "n": 1}
        patch = {"a": {"y": None, "z": 3}, "l": [9], "n": None, "new": {"b": {"c": None, "d": 1}}}
        self.assertEqual(merge_patch(document, patch), {"a": {"x": 1, "z": 3}, "l": [9], "new": {"b": {"d": 1}}})

    def test_nulls_in_lists(self) -> None:
        """Nulls are removed from objects in new lists, but not from lists, nor if a list replaces an object."""
        items = [{"a": None, "b": 1}, None]
        self.assertEqual(merge_patch({}, {"l": items}), {"l": [{"b": 1}, None]})
        self.assertEqual(merge_patch({"l": [0]}, {"l": items}), {"l": [{"b": 1}, None]})
        self.assertEqual(merge_patch({"l": {"x": 1}}, {"l": items}), {"l": items})

    def test_not_an_object(self) -> None:
        """A patch that is not an object is a bad request."""
        for patch, kind in (([], "array"), (1, "number"), ("x", "string"), (True, "bool")):
            detail = f"cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
            error = self.assertRaises(PatchError, check_merge_patch, patch)
            self.assertEqual((error.code, error.message), (400, f"error decoding patch: json: {detail}"))
        for patch in (None, 1, "x", True):
            error = self.assertRaises(PatchError, merge_patch, {}, patch)
            self.assertEqual((error.code, error.message), (400, "Invalid JSON Patch"))

    def test_lists_replace(self) -> None:
        """Without field validation, a patch that is a list replaces the document, without nulls in its objects."""
        self.assertEqual(merge_patch({"a": 1}, [{"a": None, "b": [None]}, None]), [{"b": [None]}, None])

    @given(objects, objects.filter(without_lists))
    def test_rfc(self, document: dict[str, Any], patch: dict[str, Any]) -> None:
        """Without lists in the patch, the result is the RFC's, and the document is not changed."""
        before = copy.deepcopy(document)
        self.assertEqual(merge_patch(document, patch), rfc7386(before, patch))
        self.assertEqual(document, before)

    @given(objects, objects)
    def test_patch_is_not_changed(self, document: dict[str, Any], patch: dict[str, Any]) -> None:
        """A patch can be applied again after a conflict, with the same result, even to a changed document."""
        before, again = copy.deepcopy(patch), copy.deepcopy(document)
        once = merge_patch(document, patch)
        expected = copy.deepcopy(once)
        merge_patch(once, {"a": {"x": 1}, "b": {"x": 1}, "c": {"x": 1}})
        self.assertEqual((merge_patch(again, patch), patch), (expected, before))
