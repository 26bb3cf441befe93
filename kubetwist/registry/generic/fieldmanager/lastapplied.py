"""
Migration from client-side to server-side apply: the annotation in which C{kubectl} stores the last applied object.

An apply by the manager C{kubectl} may change fields that the annotation contains with their current values. An existing
annotation is updated.
"""

from __future__ import annotations

import orjson

from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject
from ....schema.merge.fieldpath import scalar_text
from ....schema.merge.fieldset import (
    LEAF,
    FieldSet,
    difference,
)
from ....schema.merge.ownership import (
    Conflicts,
    MergeUpdater,
)
from ....schema.merge.types import TypedError

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

#: Maximum size, in bytes, of all annotations of an object.
MAX_ANNOTATIONS_SIZE = 256 << 10


def remaining_conflicts(conflicts: Conflicts, rules: MergeUpdater, live: JSONObject) -> Conflicts:
    """
    Return the conflicts without those in fields that the annotation allows to change.

    @param live: The object in the version of C{rules}.
    """
    allowed = _allowed_fields(rules, live)
    remaining = {}
    for manager, fields in conflicts.fields_by_manager.items():
        rest = difference(fields, allowed)
        if rest:
            remaining[manager] = rest
    return Conflicts(remaining)


def _allowed_fields(rules: MergeUpdater, live: JSONObject) -> FieldSet:
    """Return the fields that client-side apply has set and that still have the applied values."""
    annotations = live["metadata"].get("annotations") or {}
    text = annotations.get(ANNOTATION)
    if not text:
        return LEAF
    try:
        applied = orjson.loads(text)
    except orjson.JSONDecodeError:
        return LEAF
    if not isinstance(applied, dict) or not applied.get("kind") or applied.get("apiVersion") != rules.version:
        return LEAF
    kind = rules.type
    if kind.validate(applied, False) or kind.validate(live, False):
        return LEAF
    try:
        changed, removed = kind.compare(applied, live)
    except TypedError:
        return LEAF
    return difference(difference(kind.to_field_set(applied), changed or LEAF), removed or LEAF)


def update_annotation(meta: JSONObject, applied: JSONObject) -> None:
    """
    Update the annotation if it exists.

    @param meta: The metadata of the result; modified.
    @param applied: The applied object.
    """
    annotations = meta.get("annotations")
    if not annotations or not annotations.get(ANNOTATION):
        return
    annotations = meta["annotations"] = dict(annotations)
    annotations[ANNOTATION] = scalar_text(_sorted(_without_annotation(applied))) + "\n"
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items())
    if size > MAX_ANNOTATIONS_SIZE:
        del annotations[ANNOTATION]


def _without_annotation(applied: JSONObject) -> JSONObject:
    meta = applied.get("metadata")
    annotations = meta.get("annotations") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not isinstance(annotations, dict) or ANNOTATION not in annotations:
        return applied
    rest = {name: value for name, value in annotations.items() if name != ANNOTATION}
    return {**applied, "metadata": {**meta, "annotations": rest}}


def _sorted(value: JSONValue) -> JSONValue:
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
