"""Conversion between objects of built-in kinds and C{autoscaling/v1 Scale}."""

from __future__ import annotations

from ...api.errors import FieldError
from ...api.names import validate_dns1123_subdomain
from ...api.objectmeta import validate_metadata_on_create
from ...api.resource import JSONObject
from .validation.fields import not_negative

#: Kinds whose selector is a map of labels.
_MAPS = frozenset((("", "ReplicationController"),))


def scale_of(obj: JSONObject, group: str, kind: str) -> JSONObject:
    """Return the C{autoscaling/v1 Scale} of a Deployment, ReplicaSet, StatefulSet or ReplicationController."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    status = obj.get("status") or {}
    scale_metadata = {
        name: metadata[name]
        for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
        if name in metadata
    }
    scale_spec = {"replicas": spec["replicas"]} if spec.get("replicas") else {}
    scale_status: JSONObject = {"replicas": status.get("replicas") or 0}
    selector = spec.get("selector")
    text = labels_text(selector) if (group, kind) in _MAPS else selector_text(selector)
    if text:
        scale_status["selector"] = text
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": scale_metadata,
        "spec": scale_spec,
        "status": scale_status,
    }


def apply_scale(obj: JSONObject, scale: JSONObject) -> None:
    """
    Set the replicas of a scale in an object.

    @param obj: The object; modified.
    @param scale: The C{Scale}.
    """
    spec = obj.get("spec")
    if spec is None:
        spec = obj["spec"] = {}
    spec["replicas"] = (scale.get("spec") or {}).get("replicas") or 0


def validate_scale(scale: JSONObject) -> list[FieldError]:
    """Return all validation errors of a scale: metadata and replicas (C{pkg/apis/autoscaling/validation})."""
    errors = validate_metadata_on_create(scale["metadata"], True, validate_dns1123_subdomain)
    not_negative((scale.get("spec") or {}).get("replicas"), "spec.replicas", errors)
    return errors


def labels_text(labels: JSONObject | None) -> str:
    """Return the text of a selector that is a map of labels."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def selector_text(selector: JSONObject | None) -> str:
    """Return the text of a label selector, sorted by key."""
    if selector is None:
        return ""
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression.get("key", ""), expression.get("operator", "")
        if operator in ("In", "NotIn"):
            values = ",".join(sorted(expression.get("values") or ()))
            parts.append((key, f"{key} {operator.lower()} ({values})"))
        else:
            parts.append((key, key if operator == "Exists" else f"!{key}"))
    return ",".join(text for _, text in sorted(parts, key=lambda part: part[0]))
