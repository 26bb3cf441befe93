"""Validation of RuntimeClasses; see kubernetes, C{pkg/apis/node/validation}."""

from __future__ import annotations

from ...api.errors import Cause, required
from ...api.gostructs import go_struct
from ...api.objectmeta import Parts
from ...api.resource import JSONObject
from ..core.pod.validation.resources import validate_requirements
from ..core.pod.validation.spec import validate_tolerations
from ..generic.validation.fields import Causes, check, dns_label, go_json, immutable, labels


def validate_runtime_class(obj: JSONObject) -> list[Cause]:
    """A handler, and what it costs and where it runs."""
    causes: Causes = []
    handler = obj.get("handler") or ""
    if handler:
        check(handler, "handler", dns_label, causes)
    else:
        causes.append(required("handler"))
    if obj.get("overhead") is not None:
        validate_requirements({"limits": obj["overhead"].get("podFixed")}, "overhead", causes)
    scheduling = obj.get("scheduling")
    if scheduling is not None:
        labels(scheduling.get("nodeSelector"), "scheduling.nodeSelector", causes)
        tolerations = scheduling.get("tolerations") or []
        validate_tolerations(tolerations, "scheduling.tolerations", causes)
        _distinct_tolerations(tolerations, causes)
    return causes


def _distinct_tolerations(tolerations: list[JSONObject], causes: Causes) -> None:
    seen: set[tuple[str, ...]] = set()
    for index, toleration in enumerate(tolerations):
        key = tuple(toleration.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            shown = go_json(go_struct(toleration, "Toleration"))
            causes.append(Cause("FieldValueDuplicate", f"Duplicate value: {shown}", f"scheduling.tolerations[{index}]"))
        seen.add(key)


def validate_runtime_class_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """The handler stays."""
    causes: Causes = []
    immutable(obj.get("handler") or "", old.get("handler") or "", "handler", causes)
    return Parts(validate_runtime_class(obj), causes)
