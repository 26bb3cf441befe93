"""
The fields of resource.k8s.io with feature gates.

The fields of a request are in C{exactly} from v1beta2 on and in the request itself before. The fields of a device are
in C{basic} before v1beta2. Releases without v1 store the older forms.

See kubernetes, C{pkg/registry/resource}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ..generic.gates import ITEMS, Find, GatedField, field_at, fields_of, not_empty

#: Returns the objects in another one that can have a field.
_Holders = Callable[[JSONObject], Iterable[JSONObject]]

_LIST_ATTRIBUTES: Final = ("bools", "ints", "strings", "versions")


def _fields_in(holders: _Holders, *names: str) -> Find:
    """Return a function that finds fields of several objects in another one."""

    def find(obj: JSONObject) -> Iterator[tuple[JSONObject, str]]:
        for holder in holders(obj):
            for name in names:
                if holder.get(name) is not None:
                    yield holder, name

    return find


def _requests(spec: JSONObject) -> Iterator[JSONObject]:
    for request in _devices_of(spec).get("requests") or ():
        yield request.get("exactly") or request


def _requests_and_alternatives(spec: JSONObject) -> Iterator[JSONObject]:
    for request in _devices_of(spec).get("requests") or ():
        yield request.get("exactly") or request
        yield from request.get("firstAvailable") or ()


def _devices_of(spec: JSONObject) -> dict[str, Any]:
    devices: dict[str, Any] = spec.get("devices") or {}
    return devices


def _results(status: JSONObject) -> Iterable[JSONObject]:
    results: Iterable[JSONObject] = _devices_of(status.get("allocation") or {}).get("results") or ()
    return results


def _device_statuses(status: JSONObject) -> Iterable[JSONObject]:
    statuses: Iterable[JSONObject] = status.get("devices") or ()
    return statuses


def _devices(spec: JSONObject) -> Iterator[JSONObject]:
    for device in spec.get("devices") or ():
        yield device.get("basic") or device


def _attributes(spec: JSONObject) -> Iterator[JSONObject]:
    for device in _devices(spec):
        yield from (device.get("attributes") or {}).values()


def _consumptions(spec: JSONObject) -> Iterator[JSONObject]:
    for device in _devices(spec):
        yield from device.get("consumesCounters") or ()


def _capacities(spec: JSONObject) -> Iterator[JSONObject]:
    for device in _devices(spec):
        values: Iterable[JSONValue] = (device.get("capacity") or {}).values()
        # Quantities in the first version.
        yield from (value for value in values if isinstance(value, dict))


_TOLERATIONS: Final = _fields_in(_requests_and_alternatives, "tolerations")
_BINDING_RESULTS: Final = fields_of(
    field_at("allocation", "allocationTimestamp"),
    _fields_in(_results, "bindingConditions", "bindingFailureConditions"),
)
_BINDING_DEVICES: Final = _fields_in(_devices, "bindingConditions", "bindingFailureConditions", "bindsToNode")
_TAINTS: Final = _fields_in(_devices, "taints")
_LISTS: Final = _fields_in(_attributes, *_LIST_ATTRIBUTES)
# The name in 1.36, and from 1.37 on.
_MAPPINGS: Final = _fields_in(_devices, "nodeAllocatableResourceMappings", "nodeAllocatableResources")

#: The fields of the spec of a ResourceClaim.
CLAIM_SPEC: Final = (
    GatedField(gate="DRAPrioritizedList", find=field_at("devices", "requests", ITEMS, "firstAvailable")),
    GatedField(gate="DRADeviceTaints", find=_TOLERATIONS, in_use=not_empty(_TOLERATIONS)),
    GatedField(gate="DRAAdminAccess", find=_fields_in(_requests, "adminAccess")),
    GatedField(
        gate="DRAConsumableCapacity",
        find=fields_of(
            _fields_in(_requests_and_alternatives, "capacity"),
            field_at("devices", "constraints", ITEMS, "distinctAttribute"),
        ),
    ),
    GatedField(gate="DRADerivedAttributes", find=_fields_in(_requests_and_alternatives, "derivedAttributes")),
)

#: The fields of the status of a ResourceClaim.
CLAIM_STATUS: Final = (
    GatedField(
        gate="DRAResourceClaimDeviceStatus", find=field_at("devices"), in_use=lambda status: bool(status.get("devices"))
    ),
    GatedField(gate="DRAAdminAccess", find=_fields_in(_results, "adminAccess")),
    GatedField(
        gate="DRAConsumableCapacity",
        find=fields_of(_fields_in(_results, "shareID", "consumedCapacity"), _fields_in(_device_statuses, "shareID")),
    ),
    # The conditions are reported in the status of devices: both gates are needed.
    GatedField(gate="DRADeviceBindingConditions", find=_BINDING_RESULTS, in_use=not_empty(_BINDING_RESULTS)),
    GatedField(
        gate="DRAResourceClaimDeviceStatus",
        find=_BINDING_RESULTS,
        in_use=not_empty(_BINDING_RESULTS),
        since=(1, 34),
    ),
    GatedField(gate="DRAOptionalNodeOperations", find=_fields_in(_results, "skipNodeOperations")),
)

#: The fields of the spec of a ResourceSlice.
SLICE_SPEC: Final = (
    GatedField(gate="DRADeviceTaints", find=_TAINTS, in_use=not_empty(_TAINTS)),
    GatedField(
        gate="DRAPartitionableDevices",
        find=fields_of(
            field_at("sharedCounters"),
            field_at("perDeviceNodeSelection"),
            _fields_in(_devices, "consumesCounters", "nodeName", "nodeSelector", "allNodes"),
        ),
    ),
    GatedField(gate="DRADeviceBindingConditions", find=_BINDING_DEVICES),
    GatedField(gate="DRAResourceClaimDeviceStatus", find=_BINDING_DEVICES, since=(1, 34)),
    GatedField(
        gate="DRAConsumableCapacity",
        find=fields_of(_fields_in(_devices, "allowMultipleAllocations"), _fields_in(_capacities, "requestPolicy")),
    ),
    GatedField(gate="DRANodeAllocatableResources", find=_MAPPINGS, in_use=not_empty(_MAPPINGS)),
    GatedField(gate="DRAListTypeAttributes", find=_LISTS),
    GatedField(gate="DRAPartitionableDevicesType", find=field_at("partitionTypeAttribute")),
    GatedField(gate="DRADeviceCompatibilityGroups", find=_fields_in(_consumptions, "compatibilityGroups")),
    GatedField(gate="DRAOptionalNodeOperations", find=field_at("skipNodeOperations")),
)

#: The fields of the spec of a DeviceClass.
CLASS_SPEC: Final = (GatedField(gate="DRAExtendedResource", find=field_at("extendedResourceName")),)
