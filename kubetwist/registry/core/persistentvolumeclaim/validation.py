"""Validation of PersistentVolumeClaims; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Any, Final

from ....api.errors import FieldError, forbidden, invalid, required
from ....api.featuregates import FeatureGates
from ....api.go.diff import diff
from ....api.gostructs import go_struct
from ....api.jsontypes import JSONValue
from ....api.names import validate_qualified_name
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    immutable,
    invalid_shown,
    is_selector,
    label_selector,
    quantity,
    quantity_positive,
    unsupported,
)
from ..persistentvolume.validation import NEGATIVE, OLD_STORAGE_CLASS, STORAGE_CLASS, VOLUME_MODES, access_modes
from ..pod.validation.resources import is_native

_CLAIM_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)


_RESIZES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


def validate_claim(obj: JSONObject, old: JSONObject | None = None) -> list[FieldError]:
    """Return the validation errors of a claim; invalid values that C{old} also has are accepted."""
    errors: ErrorList = []
    before = {} if old is None else old["spec"]
    validate_claim_spec(
        obj["spec"],
        "spec",
        errors,
        values=before.get("selector") is None or is_selector(before["selector"]),
        groups=all((before.get(name) or {}).get("apiGroup") is None for name in ("dataSource", "dataSourceRef")),
    )
    return errors


def validate_claim_spec(
    spec: JSONObject, path: str, errors: ErrorList, *, values: bool = True, groups: bool = True
) -> None:
    """
    Validate the spec of a claim or a claim template.

    @param spec: The spec.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param values: Whether the values of the selector must be valid values of labels.
    @param groups: Whether the groups of data sources must be valid.
    """
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        label_selector(spec["selector"], f"{path}.selector", errors, values=values)
    access_modes(modes, f"{path}.accessModes", errors)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required(f"{path}.resources[storage]"))
    else:
        quantity_positive(size, f"{path}.resources[storage]", errors)
    if spec.get("storageClassName"):
        check(spec["storageClassName"], f"{path}.storageClassName", dns_subdomain, errors)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        errors.append(unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    _data_sources(spec, path, errors, groups)
    if spec.get("volumeAttributesClassName"):
        class_path = f"{path}.volumeAttributesClassName"
        check(spec["volumeAttributesClassName"], class_path, dns_subdomain, errors)


def _data_sources(spec: JSONObject, path: str, errors: ErrorList, groups: bool) -> None:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    elsewhere = (reference or {}).get("namespace")
    if source is not None:
        _data_source(source, f"{path}.dataSource", errors, groups)
    if reference is not None:
        _data_source(reference, f"{path}.dataSourceRef", errors, groups)
    if elsewhere:
        check(elsewhere, f"{path}.dataSourceRef.namespace", dns_label, errors)
    if source is None or reference is None:
        return
    if elsewhere:
        text = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(invalid_shown(path, "{}", text))
    elif _identity(source) != _identity(reference):
        errors.append(invalid_shown(path, "{}", "must match dataSourceRef"))


def _identity(data: JSONObject) -> list[str]:
    return [data.get(field) or "" for field in ("apiGroup", "kind", "name")]


def _data_source(data: JSONObject, path: str, errors: ErrorList, groups: bool) -> None:
    for name in ("name", "kind"):
        if not data.get(name):
            errors.append(required(f"{path}.{name}"))
    group = data.get("apiGroup") or ""
    if not group and data.get("kind") != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(invalid(path, data.get("kind") or "", text))
    if group and groups:
        check(group, f"{path}.apiGroup", dns_subdomain, errors)


def validate_claim_update(obj: JSONObject, old: JSONObject, features: FeatureGates) -> list[FieldError]:
    """Return the validation errors of an update: only size and attributes of a bound claim may change."""
    errors = validate_claim(obj, old)
    spec, before = dict(obj["spec"]), dict(old["spec"])
    if not before.get("volumeName"):
        _carry(before, spec, "volumeName")
    _storage_class(obj, old, errors)
    if _is_given_class(obj, old):
        _carry(spec, before, "storageClassName")
    if (obj.get("status") or {}).get("phase") == "Bound":
        resources = spec.get("resources") or {}
        if resources.get("requests"):
            stored = ((before.get("resources") or {}).get("requests") or {}).get("storage")
            spec["resources"] = {**resources, "requests": {**resources["requests"], "storage": stored}}
        if features.since(1, 34) or spec.get("volumeAttributesClassName") is not None:
            _carry(spec, before, "volumeAttributesClassName")
    if spec != before:
        difference = diff(*(go_struct(claim_spec, "PersistentVolumeClaimSpec") for claim_spec in (before, spec)))
        errors.append(forbidden("spec", _CLAIM_SPEC + difference))
    _size(obj, old, errors, features)
    immutable(obj["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode", errors)
    if obj["spec"].get("volumeAttributesClassName") != old["spec"].get("volumeAttributesClassName"):
        _attributes(obj, old, errors, features)
    return errors


def _annotated_class(obj: JSONObject) -> str | None:
    class_name: str | None = (obj["metadata"].get("annotations") or {}).get(STORAGE_CLASS)
    return class_name


def _is_given_class(obj: JSONObject, old: JSONObject) -> bool:
    """Return whether an update sets the missing storage class, to that of the annotation if there is one."""
    new, annotated = obj["spec"].get("storageClassName"), _annotated_class(old)
    return new is not None and old["spec"].get("storageClassName") is None and annotated in (None, new)


def _storage_class(obj: JSONObject, old: JSONObject, errors: ErrorList) -> None:
    """Validate that the annotation is unchanged, or removed in favor of the field."""
    new, stored = _annotated_class(obj), _annotated_class(old)
    takes_over = stored is not None and _is_given_class(obj, old) and new in (None, stored)
    if not takes_over:
        immutable(new or "", stored or "", f"metadata.annotations.{STORAGE_CLASS}", errors)


def _attributes(obj: JSONObject, old: JSONObject, errors: ErrorList, features: FeatureGates) -> None:
    """Validate that a changed attributes class is not removed once the volume has one."""
    stored, new = old["spec"].get("volumeAttributesClassName"), obj["spec"].get("volumeAttributesClassName")
    path = "spec.volumeAttributesClassName"
    if not features.enabled("VolumeAttributesClass"):
        text = "update is forbidden when the VolumeAttributesClass feature gate is disabled"
        errors.append(forbidden(path, text))
        if stored is None:
            return
    if new:
        return
    if not features.since(1, 34):
        if stored is not None:
            new_value = "nil" if new is None else "an empty string"
            errors.append(forbidden(path, f"update from non-nil value to {new_value} is forbidden"))
    elif (old.get("status") or {}).get("currentVolumeAttributesClassName") is not None:
        new_value = "nil" if new is None else "empty string"
        text = f"update to {new_value} is forbidden when status.currentVolumeAttributesClassName is not nil"
        errors.append(forbidden(path, text))


def claim_annotation_warnings(obj: JSONObject) -> list[str]:
    """Return a warning about the deprecated annotation of the storage class."""
    if _annotated_class(obj) is None:
        return []
    return [f"metadata.annotations[{STORAGE_CLASS}]: {OLD_STORAGE_CLASS}"]


def _carry(target: JSONObject, source: JSONObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _recovers(old: JSONObject, features: FeatureGates) -> bool:
    """Return whether a claim can recover from a failed expansion."""
    status = old.get("status") or {}
    return features.enabled("RecoverVolumeExpansionFailure") or any(
        status.get(name) is not None for name in ("allocatedResources", "allocatedResourceStatuses")
    )


def _size(obj: JSONObject, old: JSONObject, errors: ErrorList, features: FeatureGates) -> None:
    """Validate that the requested size is at least the capacity."""

    def storage(holder: JSONObject, *path: str) -> JSONValue:
        value: Any = holder
        for name in path:
            value = (value or {}).get(name)
        return quantity(value if value is not None else "0")

    new = storage(obj, "spec", "resources", "requests", "storage")
    was = storage(old, "spec", "resources", "requests", "storage")
    if new >= was:
        return
    if not _recovers(old, features):
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than previous value"))
    elif new <= storage(old, "status", "capacity", "storage"):
        text = "field can not be less than status.capacity"
        errors.append(forbidden("spec.resources.requests.storage", text))


def validate_claim_status_update(obj: JSONObject, old: JSONObject, features: FeatureGates) -> list[FieldError]:
    """Return the validation errors of the status."""
    errors: ErrorList = []
    if not obj["spec"].get("accessModes"):
        errors.append(required("Spec.accessModes"))
    status = obj.get("status") or {}
    for name, value in sorted((status.get("capacity") or {}).items()):
        if quantity(value).sign() < 0:
            errors.append(invalid(f"status.capacity[{name}]", quantity(value).scaled_value(), NEGATIVE))
    if not _recovers(old, features):
        return errors
    path = "status.allocatedResourceStatuses" if features.since(1, 34) else "status.allocatedResourceStatus"
    for name, value in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        _resizable(name, path, errors)
        if value not in _RESIZES:
            # The value in the error of the reference is the resource.
            errors.append(unsupported(path, name, _RESIZES, name, "core.ResourceName"))
    path = "status.allocatedResources"
    for name, value in sorted((status.get("allocatedResources") or {}).items()):
        if _resizable(name, path, errors) and quantity(value).sign() < 0:
            errors.append(invalid(f"{path}[{name}]", quantity(value).scaled_value(), NEGATIVE))
    return errors


def _resizable(name: str, path: str, errors: ErrorList) -> bool:
    """Return whether C{allocatedResources} may contain a resource: storage, or one of another domain."""
    texts = validate_qualified_name(name)
    if texts:
        errors.extend(invalid(path, name, text) for text in texts)
    elif is_native(name) and name != "storage":
        errors.append(unsupported(path, name, ("storage",), name, "core.ResourceName"))
    else:
        return True
    return False
