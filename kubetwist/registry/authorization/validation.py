"""Validation of access reviews; see kubernetes, C{pkg/apis/authorization/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.errors import FieldError, forbidden, invalid, required
from ...api.names import validate_label_value, validate_qualified_name
from ...api.objectmeta import METADATA
from ...api.resource import JSONObject
from ..generic.validation.fields import ErrorList, go_json, in_order, invalid_shown

#: The fields of an entry of managedFields, in the order in which the reference prints them.
_ENTRY: Final = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")


def validate_access_review(obj: JSONObject) -> list[FieldError]:
    """Validate a C{SubjectAccessReview}: a user or groups, and the attributes."""
    errors: ErrorList = []
    _validate_attributes(obj, True, errors)
    _validate_metadata(obj, "must be empty", (), errors)
    return errors


def validate_self_access_review(obj: JSONObject) -> list[FieldError]:
    """Validate a C{SelfSubjectAccessReview}: the attributes."""
    errors: ErrorList = []
    _validate_attributes(obj, False, errors)
    _validate_metadata(obj, "must be empty", (), errors)
    return errors


def validate_local_access_review(obj: JSONObject) -> list[FieldError]:
    """Validate a C{LocalSubjectAccessReview}, whose namespace must equal the namespace of the request."""
    errors: ErrorList = []
    _validate_attributes(obj, True, errors)
    _validate_metadata(obj, "must be empty except for namespace", ("namespace",), errors)
    spec = obj.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None:
        namespace = resource.get("namespace") or ""
        if namespace != (obj["metadata"].get("namespace") or ""):
            path = "spec.resourceAttributes.namespace"
            errors.append(invalid(path, namespace, "must match metadata.namespace"))
    if other is not None:
        text = "disallowed on this kind of request"
        errors.append(_invalid_path(other, text))
    return errors


def _validate_attributes(obj: JSONObject, requires_subject: bool, errors: ErrorList) -> None:
    spec = obj.get("spec") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        text = "cannot be specified in combination with resourceAttributes"
        errors.append(_invalid_path(other, text))
    if resource is None and other is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid("spec.resourceAttributes", None, text))
    if requires_subject and not spec.get("user") and not spec.get("groups"):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    if resource is not None:
        path = "spec.resourceAttributes"
        _validate_selector(resource.get("fieldSelector"), f"{path}.fieldSelector", _validate_field_requirement, errors)
        _validate_selector(resource.get("labelSelector"), f"{path}.labelSelector", _validate_label_requirement, errors)


def _invalid_path(attributes: JSONObject, text: str) -> FieldError:
    shown = go_json({"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""})
    path, go_type = "spec.nonResourceAttributes", "authorization.NonResourceAttributes"
    return invalid_shown(path, shown, text, attributes, go_type)


def _validate_metadata(obj: JSONObject, text: str, allowed: tuple[str, ...], errors: ErrorList) -> None:
    meta = {name: value for name, value in (obj.get("metadata") or {}).items() if value}
    if meta.keys() <= {"managedFields", *allowed}:
        return
    for name in ("labels", "annotations"):
        if name in meta:
            meta[name] = dict(sorted(meta[name].items()))
    if "managedFields" in meta:
        meta["managedFields"] = [in_order(entry, _ENTRY) for entry in meta["managedFields"]]
    errors.append(invalid_shown("metadata", go_json(in_order(meta, METADATA)), text, meta, "v1.ObjectMeta"))


def _validate_selector(
    selector: JSONObject | None, path: str, check: Callable[[JSONObject, str, ErrorList], None], errors: ErrorList
) -> None:
    if selector is None:
        return
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        errors.append(invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements"))
    if not raw and not requirements:
        text = f"when {path} is specified, requirements or rawSelector is required"
        errors.append(required(f"{path}.requirements", text))
    for index, requirement in enumerate(requirements or ()):
        check(requirement, f"{path}.requirements[{index}]", errors)


def _validate_values(requirement: JSONObject, path: str, errors: ErrorList) -> None:
    # Unknown operators are accepted for compatibility with newer clients.
    operator, values = requirement.get("operator"), requirement.get("values")
    if operator in ("In", "NotIn") and not values:
        errors.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    if operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        errors.append(forbidden(f"{path}.values", text))


def _validate_field_requirement(requirement: JSONObject, path: str, errors: ErrorList) -> None:
    if not requirement.get("key"):
        errors.append(required(f"{path}.key", "must be specified"))
    _validate_values(requirement, path, errors)


def _validate_label_requirement(requirement: JSONObject, path: str, errors: ErrorList) -> None:
    _validate_values(requirement, path, errors)
    key = requirement.get("key") or ""
    errors += [invalid(f"{path}.key", key, text) for text in validate_qualified_name(key)]
    for index, value in enumerate(requirement.get("values") or ()):
        errors += [invalid(f"{path}.values[{index}]", value, text) for text in validate_label_value(value)]
