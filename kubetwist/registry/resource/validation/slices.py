"""Validation of ResourceSlices; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....api.errors import FieldError, forbidden, go_json, invalid, required, too_long, too_many
from ....api.gostructs import go_struct
from ....api.names import byte_length, validate_label_value, validate_qualified_name
from ....api.resource import JSONObject
from ...core.pod.validation.affinity import validate_node_selector
from ...generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    immutable,
    invalid_shown,
    need,
    quantity,
    unsupported,
)
from .capacity import validate_request_policy
from .common import (
    MAX_ITEMS,
    MAX_NAME_LENGTH,
    validate_binding_conditions,
    validate_driver_name,
    validate_list,
    validate_pool_name,
    validate_property_name,
    validate_set,
)

_NUMBER: Final = r"(0|[1-9]\d*)"
_PART: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", re.ASCII
).fullmatch
#: Maximum number of values of all attributes of a device.
_MAX_VALUES: Final = 48
_NODES: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_NODES_OF_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
    "true in the ResourceSlice spec"
)


def validate_slice(obj: JSONObject, old: JSONObject | None = None) -> list[FieldError]:
    """Validate a ResourceSlice: pool, devices and nodes; errors of unchanged parts of C{old} are ignored."""
    errors: ErrorList = []
    spec = obj["spec"]
    validate_driver_name(spec.get("driver") or "", "spec.driver", errors)
    _validate_pool(spec.get("pool") or {}, errors)
    if old is not None:
        name, was = ((one["spec"].get("pool") or {}).get("name") for one in (obj, old))
        immutable(name, was, "spec.pool.name", errors)
        for field in ("driver", "nodeName"):
            immutable(spec.get(field), old["spec"].get(field), f"spec.{field}", errors)
    chosen = _validate_node_selection(spec, "spec", ("allNodes", "perDeviceNodeSelection"), errors)
    if not chosen:
        errors.append(required("spec", _NODES))
    elif len(chosen) > 1:
        shown = f"{{{', '.join(chosen)}}}"
        errors.append(invalid("spec", shown, f"{_NODES}, but multiple fields are set"))
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or []
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    each = bool(spec.get("perDeviceNodeSelection"))

    stored_taints: dict[str, list[JSONObject]] = {}
    for one in reversed((old["spec"].get("devices") or []) if old is not None else []):
        stored_taints[one.get("name") or ""] = one.get("taints") or []

    def device(one: JSONObject, path: str, errors: ErrorList) -> None:
        _validate_device(one, path, each, errors, stored_taints.get(one.get("name") or ""))

    max_devices = 64 if advanced else 128
    validate_set(devices, device, lambda one: one.get("name") or "", "spec.devices", errors, max_items=max_devices)
    counters = spec.get("sharedCounters") or []
    validate_set(
        counters, _validate_counter_set, lambda one: one.get("name") or "", "spec.sharedCounters", errors, max_items=8
    )
    return errors


def validate_slice_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that pool, driver and node are unchanged."""
    return validate_slice(obj, old)


def _validate_counter_set(one: JSONObject, path: str, errors: ErrorList) -> None:
    need(one.get("name"), f"{path}.name", dns_label, errors)
    _validate_counters(one, path, errors)


def _validate_consumption(one: JSONObject, path: str, errors: ErrorList) -> None:
    need(one.get("counterSet"), f"{path}.counterSet", dns_label, errors)
    _validate_counters(one, path, errors)


def _validate_counters(one: JSONObject, path: str, errors: ErrorList) -> None:
    counters, field_path = one.get("counters") or {}, f"{path}.counters"
    if not counters:
        errors.append(required(field_path))
    elif len(counters) > MAX_ITEMS:
        errors.append(too_many(field_path, len(counters), MAX_ITEMS))
    else:
        for name in sorted(counters):
            check(name, field_path, dns_label, errors)


def _shortened(key: str, limit: int) -> str:
    """Return a key for a path; the middle of a long key is left out."""
    if len(key) <= limit:
        return key
    return f"{key[: (limit - 2) // 2]}...{key[-((limit - 3) // 2) :]}"


def _validate_pool(pool: JSONObject, errors: ErrorList) -> None:
    validate_pool_name(pool.get("name") or "", "spec.pool.name", errors)
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))


def _validate_node_selection(
    spec: JSONObject, path: str, flags: Sequence[str], errors: ErrorList, *, single: bool = True
) -> list[str]:
    """Return the fields that select nodes; a slice must have exactly one if C{single} is set."""
    chosen: list[str] = []
    node = spec.get("nodeName")
    if node:
        chosen.append("`nodeName`")
        check(node, f"{path}.nodeName", dns_subdomain, errors)
    elif node is not None:
        text = "must be either unset or set to a non-empty string" if single else "must not be empty"
        errors.append(invalid(f"{path}.nodeName", node, text))
    selector = spec.get("nodeSelector")
    if selector is not None:
        chosen.append("`nodeSelector`")
        validate_node_selector(selector, f"{path}.nodeSelector", errors)
        terms = selector.get("nodeSelectorTerms")
        if single and len(terms or ()) != 1:
            field_path = f"{path}.nodeSelector.nodeSelectorTerms"
            shown = None if terms is None else [go_struct(term, "NodeSelectorTerm") for term in terms]
            errors.append(invalid_shown(field_path, go_json(shown), "must have exactly one node selector term"))
    for name in flags:
        if spec.get(name):
            chosen.append(f"`{name}`")
        elif spec.get(name) is not None:
            errors.append(invalid(f"{path}.{name}", spec[name], "must be either unset or set to true"))
    return chosen


def _validate_device(
    device: JSONObject, path: str, each: bool, errors: ErrorList, stored_taints: list[JSONObject] | None
) -> None:
    check(device.get("name") or "", f"{path}.name", dns_label, errors)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > MAX_ITEMS:
        text = f"the total number of attributes and capacities must not exceed {MAX_ITEMS}"
        errors.append(invalid(path, len(attributes) + len(capacity), text))
    if len(attributes) > _MAX_VALUES:
        text = f"the total number of attribute values must not exceed {_MAX_VALUES}"
        errors.append(invalid(path, len(attributes), text))
    for name, attribute in sorted(attributes.items()):
        validate_property_name(name, f"{path}.attributes", errors)
        _validate_attribute(attribute, f"{path}.attributes[{_shortened(name, MAX_NAME_LENGTH)}]", errors)
    for name, amount in sorted(capacity.items()):
        validate_property_name(name, f"{path}.capacity", errors)
        if amount.get("requestPolicy") is not None:
            field_path = f"{path}.capacity[{_shortened(name, MAX_NAME_LENGTH)}].requestPolicy"
            if device.get("allowMultipleAllocations"):
                validate_request_policy(amount["requestPolicy"], quantity(amount.get("value") or 0), field_path, errors)
            else:
                errors.append(forbidden(field_path, "allowMultipleAllocations must be true"))
    if stored_taints is None or stored_taints != (device.get("taints") or []):
        validate_list(device.get("taints"), _validate_taint, f"{path}.taints", errors, max_items=16)
    consumed = device.get("consumesCounters") or []
    field_path = f"{path}.consumesCounters"
    validate_set(
        consumed, _validate_consumption, lambda one: one.get("counterSet") or "", field_path, errors, max_items=2
    )
    if each:
        chosen = _validate_node_selection(device, path, ("allNodes",), errors, single=False)
        if not chosen:
            errors.append(required(path, _NODES_OF_DEVICE))
        elif len(chosen) > 1:
            errors.append(invalid(path, f"{{{', '.join(chosen)}}}", _NODES_OF_DEVICE))
    elif any(device.get(name) is not None for name in ("nodeName", "nodeSelector", "allNodes")):
        text = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        errors.append(invalid(path, None, text))
    validate_binding_conditions(device, path, errors)


def _validate_attribute(attribute: JSONObject, path: str, errors: ErrorList) -> None:
    value_fields = [name for name in ("bool", "int", "string", "version") if attribute.get(name) is not None]
    for name in ("string", "version"):
        if name == "version" and name in value_fields and not _VERSION(attribute["version"]):
            text = "must be a string compatible with semver.org spec 2.0.0"
            errors.append(invalid(f"{path}.version", attribute["version"], text))
        if name in value_fields and byte_length(attribute[name]) > 64:
            errors.append(too_long(f"{path}.{name}", 64))
    if not value_fields:
        errors.append(invalid(path, "", "exactly one value must be specified"))
    elif len(value_fields) > 1:
        shown = go_json(go_struct(attribute, "resource.DeviceAttribute"))
        errors.append(invalid_shown(path, shown, "exactly one value must be specified"))


def _validate_taint(taint: JSONObject, path: str, errors: ErrorList) -> None:
    check(taint.get("key") or "", f"{path}.key", validate_qualified_name, errors)
    if taint.get("value"):
        check(taint["value"], f"{path}.value", validate_label_value, errors)
    effect = taint.get("effect") or ""
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in ("NoExecute", "NoSchedule", "None"):
        errors.append(unsupported(f"{path}.effect", effect, ("NoExecute", "NoSchedule", "None")))
