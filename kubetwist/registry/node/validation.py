"""Validation of RuntimeClasses; see kubernetes, C{pkg/apis/node/validation}."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from ...api.errors import FieldError, invalid, required, valued
from ...api.gostructs import go_struct
from ...api.objectmeta import UpdateErrors
from ...api.resource import JSONObject
from ..core.pod.validation.resources import validate_requirements
from ..core.pod.validation.spec import validate_tolerations
from ..generic.validation.fields import ErrorList, check, dns_label, go_json, immutable, labels


def validate_runtime_class(obj: JSONObject) -> list[FieldError]:
    """Validate a RuntimeClass: handler, overhead and scheduling."""
    errors: ErrorList = []
    handler = obj.get("handler") or ""
    if handler:
        check(handler, "handler", dns_label, errors)
    else:
        earlier = [invalid("handler", "", text) for text in dns_label("")]
        errors.append(required("handler").since(1, 36, earlier[0]))
    if obj.get("overhead") is not None:
        validate_requirements({"limits": obj["overhead"].get("podFixed")}, "overhead", errors)
    scheduling = obj.get("scheduling")
    if scheduling is not None:
        labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", errors)
        tolerations = scheduling.get("tolerations") or []
        found: ErrorList = []
        validate_tolerations(tolerations, _TOLERATIONS, found)
        # The path was wrong before.
        errors += [one.since(1, 35, evolve(one, field=_misplaced(one.field))) for one in found]
        _validate_distinct_tolerations(tolerations, errors)
    return errors


_TOLERATIONS: Final = "scheduling.tolerations"


def _misplaced(path: str) -> str:
    return f"{_TOLERATIONS}.tolerations{path.removeprefix(_TOLERATIONS)}"


def _validate_distinct_tolerations(tolerations: list[JSONObject], errors: ErrorList) -> None:
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = go_json(go_struct(toleration, "Toleration"))
            path = f"scheduling.tolerations[{index}]"
            duplicate = valued("FieldValueDuplicate", "Duplicate value", path, toleration, "", "core.Toleration", shown)
            errors.append(duplicate)
        seen.add(key)


def validate_runtime_class_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the handler is unchanged."""
    errors: ErrorList = []
    immutable(obj.get("handler") or "", old.get("handler") or "", "handler", errors)
    return UpdateErrors(validate_runtime_class(obj), errors)
