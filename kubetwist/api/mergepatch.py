"""
JSON merge patches (RFC 7386) as C{evanphx/json-patch} v4, the library of the reference, applies them.

Unlike in the RFC, nulls are also removed from objects in new lists.
"""

from __future__ import annotations

from .documents import json_type
from .jsonpatch import PatchError
from .jsontypes import JSONObject, JSONValue


def check_merge_patch(patch: JSONValue) -> None:
    """
    Reject a patch that field validation rejects before the merge.

    @raise PatchError: The patch is neither an object nor null (400).
    """
    if patch is not None and not isinstance(patch, dict):
        reason = f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        raise PatchError(400, "BadRequest", f"error decoding patch: {reason}")


def bad_merge_patch() -> PatchError:
    """Return the error for a patch that the merge rejects."""
    return PatchError(400, "BadRequest", "Invalid JSON Patch")


def merge_patch(document: JSONObject, patch: JSONValue) -> JSONValue:
    """
    Merge C{patch} into C{document}.

    @param document: Not modified.
    @param patch: The decoded patch; not modified.
    @return: The merged object, which shares unchanged parts with the document, and nothing with the patch; or a copy of
        the patch if that is a list.
    @raise PatchError: The patch is neither an object nor a list (400).
    """
    if isinstance(patch, list):
        return _pruned(patch)
    if not isinstance(patch, dict):
        raise bad_merge_patch()
    return _merged(document, patch)


def _merged(document: JSONObject, patch: JSONObject) -> JSONObject:
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
            continue
        current = merged.get(key)
        if isinstance(current, dict):
            # A list that replaces an object is used unchanged, including nulls.
            merged[key] = _merged(current, value) if isinstance(value, dict) else _copied(value)
        else:
            merged[key] = _pruned(value)
    return merged


def _pruned(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value


def _copied(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
