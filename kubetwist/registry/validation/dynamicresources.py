"""Device classes, claims and slices; see kubernetes, C{pkg/apis/resource/validation/validation.go}."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from ...api.errors import Cause, duplicate, forbidden, invalid, required, too_long, too_many
from ...api.names import label_value_problems, qualified_name_problems
from ...api.resource import JSONObject
from ...cel.devices import CostlySelector, SelectorError, check_selector
from ...schema.gostructs import go_struct
from .fields import Causes, check, dns_label, dns_subdomain, go_json, immutable, invalid_shown, unsupported
from .resources import is_extended

_MOST: Final = 32
_IDENTIFIER: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*").fullmatch
_NOT_AN_IDENTIFIER: Final = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters "
    "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
_VERSION: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?(\+[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
).fullmatch
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


def validate_device_class(obj: JSONObject) -> list[Cause]:
    """Selectors, configuration, and the resource that stands for the class."""
    causes: Causes = []
    spec = obj["spec"]
    _each(spec.get("selectors"), _selector, "spec.selectors", causes)
    _each(spec.get("config"), _configuration, "spec.config", causes)
    name = spec.get("extendedResourceName")
    if name is not None and (not is_extended(name) or qualified_name_problems(name)):
        causes.append(invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return causes


def _selector(selector: JSONObject, path: str, causes: Causes) -> None:
    cel = selector.get("cel")
    if cel is None:
        causes.append(required(f"{path}.cel"))
    elif len((cel.get("expression") or "").encode()) > 10 * 1024:
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


def _configuration(config: JSONObject, path: str, causes: Causes) -> None:
    opaque = config.get("opaque")
    if opaque is None:
        causes.append(required(f"{path}.opaque"))
        return
    _driver(opaque.get("driver") or "", f"{path}.opaque.driver", causes)
    parameters, where = opaque.get("parameters"), f"{path}.opaque.parameters"
    if parameters is None:
        causes.append(required(where))
    elif not isinstance(parameters, dict):
        causes.append(invalid(where, "<value omitted>", "must be a valid JSON object"))


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
    _distinct(users, _user, lambda user: user.get("uid"), path, causes, most=256)
    if users and allocation is None:
        causes.append(forbidden(path, "may not be specified when `allocated` is not set"))
    added = [user for user in users if user not in (before.get("reservedFor") or ())]
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

    _each((allocation.get("devices") or {}).get("results"), result, "status.allocation.devices.results", causes)
    return causes


def _user(user: JSONObject, path: str, causes: Causes) -> None:
    for name in ("resource", "name", "uid"):
        if not user.get(name):
            causes.append(required(f"{path}.{name}"))


def _devices(devices: JSONObject, path: str, causes: Causes) -> None:
    requests = devices.get("requests") or []
    names = _request_names(requests)
    _distinct(requests, _request, lambda request: request.get("name") or "", f"{path}.requests", causes)

    def referring(one: JSONObject, here: str) -> None:
        for index, name in enumerate(one.get("requests") or ()):
            _reference(name, names, f"{here}.requests[{index}]", causes)
            if name in one["requests"][:index]:
                causes.append(duplicate(f"{here}.requests[{index}]", name))

    def constraint(one: JSONObject, here: str, causes: Causes) -> None:
        referring(one, here)
        for field in ("matchAttribute", "distinctAttribute"):
            if one.get(field) is not None:
                _full_name(one[field], f"{here}.{field}", causes)
                return
        text = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
        causes.append(required(here, text))

    def config(one: JSONObject, here: str, causes: Causes) -> None:
        referring(one, here)
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


def validate_slice(obj: JSONObject) -> list[Cause]:
    """A driver's pool of devices, and on which nodes they are."""
    causes: Causes = []
    spec = obj["spec"]
    _driver(spec.get("driver") or "", "spec.driver", causes)
    _pool(spec.get("pool") or {}, causes)
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

    def device(one: JSONObject, path: str, causes: Causes) -> None:
        _device(one, path, each, causes)

    most = 64 if advanced else 128
    _distinct(devices, device, lambda one: one.get("name") or "", "spec.devices", causes, most=most)
    return causes


def validate_slice_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Pool, driver and node stay."""
    causes = validate_slice(obj)
    spec, before = obj["spec"], old["spec"]
    name, was = (one.get("pool", {}).get("name") for one in (spec, before))
    immutable(name, was, "spec.pool.name", causes)
    for field in ("driver", "nodeName"):
        immutable(spec.get(field), before.get(field), f"spec.{field}", causes)
    return causes


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
    if len(name.encode()) > 253:
        causes.append(too_long(path, 253))
    for part in name.split("/"):
        for text in dns_subdomain(part):
            causes.append(invalid(path, part, text))


def _chosen_nodes(spec: JSONObject, path: str, flags: Sequence[str], causes: Causes) -> list[str]:
    """Which ways of choosing nodes are taken."""
    chosen: list[str] = []
    node = spec.get("nodeName")
    if node:
        chosen.append("`nodeName`")
        check(node, f"{path}.nodeName", dns_subdomain, causes)
    elif node is not None:
        causes.append(invalid(f"{path}.nodeName", node, "must be either unset or set to a non-empty string"))
    selector = spec.get("nodeSelector")
    if selector is not None:
        chosen.append("`nodeSelector`")
        terms = selector.get("nodeSelectorTerms") or []
        if not terms:
            text = "must have at least one node selector term"
            causes.append(required(f"{path}.nodeSelector.nodeSelectorTerms", text))
        elif len(terms) > 1:
            where = f"{path}.nodeSelector.nodeSelectorTerms"
            shown = go_json([go_struct(term, "NodeSelectorTerm") for term in terms])
            causes.append(invalid_shown(where, shown, "must have exactly one node selector term"))
    for name in flags:
        if spec.get(name):
            chosen.append(f"`{name}`")
        elif spec.get(name) is not None:
            causes.append(invalid(f"{path}.{name}", spec[name], "must be either unset or set to true"))
    return chosen


def _device(device: JSONObject, path: str, each: bool, causes: Causes) -> None:
    check(device.get("name") or "", f"{path}.name", dns_label, causes)
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > _MOST:
        text = f"the total number of attributes and capacities must not exceed {_MOST}"
        causes.append(invalid(path, len(attributes) + len(capacity), text))
    for name, attribute in sorted(attributes.items()):
        _qualified(name, f"{path}.attributes", causes)
        _attribute(attribute, f"{path}.attributes[{name}]", causes)
    for name in sorted(capacity):
        _qualified(name, f"{path}.capacity", causes)
    for index, taint in enumerate(device.get("taints") or ()):
        _taint(taint, f"{path}.taints[{index}]", causes)
    if each:
        chosen = _chosen_nodes(device, path, ("allNodes",), causes)
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


def _attribute(attribute: JSONObject, path: str, causes: Causes) -> None:
    given = [name for name in ("bool", "int", "string", "version") if attribute.get(name) is not None]
    for name in ("string", "version"):
        if name in given and len(attribute[name].encode()) > 64:
            causes.append(too_long(f"{path}.{name}", 64))
    if "version" in given and not _VERSION(attribute["version"]):
        text = "must be a string compatible with semver.org spec 2.0.0"
        causes.append(invalid(f"{path}.version", attribute["version"], text))
    if len(given) != 1:
        causes.append(invalid(path, "", "exactly one value must be specified"))


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
    if len(name.encode()) > 63:
        causes.append(too_long(path, 63))
    for text in dns_subdomain(name.lower()):
        causes.append(invalid(path, name, text))


def _qualified(name: str, path: str, causes: Causes) -> None:
    """The name of an attribute or a capacity, with its domain or without."""
    if not name:
        causes.append(required(path, "name required"))
        return
    domain, slash, rest = name.rpartition("/")
    if slash and not domain:
        causes.append(required(path, "the domain must not be empty"))
    elif slash:
        if len(domain.encode()) > 63:
            causes.append(too_long(path, 63))
        for text in dns_subdomain(domain):
            causes.append(invalid(path, domain, text))
    if slash and not rest:
        causes.append(required(path, "the name must not be empty"))
        return
    if len(rest.encode()) > 32:
        causes.append(too_long(path, 32))
    if not _IDENTIFIER(rest):
        causes.append(invalid(path, rest, _NOT_AN_IDENTIFIER))


def _full_name(name: str, path: str, causes: Causes) -> None:
    _qualified(name, path, causes)
    if name and "/" not in name:
        causes.append(invalid(path, name, "must include a domain"))


def _each(items: Sequence[JSONObject] | None, one: _Check, path: str, causes: Causes) -> None:
    """Check every item of a list that may not be long."""
    if items and len(items) > _MOST:
        causes.append(too_many(path, len(items), _MOST))
    for index, item in enumerate(items or ()):
        one(item, f"{path}[{index}]", causes)


def _distinct(
    items: Sequence[JSONObject],
    one: _Check,
    key: Callable[[JSONObject], Any],
    path: str,
    causes: Causes,
    *,
    most: int = _MOST,
) -> None:
    """Check every item of a list in which no key may be twice."""
    if len(items) > most:
        causes.append(too_many(path, len(items), most))
    seen: set[Any] = set()
    for index, item in enumerate(items):
        one(item, f"{path}[{index}]", causes)
        if key(item) in seen:
            causes.append(duplicate(f"{path}[{index}]", key(item)))
        seen.add(key(item))
