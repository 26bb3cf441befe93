"""
From client-side to server-side apply: the annotation in which C{kubectl} keeps what it applied last.

An apply by the manager C{kubectl} may change what the annotation says was applied before, if it still is so; and
where there is an annotation, it is kept up to date.
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
    Ownership,
)
from ....schema.merge.types import TypedError

ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"

#: How many bytes all annotations of an object may have together.
MOST_ANNOTATIONS = 256 << 10


def disputed(conflicts: Conflicts, rules: Ownership, live: JSONObject) -> Conflicts:
    """
    The conflicts that are left when what the annotation allows is taken away.

    @param live: The object in the version of C{rules}.
    """
    allowed = _allowed(rules, live)
    left = {}
    for manager, fields in conflicts.found.items():
        rest = difference(fields, allowed)
        if rest:
            left[manager] = rest
    return Conflicts(left)


def _allowed(rules: Ownership, live: JSONObject) -> FieldSet:
    """What was applied from the client's side and is still as it was."""
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
    if kind.check(applied, False) or kind.check(live, False):
        return LEAF
    try:
        changed, removed = kind.compare(applied, live)
    except TypedError:
        return LEAF
    return difference(difference(kind.owned(applied), changed or LEAF), removed or LEAF)


def refresh(meta: JSONObject, applied: JSONObject) -> None:
    """
    Bring the annotation up to date, where there is one.

    @param meta: The metadata of the result; it is changed.
    @param applied: What was applied.
    """
    annotations = meta.get("annotations")
    if not annotations or not annotations.get(ANNOTATION):
        return
    annotations = meta["annotations"] = dict(annotations)
    annotations[ANNOTATION] = scalar_text(_sorted(_without_annotation(applied))) + "\n"
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items())
    if size > MOST_ANNOTATIONS:
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
