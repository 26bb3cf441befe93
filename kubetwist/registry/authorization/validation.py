"""Access reviews; see kubernetes, C{pkg/apis/authorization/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.errors import Cause, forbidden, invalid, required
from ...api.names import label_value_problems, qualified_name_problems
from ...api.objectmeta import METADATA
from ...api.resource import JSONObject
from ..generic.validation.fields import Causes, go_json, in_order, invalid_shown

#: The fields of an entry of managedFields, in the order in which the reference prints them.
_ENTRY: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")


def validate_access_review(obj: JSONObject) -> list[Cause]:
    """C{SubjectAccessReview}: who, and what."""
    causes: Causes = []
    _question(obj, True, causes)
    _metadata(obj, "must be empty", (), causes)
    return causes


def validate_self_access_review(obj: JSONObject) -> list[Cause]:
    """C{SelfSubjectAccessReview}: what; who is known."""
    causes: Causes = []
    _question(obj, False, causes)
    _metadata(obj, "must be empty", (), causes)
    return causes


def validate_local_access_review(obj: JSONObject) -> list[Cause]:
    """C{LocalSubjectAccessReview}: who, and what in this namespace."""
    causes: Causes = []
    _question(obj, True, causes)
    _metadata(obj, "must be empty except for namespace", ("namespace",), causes)
    spec = obj.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None:
        namespace = resource.get("namespace") or ""
        if namespace != (obj["metadata"].get("namespace") or ""):
            path = "spec.resourceAttributes.namespace"
            causes.append(invalid(path, namespace, "must match metadata.namespace"))
    if other is not None:
        text = "disallowed on this kind of request"
        causes.append(invalid_shown("spec.nonResourceAttributes", _shown_path(other), text))
    return causes


def _question(obj: JSONObject, of_somebody: bool, causes: Causes) -> None:
    spec = obj.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        text = "cannot be specified in combination with resourceAttributes"
        causes.append(invalid_shown("spec.nonResourceAttributes", _shown_path(other), text))
    if resource is None and other is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes.append(invalid("spec.resourceAttributes", None, text))
    if of_somebody and not spec.get("user") and not spec.get("groups"):
        causes.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    if resource is not None:
        path = "spec.resourceAttributes"
        _selector(resource.get("fieldSelector"), f"{path}.fieldSelector", _field_requirement, causes)
        _selector(resource.get("labelSelector"), f"{path}.labelSelector", _label_requirement, causes)


def _shown_path(attributes: JSONObject) -> str:
    return go_json({"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""})


def _metadata(obj: JSONObject, text: str, allowed: tuple[str, ...], causes: Causes) -> None:
    meta = {name: value for name, value in (obj.get("metadata") or {}).items() if value}
    if meta.keys() <= {"managedFields", *allowed}:
        return
    for name in ("labels", "annotations"):
        if name in meta:
            meta[name] = dict(sorted(meta[name].items()))
    if "managedFields" in meta:
        meta["managedFields"] = [in_order(entry, _ENTRY) for entry in meta["managedFields"]]
    causes.append(invalid_shown("metadata", go_json(in_order(meta, METADATA)), text))


def _selector(
    selector: JSONObject | None, path: str, check: Callable[[JSONObject, str, Causes], None], causes: Causes
) -> None:
    if selector is None:
        return
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        causes.append(invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements"))
    if not raw and not requirements:
        text = f"when {path} is specified, requirements or rawSelector is required"
        causes.append(required(f"{path}.requirements", text))
    for index, requirement in enumerate(requirements or ()):
        check(requirement, f"{path}.requirements[{index}]", causes)


def _values(requirement: JSONObject, path: str, causes: Causes) -> None:
    # Operators that are unknown here may be known to newer clients: they pass.
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        causes.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        causes.append(forbidden(f"{path}.values", text))


def _field_requirement(requirement: JSONObject, path: str, causes: Causes) -> None:
    if not requirement.get("key"):
        causes.append(required(f"{path}.key", "must be specified"))
    _values(requirement, path, causes)


def _label_requirement(requirement: JSONObject, path: str, causes: Causes) -> None:
    _values(requirement, path, causes)
    key = requirement.get("key") or ""
    causes += [invalid(f"{path}.key", key, text) for text in qualified_name_problems(key)]
    for index, value in enumerate(requirement.get("values") or ()):
        causes += [invalid(f"{path}.values[{index}]", value, text) for text in label_value_problems(value)]
