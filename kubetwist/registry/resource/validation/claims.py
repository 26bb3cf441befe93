"""Validation of ResourceClaims and their templates; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ....api.addresses import interface_address_problems
from ....api.errors import Cause, forbidden, go_json, invalid, required, too_long, too_many
from ....api.gostructs import go_struct
from ....api.names import byte_length, label_value_problems, qualified_name_problems
from ....api.objectmeta import Parts
from ....api.resource import JSONObject
from ...core.pod.validation.affinity import validate_node_selector
from ...generic.validation.conditions import conditions
from ...generic.validation.fields import (
    Causes,
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
    MOST,
    binding,
    check_each,
    distinct,
    driver_name,
    full_property_name,
    pool_name,
    validate_configuration,
    validate_raw_object,
    validate_selector,
)

_UID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)


def validate_claim(obj: JSONObject) -> list[Cause]:
    """A new claim."""
    causes: Causes = []
    _devices(obj["spec"].get("devices") or {}, "spec.devices", causes)
    return causes


def validate_claim_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What is claimed stays."""
    causes: Causes = []
    shown = go_json(go_struct(obj["spec"], "resource.ResourceClaimSpec"), raw=True)
    immutable(obj["spec"], old["spec"], "spec", causes, shown, untyped=True)
    return causes


def validate_claim_template(obj: JSONObject) -> list[Cause]:
    """What the claims would be that are made of it."""
    causes: Causes = []
    metadata = obj["spec"].get("metadata") or {}
    template_metadata(metadata, "spec.metadata", causes)
    _devices((obj["spec"].get("spec") or {}).get("devices") or {}, "spec.spec.devices", causes)
    return causes


def validate_claim_template_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What claims are made of stays."""
    causes: Causes = []
    shown = go_json(go_struct(obj["spec"], "resource.ResourceClaimTemplateSpec"), raw=True)
    immutable(obj["spec"], old["spec"], "spec", causes, shown, untyped=True)
    return Parts(validate_claim_template(obj), causes)


def validate_claim_status_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Who uses the devices, and which they are; that is not changed, only taken back."""
    causes: Causes = []
    status, before = obj.get("status") or {}, old.get("status") or {}
    path, allocation = "status.reservedFor", status.get("allocation")
    users = status.get("reservedFor") or []
    distinct(users, _user, lambda user: user.get("uid") or "", path, causes, most=256)
    _device_states(status, causes)
    if users and allocation is None:
        causes.append(forbidden(path, "may not be specified when `allocated` is not set"))
    held = {go_json(user, sort_keys=True) for user in before.get("reservedFor") or ()}
    added = any(go_json(user, sort_keys=True) not in held for user in users)
    if added and allocation is not None and "deletionTimestamp" in obj["metadata"]:
        text = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        causes.append(forbidden(path, text))
    if allocation is None:
        return causes
    if before.get("allocation") is not None:
        shown = go_json(go_struct(allocation, "resource.AllocationResult"), raw=True)
        immutable(allocation, before["allocation"], "status.allocation", causes, shown, untyped=True)
        return causes
    names = _request_names((obj["spec"].get("devices") or {}).get("requests") or ())

    def result(one: JSONObject, here: str, causes: Causes) -> None:
        _reference(one.get("request") or "", names, f"{here}.request", causes)
        driver_name(one.get("driver") or "", f"{here}.driver", causes)
        pool_name(one.get("pool") or "", f"{here}.pool", causes)
        check(one.get("device") or "", f"{here}.device", dns_label, causes)
        binding(one, here, causes)
        if one.get("shareID") is not None:
            _share(one["shareID"], f"{here}.shareID", causes)

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        one_of(one.get("source"), ("FromClaim", "FromClass"), f"{here}.source", causes)
        _references(one, names, here, causes)
        validate_configuration(one, here, causes)

    devices, where = allocation.get("devices") or {}, "status.allocation.devices"
    check_each(devices.get("results"), result, f"{where}.results", causes)
    check_each(devices.get("config"), config, f"{where}.config", causes, most=2 * MOST)
    if allocation.get("nodeSelector") is not None:
        validate_node_selector(allocation["nodeSelector"], "status.allocation.nodeSelector", causes)
    return causes


def device_key(one: JSONObject) -> tuple[str, ...]:
    """Which device, or which share of one, an entry of a claim's status is about."""
    return tuple(one.get(name) or "" for name in ("driver", "pool", "device", "shareID"))


def allocated(status: JSONObject) -> set[tuple[str, ...]]:
    """The devices that a claim has."""
    devices = (status.get("allocation") or {}).get("devices") or {}
    return {device_key(one) for one in devices.get("results") or ()}


def _device_states(status: JSONObject, causes: Causes) -> None:
    own = allocated(status)
    states = status.get("devices") or []

    def state(one: JSONObject, here: str, causes: Causes) -> None:
        driver_name(one.get("driver") or "", f"{here}.driver", causes)
        pool_name(one.get("pool") or "", f"{here}.pool", causes)
        check(one.get("device") or "", f"{here}.device", dns_label, causes)
        if one.get("shareID") is not None:
            _share(one["shareID"], f"{here}.shareID", causes)
        if device_key(one) not in own:
            shown = go_json(dict(zip(("Driver", "Pool", "Device", "ShareID"), device_key(one), strict=True)))
            causes.append(invalid_shown(here, shown, "must be an allocated device in the claim"))
        if len(one.get("conditions") or ()) > 8:
            causes.append(too_many(f"{here}.conditions", len(one["conditions"]), 8))
        conditions(one.get("conditions") or (), f"{here}.conditions", causes)
        if one.get("data") is not None:
            validate_raw_object(one["data"], f"{here}.data", causes)
        _network(one.get("networkData") or {}, f"{here}.networkData", causes)

    distinct(states, state, device_key, "status.devices", causes, most=len(states))


def _network(data: JSONObject, path: str, causes: Causes) -> None:
    for name, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if byte_length(data.get(name) or "") > limit:
            causes.append(too_long(f"{path}.{name}", limit))
    distinct(data.get("ips") or [], _interface_address, str, f"{path}.ips", causes, most=16)


def _interface_address(value: str, path: str, causes: Causes) -> None:
    for text in interface_address_problems(value):
        causes.append(invalid(path, value, text))


def _share(uid: str, path: str, causes: Causes) -> None:
    if not _UID(uid):
        text = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
            "hexadecimal characters"
        )
        causes.append(invalid(path, uid, text))


def _user(user: JSONObject, path: str, causes: Causes) -> None:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            causes.append(required(f"{path}.{name}"))


def _devices(devices: JSONObject, path: str, causes: Causes) -> None:
    requests = devices.get("requests") or []
    names = _request_names(requests)
    distinct(requests, _request, lambda request: request.get("name") or "", f"{path}.requests", causes)

    def constraint(one: JSONObject, here: str, causes: Causes) -> None:
        _references(one, names, here, causes)
        for field in ("matchAttribute", "distinctAttribute"):
            if one.get(field) is not None:
                full_property_name(one[field], f"{here}.{field}", causes)
                return
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        causes.append(required(here, text))

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        _references(one, names, here, causes)
        validate_configuration(one, here, causes)

    check_each(devices.get("constraints"), constraint, f"{path}.constraints", causes)
    check_each(devices.get("config"), config, f"{path}.config", causes)


def _request_names(requests: Iterable[JSONObject]) -> set[str]:
    """What may be referred to: requests, and their alternatives."""
    names: set[str] = set()
    for request in requests:
        name = request.get("name") or ""
        names.add(name)
        names.update(f"{name}/{one.get('name') or ''}" for one in request.get("firstAvailable") or ())
    return names


def _reference(name: str, names: set[str], path: str, causes: Causes) -> None:
    segments = name.split("/")
    if len(segments) > 2:
        causes.append(invalid(path, name, _REFERENCE))
        return
    for segment in segments:
        check(segment, path, dns_label, causes)
    if name not in names:
        causes.append(invalid(path, name, _REFERENCE))


def _references(one: JSONObject, names: set[str], path: str, causes: Causes) -> None:
    def check_one(name: str, here: str, causes: Causes) -> None:
        _reference(name, names, here, causes)

    distinct(one.get("requests") or [], check_one, str, f"{path}.requests", causes)


def _request(request: JSONObject, path: str, causes: Causes) -> None:
    check(request.get("name") or "", f"{path}.name", dns_label, causes)
    exactly, choice = request.get("exactly"), request.get("firstAvailable") or []
    if exactly is None and not choice:
        causes.append(required(path, "exactly one of `exactly` or `firstAvailable` is required"))
    elif exactly is not None and choice:
        text = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        causes.append(invalid(path, None, text))
    elif exactly is not None:
        _wanted(exactly, f"{path}.exactly", causes)
    else:
        distinct(choice, _alternative, lambda one: one.get("name") or "", f"{path}.firstAvailable", causes, most=8)


def _alternative(request: JSONObject, path: str, causes: Causes) -> None:
    check(request.get("name") or "", f"{path}.name", dns_label, causes)
    _wanted(request, path, causes)


def _wanted(request: JSONObject, path: str, causes: Causes) -> None:
    name = request.get("deviceClassName") or ""
    if not name:
        causes.append(required(f"{path}.deviceClassName"))
    else:
        check(name, f"{path}.deviceClassName", dns_subdomain, causes)
    check_each(request.get("selectors"), validate_selector, f"{path}.selectors", causes)
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode == "All":
        if count:
            text = f"must not be specified when allocationMode is '{mode}'"
            causes.append(invalid(f"{path}.count", count, text))
    elif mode == "ExactCount":
        if count <= 0:
            causes.append(invalid(f"{path}.count", count, "must be greater than zero"))
    else:
        causes.append(unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount")))
    for index, toleration in enumerate(request.get("tolerations") or ()):
        _toleration(toleration, f"{path}.tolerations[{index}]", causes)


def _toleration(toleration: JSONObject, path: str, causes: Causes) -> None:
    key, value = toleration.get("key") or "", toleration.get("value") or ""
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        check(key, f"{path}.key", qualified_name_problems, causes)
    if operator == "Exists":
        if value:
            causes.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        check(value, f"{path}.value", label_value_problems, causes)
    elif not operator:
        causes.append(required(f"{path}.operator"))
    else:
        causes.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect not in ("", "NoExecute", "NoSchedule", "None"):
        causes.append(unsupported(f"{path}.effect", effect, ("NoExecute", "NoSchedule", "None")))
