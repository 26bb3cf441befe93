"""
RFC 7386 as the reference applies it, which is as C{evanphx/json-patch} v4 does.

Where that differs from the RFC: nulls are dropped from objects in new lists too.
"""

from __future__ import annotations

from typing import Any

from ._documents import json_type
from .jsonpatch import PatchError


def merge_patch(document: dict[str, Any], patch: Any) -> dict[str, Any]:
    """
    Merge C{patch} into C{document}.

    @param document: Changed.
    @param patch: The decoded patch; not changed, and nothing of it becomes a part of the document.
    @raise PatchError: It is no object (400).
    """
    if patch is None:
        raise PatchError(400, "BadRequest", "Invalid JSON Patch")
    if not isinstance(patch, dict):
        why = f"json: cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        raise PatchError(400, "BadRequest", f"error decoding patch: {why}")
    _merge(document, patch)
    return document


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        current = document.get(key)
        if isinstance(current, dict):
            if isinstance(value, dict):
                _merge(current, value)
            else:
                # A list in place of an object is taken as it is, nulls and all.
                document[key] = _copied(value)
        else:
            document[key] = _pruned(value)


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _pruned(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_pruned(item) for item in value]
    return value


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
