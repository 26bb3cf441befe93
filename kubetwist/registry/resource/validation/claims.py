"""Validation of ResourceClaims and their templates; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ....api.addresses import validate_interface_address
from ....api.errors import FieldError, forbidden, go_json, invalid, required, too_long, too_many
from ....api.gostructs import go_struct
from ....api.names import byte_length, validate_label_value, validate_qualified_name
from ....api.objectmeta import UpdateErrors
from ....api.resource import JSONObject
from ...core.pod.validation.affinity import validate_node_selector
from ...generic.validation.conditions import conditions
from ...generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    immutable,
    invalid_shown,
    one_of,
    template_metadata,
    unsupported,
)
from .common import (
    MAX_ITEMS,
    validate_binding_conditions,
    validate_configuration,
    validate_driver_name,
    validate_fully_qualified_property_name,
    validate_list,
    validate_pool_name,
    validate_raw_object,
    validate_selector,
    validate_set,
)

_UID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def validate_claim(obj: JSONObject) -> list[FieldError]:
    """Validate a new claim."""
    errors: ErrorList = []
    _validate_devices(obj["spec"].get("devices") or {}, "spec.devices", errors)
    return errors


def validate_claim_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the spec is unchanged."""
    errors: ErrorList = []
    shown = go_json(go_struct(obj["spec"], "resource.ResourceClaimSpec"), raw=True)
    immutable(obj["spec"], old["spec"], "spec", errors, shown, untyped=True)
    return errors


def validate_claim_template(obj: JSONObject) -> list[FieldError]:
    """Validate the claim spec in a template."""
    errors: ErrorList = []
    metadata = obj["spec"].get("metadata") or {}
    template_metadata(metadata, "spec.metadata", errors)
    _validate_devices((obj["spec"].get("spec") or {}).get("devices") or {}, "spec.spec.devices", errors)
    return errors


def validate_claim_template_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate that the spec is unchanged."""
    errors: ErrorList = []
    shown = go_json(go_struct(obj["spec"], "resource.ResourceClaimTemplateSpec"), raw=True)
    immutable(obj["spec"], old["spec"], "spec", errors, shown, untyped=True)
    return UpdateErrors(validate_claim_template(obj), errors)


def validate_claim_status_update(obj: JSONObject, old: JSONObject) -> list[FieldError]:
    """Validate users, allocation and device status; an allocation can be removed, but not changed."""
    errors: ErrorList = []
    status, before = obj.get("status") or {}, old.get("status") or {}
    path, allocation = "status.reservedFor", status.get("allocation")
    users = status.get("reservedFor") or []
    validate_set(users, _validate_user, lambda user: user.get("uid") or "", path, errors, max_items=256)
    _validate_device_states(status, errors)
    if users and allocation is None:
        errors.append(forbidden(path, "may not be specified when `allocated` is not set"))
    stored_users = {go_json(user, sort_keys=True) for user in before.get("reservedFor") or ()}
    added = any(go_json(user, sort_keys=True) not in stored_users for user in users)
    if added and allocation is not None and "deletionTimestamp" in obj["metadata"]:
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden(path, text))
    if allocation is None:
        return errors
    if before.get("allocation") is not None:
        shown = go_json(go_struct(allocation, "resource.AllocationResult"), raw=True)
        immutable(allocation, before["allocation"], "status.allocation", errors, shown, untyped=True)
        return errors
    names = _request_names((obj["spec"].get("devices") or {}).get("requests") or ())

    def result(one: JSONObject, item_path: str, errors: ErrorList) -> None:
        _validate_reference(one.get("request") or "", names, f"{item_path}.request", errors)
        validate_driver_name(one.get("driver") or "", f"{item_path}.driver", errors)
        validate_pool_name(one.get("pool") or "", f"{item_path}.pool", errors)
        check(one.get("device") or "", f"{item_path}.device", dns_label, errors)
        validate_binding_conditions(one, item_path, errors)
        if one.get("shareID") is not None:
            _validate_share(one["shareID"], f"{item_path}.shareID", errors)

    def config(one: JSONObject, item_path: str, errors: ErrorList) -> None:
        one_of(one.get("source"), ("FromClaim", "FromClass"), f"{item_path}.source", errors)
        _validate_references(one, names, item_path, errors)
        validate_configuration(one, item_path, errors)

    devices, field_path = allocation.get("devices") or {}, "status.allocation.devices"
    validate_list(devices.get("results"), result, f"{field_path}.results", errors)
    validate_list(devices.get("config"), config, f"{field_path}.config", errors, max_items=2 * MAX_ITEMS)
    if allocation.get("nodeSelector") is not None:
        validate_node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector", errors)
    return errors


def device_key(one: JSONObject) -> tuple[str, ...]:
    """Return the key of the device, or of a share of it, in an entry of a claim's status."""
    return tuple(one.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def allocated(status: JSONObject) -> set[tuple[str, ...]]:
    """Return the keys of the allocated devices of a claim."""
    devices = (status.get("allocation") or {}).get("devices") or {}
    return {device_key(one) for one in devices.get("results") or ()}


def _validate_device_states(status: JSONObject, errors: ErrorList) -> None:
    own = allocated(status)
    states = status.get("devices") or []

    def state(one: JSONObject, item_path: str, errors: ErrorList) -> None:
        validate_driver_name(one.get("driver") or "", f"{item_path}.driver", errors)
        validate_pool_name(one.get("pool") or "", f"{item_path}.pool", errors)
        check(one.get("device") or "", f"{item_path}.device", dns_label, errors)
        if one.get("shareID") is not None:
            _validate_share(one["shareID"], f"{item_path}.shareID", errors)
        if device_key(one) not in own:
            shown = go_json(dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(one), strict=True)))
            errors.append(invalid_shown(item_path, shown, "must be an allocated device in the claim"))
        if len(one.get("conditions") or ()) > 8:
            errors.append(too_many(f"{item_path}.conditions", len(one["conditions"]), 8))
        conditions(one.get("conditions") or (), f"{item_path}.conditions", errors)
        if one.get("data") is not None:
            validate_raw_object(one["data"], f"{item_path}.data", errors)
        _validate_network(one.get("networkData") or {}, f"{item_path}.networkData", errors)

    validate_set(states, state, device_key, "status.devices", errors, max_items=len(states))


def _validate_network(data: JSONObject, path: str, errors: ErrorList) -> None:
    for name, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if byte_length(data.get(name) or "") > limit:
            errors.append(too_long(f"{path}.{name}", limit))
    validate_set(data.get("ips") or [], _validate_interface_address, str, f"{path}.ips", errors, max_items=16)


def _validate_interface_address(value: str, path: str, errors: ErrorList) -> None:
    for text in validate_interface_address(value):
        errors.append(invalid(path, value, text))


def _validate_share(uid: str, path: str, errors: ErrorList) -> None:
    if not _UID(uid):
        text = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
            "hexadecimal characters"
        )
        errors.append(invalid(path, uid, text))


def _validate_user(user: JSONObject, path: str, errors: ErrorList) -> None:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            errors.append(required(f"{path}.{name}"))


def _validate_devices(devices: JSONObject, path: str, errors: ErrorList) -> None:
    requests = devices.get("requests") or []
    names = _request_names(requests)
    validate_set(requests, _validate_request, lambda request: request.get("name") or "", f"{path}.requests", errors)

    def constraint(one: JSONObject, item_path: str, errors: ErrorList) -> None:
        _validate_references(one, names, item_path, errors)
        for field in ("matchAttribute", "distinctAttribute"):
            if one.get(field) is not None:
                validate_fully_qualified_property_name(one[field], f"{item_path}.{field}", errors)
                return
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        errors.append(required(item_path, text))

    def config(one: JSONObject, item_path: str, errors: ErrorList) -> None:
        _validate_references(one, names, item_path, errors)
        validate_configuration(one, item_path, errors)

    validate_list(devices.get("constraints"), constraint, f"{path}.constraints", errors)
    validate_list(devices.get("config"), config, f"{path}.config", errors)


def _request_names(requests: Iterable[JSONObject]) -> set[str]:
    """Return the names that can be referenced: requests and their subrequests."""
    names: set[str] = set()
    for request in requests:
        name = request.get("name") or ""
        names.add(name)
        names.update(f"{name}/{one.get('name') or ''}" for one in request.get("firstAvailable") or ())
    return names


def _validate_reference(name: str, names: set[str], path: str, errors: ErrorList) -> None:
    segments = name.split("/")
    if len(segments) > 2:
        errors.append(invalid(path, name, _REFERENCE))
        return
    for segment in segments:
        check(segment, path, dns_label, errors)
    if name not in names:
        errors.append(invalid(path, name, _REFERENCE))


def _validate_references(one: JSONObject, names: set[str], path: str, errors: ErrorList) -> None:
    def check_one(name: str, item_path: str, errors: ErrorList) -> None:
        _validate_reference(name, names, item_path, errors)

    validate_set(one.get("requests") or [], check_one, str, f"{path}.requests", errors)


def _validate_request(request: JSONObject, path: str, errors: ErrorList) -> None:
    check(request.get("name") or "", f"{path}.name", dns_label, errors)
    exactly, choice = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not choice:
        errors.append(required(path, "exactly one of `exactly` or `firstAvailable` is required"))
    elif exactly is not None and choice:
        text = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        errors.append(invalid(path, None, text))
    elif exactly is not None:
        _validate_exact_request(exactly, f"{path}.exactly", errors)
    else:
        validate_set(
            choice,
            _validate_alternative,
            lambda one: one.get("name") or "",
            f"{path}.firstAvailable",
            errors,
            max_items=8,
        )


def _validate_alternative(request: JSONObject, path: str, errors: ErrorList) -> None:
    check(request.get("name") or "", f"{path}.name", dns_label, errors)
    _validate_exact_request(request, path, errors)


def _validate_exact_request(request: JSONObject, path: str, errors: ErrorList) -> None:
    name = request.get("deviceClassName") or ""
    if not name:
        errors.append(required(f"{path}.deviceClassName"))
    else:
        check(name, f"{path}.deviceClassName", dns_subdomain, errors)
    validate_list(request.get("selectors"), validate_selector, f"{path}.selectors", errors)
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All":
        if count:
            text = f"must not be specified when allocationMode is '{mode}'"
            errors.append(invalid(f"{path}.count", count, text))
    elif mode == "ExactCount":
        if count <= 0:
            errors.append(invalid(f"{path}.count", count, "must be greater than zero"))
    else:
        errors.append(unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        _validate_toleration(toleration, f"{path}.tolerations[{index}]", errors)


def _validate_toleration(toleration: JSONObject, path: str, errors: ErrorList) -> None:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        check(key, f"{path}.key", validate_qualified_name, errors)
    if operator == "Exists":
        if value:
            errors.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        check(value, f"{path}.value", validate_label_value, errors)
    elif not operator:
        errors.append(required(f"{path}.operator"))
    else:
        errors.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect not in ("", "NoExecute", "NoSchedule", "None"):
        errors.append(unsupported(f"{path}.effect", effect, ("NoExecute", "NoSchedule", "None")))
