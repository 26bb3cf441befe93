"""Device classes, claims and slices; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ...api.errors import Cause, duplicate, forbidden, go_json, invalid, required, too_long, too_many
from ...api.names import byte_length, label_value_problems, qualified_name_problems
from ...api.resource import JSONObject
from ...cel.devices import CostlySelector, SelectorError, check_selector
from ...schema.gostructs import go_struct
from .affinity import validate_node_selector
from .fields import (
    Causes,
    annotation_keys,
    check,
    dns_label,
    dns_subdomain,
    immutable,
    invalid_shown,
    labels,
    need,
    one_of,
    unsupported,
)
from .policy import conditions
from .resources import is_extended

_MOST: Final = 32
_LONGEST_RAW: Final = 10 * 1024
#: A domain, a slash and an identifier.
_LONGEST_NAME: Final = 63 + 1 + 32
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch
_NOT_AN_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_NUMBER: Final = r"(0|[1-9]\d*)"
_PART: Final = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_VERSION: Final = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PART}(\.{_PART})*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?", re.ASCII
).fullmatch
_UID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch
_NOT_IN_TEMPLATES: Final = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_NODES: Final = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_NODES_OF_DEVICE: Final = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
    "true in the ResourceSlice spec"
)
_REFERENCE: Final = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

_Check = Callable[[Any, str, Causes], None]


# --- classes -----------------------------------------------------------------------------------------------------


def validate_device_class(obj: JSONObject, old: JSONObject | None = None) -> list[Cause]:
    """Selectors, configuration, and the resource that stands for the class."""
    causes: Causes = []
    spec = obj["spec"]
    stored = old is not None and (spec.get("config") or []) == (old["spec"].get("config") or [])

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        _configuration(one, here, causes, stored)

    _each(spec.get("selectors"), _selector, "spec.selectors", causes)
    _each(spec.get("config"), config, "spec.config", causes)
    name = spec.get("extendedResourceName")
    if name is not None and (not is_extended(name) or qualified_name_problems(name)):
        causes.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return causes


def _selector(selector: JSONObject, path: str, causes: Causes) -> None:
    cel = selector.get("cel")
    if cel is None:
        causes.append(required(f"{path}.cel"))
    elif byte_length(cel.get("expression") or "") > 10 * 1024:
        causes.append(too_long(f"{path}.cel.expression", 10 * 1024))
    else:
        _expression(cel.get("expression") or "", f"{path}.cel.expression", causes)


def _expression(text: str, path: str, causes: Causes) -> None:
    try:
        check_selector(text)
    except CostlySelector as error:
        causes.append(forbidden(path, str(error)))
    except SelectorError as error:
        causes.append(invalid(path, text, str(error)))


def _configuration(config: JSONObject, path: str, causes: Causes, stored: bool = False) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        causes.append(required(f"{path}.opaque"))
        return
    _driver(opaque.get("driver") or "", f"{path}.opaque.driver", causes)
    _raw_object(opaque.get("parameters"), f"{path}.opaque.parameters", causes, stored)


def _raw_object(raw: Any, path: str, causes: Causes, stored: bool = False) -> None:
    """An object that is somebody else's, within limits that what is stored need not keep."""
    if raw is None:
        causes.append(required(path))
    elif not stored and byte_length(go_json(raw)) > _LONGEST_RAW:
        causes.append(too_long(path, _LONGEST_RAW))
    elif not isinstance(raw, dict):
        causes.append(invalid(path, "<value omitted>", "must be a valid JSON object"))


# --- claims ------------------------------------------------------------------------------------------------------


def validate_claim(obj: JSONObject) -> list[Cause]:
    """A new claim."""
    causes: Causes = []
    _devices(obj["spec"].get("devices") or {}, "spec.devices", causes)
    return causes


def validate_claim_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What is claimed stays."""
    causes: Causes = []
    shown = go_json(go_struct(obj["spec"], "resource.ResourceClaimSpec"))
    immutable(obj["spec"], old["spec"], "spec", causes, shown)
    return causes


def validate_claim_template(obj: JSONObject) -> list[Cause]:
    """What the claims would be that are made of it."""
    causes: Causes = []
    metadata = obj["spec"].get("metadata") or {}
    annotation_keys(metadata.get("annotations"), "spec.metadata.annotations", causes)
    labels(metadata.get("labels"), "spec.metadata.labels", causes)
    for name in _NOT_IN_TEMPLATES:
        if metadata.get(name):
            causes.append(forbidden(f"spec.metadata.{name}", "cannot be set"))
    _devices((obj["spec"].get("spec") or {}).get("devices") or {}, "spec.spec.devices", causes)
    return causes


def validate_claim_template_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """What claims are made of stays."""
    causes: Causes = []
    shown = go_json(go_struct(obj["spec"], "resource.ResourceClaimTemplateSpec"))
    immutable(obj["spec"], old["spec"], "spec", causes, shown)
    return causes


def validate_claim_status_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Who uses the devices, and which they are; that is not changed, only taken back."""
    causes: Causes = []
    status, before = obj.get("status") or {}, old.get("status") or {}
    path, allocation = "status.reservedFor", status.get("allocation")
    users = status.get("reservedFor") or []
    _distinct(users, _user, lambda user: user.get("uid") or "", path, causes, most=256)
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
        shown = go_json(go_struct(allocation, "resource.AllocationResult"))
        immutable(allocation, before["allocation"], "status.allocation", causes, shown)
        return causes
    names = _request_names((obj["spec"].get("devices") or {}).get("requests") or ())

    def result(one: JSONObject, here: str, causes: Causes) -> None:
        _reference(one.get("request") or "", names, f"{here}.request", causes)
        _driver(one.get("driver") or "", f"{here}.driver", causes)
        _pool_name(one.get("pool") or "", f"{here}.pool", causes)
        check(one.get("device") or "", f"{here}.device", dns_label, causes)
        _binding(one, here, causes)
        if one.get("shareID") is not None:
            _share(one["shareID"], f"{here}.shareID", causes)

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        one_of(one.get("source"), ("FromClaim", "FromClass"), f"{here}.source", causes)
        _references(one, names, here, causes)
        _configuration(one, here, causes)

    devices, where = allocation.get("devices") or {}, "status.allocation.devices"
    _each(devices.get("results"), result, f"{where}.results", causes)
    _each(devices.get("config"), config, f"{where}.config", causes, most=2 * _MOST)
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
        _driver(one.get("driver") or "", f"{here}.driver", causes)
        _pool_name(one.get("pool") or "", f"{here}.pool", causes)
        check(one.get("device") or "", f"{here}.device", dns_label, causes)
        if one.get("shareID") is not None:
            _share(one["shareID"], f"{here}.shareID", causes)
        if device_key(one) not in own:
            # The reference shows the parts as what it keeps of them, which is nothing.
            shown = '{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}'
            causes.append(invalid_shown(here, shown, "must be an allocated device in the claim"))
        if len(one.get("conditions") or ()) > 8:
            causes.append(too_many(f"{here}.conditions", len(one["conditions"]), 8))
        conditions(one.get("conditions") or (), f"{here}.conditions", causes)
        if one.get("data") is not None:
            _raw_object(one["data"], f"{here}.data", causes)
        _network(one.get("networkData") or {}, f"{here}.networkData", causes)

    _distinct(states, state, device_key, "status.devices", causes, most=len(states))


def _network(data: JSONObject, path: str, causes: Causes) -> None:
    for name, limit in (("interfaceName", 256), ("hardwareAddress", 128)):
        if byte_length(data.get(name) or "") > limit:
            causes.append(too_long(f"{path}.{name}", limit))
    addresses = data.get("ips") or []
    if len(addresses) > 16:
        causes.append(too_many(f"{path}.ips", len(addresses), 16))
        return
    for index, value in enumerate(addresses):
        if value in addresses[:index]:
            causes.append(duplicate(f"{path}.ips[{index}]", value))


def _share(uid: str, path: str, causes: Causes) -> None:
    if not _UID(uid):
        text = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
            "hexadecimal characters"
        )
        causes.append(invalid(path, uid, text))


def _binding(one: JSONObject, path: str, causes: Causes) -> None:
    """What has to be so before a device can be used, and what says that it never will be."""
    good, bad = one.get("bindingConditions") or [], one.get("bindingFailureConditions") or []

    def name(value: str, here: str, causes: Causes) -> None:
        check(value, here, qualified_name_problems, causes)

    _each(good, name, f"{path}.bindingConditions", causes, most=4)
    _each(bad, name, f"{path}.bindingFailureConditions", causes, most=4)
    wanted: set[str] = set()
    for index, value in enumerate(good):
        if value in wanted:
            causes.append(duplicate(f"{path}.bindingConditions[{index}]", value))
        wanted.add(value)
    seen: set[str] = set()
    for index, value in enumerate(bad):
        here = f"{path}.bindingFailureConditions[{index}]"
        if value in seen:
            causes.append(duplicate(here, value))
        seen.add(value)
        if value in wanted:
            causes.append(invalid(here, value, "bindingFailureConditions must not overlap with bindingConditions"))
    if bad and not good:
        text = "bindingConditions are required to use bindingFailureConditions"
        causes.append(invalid(f"{path}.bindingConditions", one.get("bindingConditions"), text))
    if good and not bad:
        text = "bindingFailureConditions are required to use bindingConditions"
        causes.append(invalid(f"{path}.bindingFailureConditions", one.get("bindingFailureConditions"), text))


def _user(user: JSONObject, path: str, causes: Causes) -> None:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            causes.append(required(f"{path}.{name}"))


def _devices(devices: JSONObject, path: str, causes: Causes) -> None:
    requests = devices.get("requests") or []
    names = _request_names(requests)
    _distinct(requests, _request, lambda request: request.get("name") or "", f"{path}.requests", causes)

    def constraint(one: JSONObject, here: str, causes: Causes) -> None:
        _references(one, names, here, causes)
        for field in ("matchAttribute", "distinctAttribute"):
            if one.get(field) is not None:
                _full_name(one[field], f"{here}.{field}", causes)
                return
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        causes.append(required(here, text))

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        _references(one, names, here, causes)
        _configuration(one, here, causes)

    _each(devices.get("constraints"), constraint, f"{path}.constraints", causes)
    _each(devices.get("config"), config, f"{path}.config", causes)


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

    _distinct(one.get("requests") or [], check_one, str, f"{path}.requests", causes)


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
        _distinct(choice, _alternative, lambda one: one.get("name") or "", f"{path}.firstAvailable", causes, most=8)


def _alternative(request: JSONObject, path: str, causes: Causes) -> None:
    check(request.get("name") or "", f"{path}.name", dns_label, causes)
    _wanted(request, path, causes)


def _wanted(request: JSONObject, path: str, causes: Causes) -> None:
    name = request.get("deviceClassName") or ""
    if not name:
        causes.append(required(f"{path}.deviceClassName"))
    else:
        check(name, f"{path}.deviceClassName", dns_subdomain, causes)
    _each(request.get("selectors"), _selector, f"{path}.selectors", causes)
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


# --- slices ------------------------------------------------------------------------------------------------------


def validate_slice(obj: JSONObject, old: JSONObject | None = None) -> list[Cause]:
    """A driver's pool of devices, and on which nodes they are; what was not changed of C{old} may stay."""
    causes: Causes = []
    spec = obj["spec"]
    _driver(spec.get("driver") or "", "spec.driver", causes)
    _pool(spec.get("pool") or {}, causes)
    if old is not None:
        name, was = ((one["spec"].get("pool") or {}).get("name") for one in (obj, old))
        immutable(name, was, "spec.pool.name", causes)
        for field in ("driver", "nodeName"):
            immutable(spec.get(field), old["spec"].get(field), f"spec.{field}", causes)
    chosen = _chosen_nodes(spec, "spec", ("allNodes", "perDeviceNodeSelection"), causes)
    if not chosen:
        causes.append(required("spec", _NODES))
    elif len(chosen) > 1:
        shown = f"{{{', '.join(chosen)}}}"
        causes.append(invalid("spec", shown, f"{_NODES}, but multiple fields are set"))
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        causes.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or []
    advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    each = bool(spec.get("perDeviceNodeSelection"))

    held: dict[str, list[JSONObject]] = {}
    for one in reversed((old["spec"].get("devices") or []) if old is not None else []):
        held[one.get("name") or ""] = one.get("taints") or []

    def device(one: JSONObject, path: str, causes: Causes) -> None:
        _device(one, path, each, causes, held.get(one.get("name") or ""))

    most = 64 if advanced else 128
    _distinct(devices, device, lambda one: one.get("name") or "", "spec.devices", causes, most=most)
    counters = spec.get("sharedCounters") or []
    _distinct(counters, _counter_set, lambda one: one.get("name") or "", "spec.sharedCounters", causes, most=8)
    return causes


def validate_slice_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Pool, driver and node stay."""
    return validate_slice(obj, old)


def _counter_set(one: JSONObject, path: str, causes: Causes) -> None:
    need(one.get("name"), f"{path}.name", dns_label, causes)
    _counters(one, path, causes)


def _consumption(one: JSONObject, path: str, causes: Causes) -> None:
    need(one.get("counterSet"), f"{path}.counterSet", dns_label, causes)
    _counters(one, path, causes)


def _counters(one: JSONObject, path: str, causes: Causes) -> None:
    counters, where = one.get("counters") or {}, f"{path}.counters"
    if not counters:
        causes.append(required(where))
    elif len(counters) > _MOST:
        causes.append(too_many(where, len(counters), _MOST))
    else:
        for name in sorted(counters):
            check(name, f"{where}[{_shortened(name, 63)}]", dns_label, causes)


def _shortened(key: str, limit: int) -> str:
    """A key as it is put into paths, with its middle left out when it is long."""
    if len(key) <= limit:
        return key
    return f"{key[: (limit - 2) // 2]}...{key[-((limit - 3) // 2) :]}"


def _pool(pool: JSONObject, causes: Causes) -> None:
    _pool_name(pool.get("name") or "", "spec.pool.name", causes)
    count, generation = pool.get("resourceSliceCount") or 0, pool.get("generation") or 0
    if count <= 0:
        causes.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        causes.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))


def _pool_name(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.append(required(path))
        return
    if byte_length(name) > 253:
        causes.append(too_long(path, 253))
    for part in name.split("/"):
        for text in dns_subdomain(part):
            causes.append(invalid(path, part, text))


def _chosen_nodes(
    spec: JSONObject, path: str, flags: Sequence[str], causes: Causes, *, single: bool = True
) -> list[str]:
    """Which ways of choosing nodes are taken; a slice's are to be C{single} ones."""
    chosen: list[str] = []
    node = spec.get("nodeName")
    if node:
        chosen.append("`nodeName`")
        check(node, f"{path}.nodeName", dns_subdomain, causes)
    elif node is not None:
        text = "must be either unset or set to a non-empty string" if single else "must not be empty"
        causes.append(invalid(f"{path}.nodeName", node, text))
    selector = spec.get("nodeSelector")
    if selector is not None:
        chosen.append("`nodeSelector`")
        validate_node_selector(selector, f"{path}.nodeSelector", causes)
        terms = selector.get("nodeSelectorTerms")
        if single and len(terms or ()) != 1:
            where = f"{path}.nodeSelector.nodeSelectorTerms"
            shown = None if terms is None else [go_struct(term, "NodeSelectorTerm") for term in terms]
            causes.append(invalid_shown(where, go_json(shown), "must have exactly one node selector term"))
    for name in flags:
        if spec.get(name):
            chosen.append(f"`{name}`")
        elif spec.get(name) is not None:
            causes.append(invalid(f"{path}.{name}", spec[name], "must be either unset or set to true"))
    return chosen


def _device(device: JSONObject, path: str, each: bool, causes: Causes, held: list[JSONObject] | None) -> None:
    check(device.get("name") or "", f"{path}.name", dns_label, causes)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MOST:
        text = f"the total number of attributes and capacities must not exceed {_MOST}"
        causes.append(invalid(path, len(attributes) + len(capacity), text))
    for name, attribute in sorted(attributes.items()):
        _qualified(name, f"{path}.attributes", causes)
        _attribute(attribute, f"{path}.attributes[{_shortened(name, _LONGEST_NAME)}]", causes)
    for name, amount in sorted(capacity.items()):
        _qualified(name, f"{path}.capacity", causes)
        if amount.get("requestPolicy") is not None and not device.get("allowMultipleAllocations"):
            where = f"{path}.capacity[{_shortened(name, _LONGEST_NAME)}].requestPolicy"
            causes.append(forbidden(where, "allowMultipleAllocations must be true"))
    if held is None or held != (device.get("taints") or []):
        _each(device.get("taints"), _taint, f"{path}.taints", causes, most=16)
    consumed = device.get("consumesCounters") or []
    where = f"{path}.consumesCounters"
    _distinct(consumed, _consumption, lambda one: one.get("counterSet") or "", where, causes, most=2)
    if each:
        chosen = _chosen_nodes(device, path, ("allNodes",), causes, single=False)
        if not chosen:
            causes.append(required(path, _NODES_OF_DEVICE))
        elif len(chosen) > 1:
            causes.append(invalid(path, f"{{{', '.join(chosen)}}}", _NODES_OF_DEVICE))
    elif any(device.get(name) is not None for name in ("nodeName", "nodeSelector", "allNodes")):
        text = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        causes.append(invalid(path, None, text))
    _binding(device, path, causes)


def _attribute(attribute: JSONObject, path: str, causes: Causes) -> None:
    given = [name for name in ("bool", "int", "string", "version") if attribute.get(name) is not None]
    for name in ("string", "version"):
        if name == "version" and name in given and not _VERSION(attribute["version"]):
            text = "must be a string compatible with semver.org spec 2.0.0"
            causes.append(invalid(f"{path}.version", attribute["version"], text))
        if name in given and byte_length(attribute[name]) > 64:
            causes.append(too_long(f"{path}.{name}", 64))
    if not given:
        causes.append(invalid(path, "", "exactly one value must be specified"))
    elif len(given) > 1:
        shown = {f"{name.title()}Value": attribute.get(name) for name in ("int", "bool", "string", "version")}
        causes.append(invalid_shown(path, go_json(shown), "exactly one value must be specified"))


def _taint(taint: JSONObject, path: str, causes: Causes) -> None:
    check(taint.get("key") or "", f"{path}.key", qualified_name_problems, causes)
    if taint.get("value"):
        check(taint["value"], f"{path}.value", label_value_problems, causes)
    effect = taint.get("effect") or ""
    if not effect:
        causes.append(required(f"{path}.effect"))
    elif effect not in ("NoExecute", "NoSchedule", "None"):
        causes.append(unsupported(f"{path}.effect", effect, ("NoExecute", "NoSchedule", "None")))


# --- what all have -----------------------------------------------------------------------------------------------


def _driver(name: str, path: str, causes: Causes) -> None:
    if not name:
        causes.append(required(path))
        return
    if byte_length(name) > 63:
        causes.append(too_long(path, 63))
    for text in dns_subdomain(name.lower()):
        causes.append(invalid(path, name, text))


def _qualified(name: str, path: str, causes: Causes) -> None:
    """The name of an attribute or a capacity, with its domain or without."""
    domain, slash, rest = name.rpartition("/")
    if "/" in domain:
        # The reference takes whatever has more than one.
        return
    if slash and not domain:
        causes.append(invalid(path, "", "the domain must not be empty"))
    elif slash:
        _driver(domain, path, causes)
    if slash and not rest:
        causes.append(invalid(path, "", "the name must not be empty"))
        return
    if byte_length(rest) > 32:
        causes.append(too_long(path, 32))
    if not _IDENTIFIER(rest):
        causes.append(invalid(path, rest, _NOT_AN_IDENTIFIER))


def _full_name(name: str, path: str, causes: Causes) -> None:
    _qualified(name, path, causes)
    if "/" not in name:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        causes.append(invalid(path, name, text))


def _each(items: Sequence[Any] | None, one: _Check, path: str, causes: Causes, most: int = _MOST) -> None:
    """Check every item of a list, unless it is too long to be looked at."""
    if items and len(items) > most:
        causes.append(too_many(path, len(items), most))
        return
    for index, item in enumerate(items or ()):
        one(item, f"{path}[{index}]", causes)


def _distinct(
    items: Sequence[Any],
    one: _Check,
    key: Callable[[Any], Any],
    path: str,
    causes: Causes,
    *,
    most: int = _MOST,
) -> None:
    """Check every item of a list in which no key may be twice, unless it is too long to be looked at."""
    _each(items, one, path, causes, most)
    if len(items) > most:
        return
    seen: set[Any] = set()
    for index, item in enumerate(items):
        if key(item) in seen:
            causes.append(duplicate(f"{path}[{index}]", key(item)))
        seen.add(key(item))
