"""
Conversion of dynamic resource allocation.

Since v1beta2 the details of a request are in C{exactly}, and devices have no C{basic}. In v1alpha3 the capacities of a
device are plain quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...api.jsontypes import JSONValue
from ...api.resource import GroupVersionKind, JSONObject

#: Fields of a v1beta1 request that are not moved into C{exactly}.
_REQUEST_FIELDS = ("name", "firstAvailable")
_FLAT = ("v1alpha3", "v1beta1")
_NESTED = ("v1beta2", "v1")


def _nest_request(request: JSONObject) -> JSONObject:
    nested = {name: request[name] for name in _REQUEST_FIELDS if name in request}
    exactly = {name: value for name, value in request.items() if name not in _REQUEST_FIELDS}
    if exactly:
        nested["exactly"] = exactly
    return nested


def _flatten_request(request: JSONObject) -> JSONObject:
    flat = {name: value for name, value in request.items() if name != "exactly"}
    return {**flat, **(request.get("exactly") or {})}


def _flatten_device(device: JSONObject) -> JSONObject:
    return {**{name: value for name, value in device.items() if name != "basic"}, **(device.get("basic") or {})}


def _nest_device(device: JSONObject) -> JSONObject:
    basic = {name: value for name, value in device.items() if name != "name"}
    return {"name": device["name"], "basic": basic} if "name" in device else {"basic": basic}


def _in_claim(change: Callable[[JSONObject], JSONObject]) -> Callable[[JSONObject], JSONObject]:
    return lambda obj: _changed(obj, ("spec", "devices", "requests"), change)


def _in_template(change: Callable[[JSONObject], JSONObject]) -> Callable[[JSONObject], JSONObject]:
    return lambda obj: _changed(obj, ("spec", "spec", "devices", "requests"), change)


def _in_slice(change: Callable[[JSONObject], JSONObject]) -> Callable[[JSONObject], JSONObject]:
    return lambda obj: _changed(obj, ("spec", "devices"), change)


def _changed(value: JSONValue, path: tuple[str, ...], change: Callable[[JSONObject], JSONObject]) -> JSONValue:
    """Return a copy in which every item of the list at C{path} is converted."""
    if not path:
        return [change(item) for item in value]
    name = path[0]
    if not isinstance(value, dict) or not value.get(name):
        return value
    return {**value, name: _changed(value[name], path[1:], change)}


def _wrap_capacity(device: JSONObject) -> JSONObject:
    basic = device.get("basic") or {}
    if not basic.get("capacity"):
        return device
    capacity = {name: {"value": quantity} for name, quantity in basic["capacity"].items()}
    return {**device, "basic": {**basic, "capacity": capacity}}


def _unwrap_capacity(device: JSONObject) -> JSONObject:
    basic = device.get("basic") or {}
    if not basic.get("capacity"):
        return device
    capacity = {name: capacity.get("value", "0") for name, capacity in basic["capacity"].items()}
    return {**device, "basic": {**basic, "capacity": capacity}}


def _converters() -> Iterator[tuple[tuple[GroupVersionKind, GroupVersionKind], Callable[[JSONObject], JSONObject]]]:
    def gvk(version: str, kind: str) -> GroupVersionKind:
        return GroupVersionKind("resource.k8s.io", version, kind)

    for flat in _FLAT:
        for nested in _NESTED:
            for kind, within in (("ResourceClaim", _in_claim), ("ResourceClaimTemplate", _in_template)):
                yield (gvk(flat, kind), gvk(nested, kind)), within(_nest_request)
                yield (gvk(nested, kind), gvk(flat, kind)), within(_flatten_request)
    for nested in _NESTED:
        old, middle, new = (gvk(version, "ResourceSlice") for version in ("v1alpha3", "v1beta1", nested))
        yield (middle, new), _in_slice(_flatten_device)
        yield (new, middle), _in_slice(_nest_device)
        yield (old, new), _in_slice(lambda device: _flatten_device(_wrap_capacity(device)))
        yield (new, old), _in_slice(lambda device: _unwrap_capacity(_nest_device(device)))
    old, middle = gvk("v1alpha3", "ResourceSlice"), gvk("v1beta1", "ResourceSlice")
    yield (old, middle), _in_slice(_wrap_capacity)
    yield (middle, old), _in_slice(_unwrap_capacity)


CONVERTERS = dict(_converters())
