"""Table rows of ResourceClaims, ResourceSlices, DeviceTaintRules and ResourcePoolStatusRequests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age, since
from ..generic.printers.columns import AGE, NAME, Column, Field, Row, integer
from ..generic.printers.rows import name_and_age
from ..generic.printers.texts import NONE, name_of, spec_of, status_of


def resource_claim(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ResourceClaim: its state."""
    status = status_of(obj)
    deleted = bool(obj["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    yield name_of(obj)
    yield ",".join(states)
    yield age(obj)


def resource_slice(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ResourceSlice: node, driver and pool."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("nodeName") or ""
    yield spec.get("driver", "")
    yield (spec.get("pool") or {}).get("name", "")
    yield age(obj)


def device_taint_rule(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a DeviceTaintRule: its taint, without the selector."""
    taint = spec_of(obj).get("taint") or {}
    yield name_of(obj)
    for name in ("key", "value", "effect"):
        yield taint.get(name, "")
    added = taint.get("timeAdded")
    yield "" if added is None else since(added)
    yield age(obj)


def resource_pool_status_request(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ResourcePoolStatusRequest: the numbers of devices of all pools, and its state."""
    status = obj.get("status")
    pools: Sequence[JSONObject] = (status or {}).get("pools") or ()
    count = (status or {}).get("poolCount") or 0
    ended: JSONObject = next(
        (
            one
            for one in (status or {}).get("conditions") or ()
            if one.get("type") in ("Complete", "Failed") and one.get("status") == "True"
        ),
        {},
    )
    state = ended.get("type", "Pending")
    counted = status is not None and state != "Failed"
    yield name_of(obj)
    yield spec_of(obj).get("driver", "")
    for name in ("totalDevices", "availableDevices", "allocatedDevices", "unavailableDevices"):
        yield str(sum(pool.get(name) or 0 for pool in pools)) if counted else "-"
    yield str(sum(pool.get("validationError") is not None for pool in pools)) if counted else "-"
    yield count
    yield f"Complete ({len(pools)}/{count} pools)" if state == "Complete" and count > len(pools) else state
    yield since(ended.get("lastTransitionTime")) if state == "Complete" else NONE


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "DeviceClass": (NAME, AGE),
    "ResourceClaim": (
        NAME,
        Column("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
        AGE,
    ),
    "ResourceClaimTemplate": (NAME, AGE),
    "ResourceSlice": (
        NAME,
        Column("Node", Field("api.resource.v1.ResourceSliceSpec", "nodeName")),
        Column("Driver", Field("api.resource.v1.ResourceSliceSpec", "driver")),
        Column("Pool", Field("api.resource.v1.ResourcePool", "name")),
        AGE,
    ),
    "DeviceTaintRule": (
        NAME,
        *(
            Column(name, Field("api.resource.v1alpha3.DeviceTaint", name[0].lower() + name[1:]))
            for name in ("Key", "Value", "Effect", "TimeAdded")
        ),
        AGE,
    ),
    "ResourcePoolStatusRequest": (
        NAME,
        Column("Driver", "The driver to query pools for."),
        Column("Total", "Total number of devices across all pools."),
        Column("Available", "Number of available devices across all pools."),
        Column("Allocated", "Number of allocated devices across all pools."),
        Column("Unavailable", "Number of unavailable devices across all pools."),
        Column("Errors", "Number of pools with validation errors."),
        integer("Pools", "Total number of matching pools."),
        Column("Status", "Processing status."),
        Column("Completed", "Time since the observation completed."),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "DeviceClass": name_and_age,
    "ResourceClaim": resource_claim,
    "ResourceClaimTemplate": name_and_age,
    "ResourceSlice": resource_slice,
    "DeviceTaintRule": device_taint_rule,
    "ResourcePoolStatusRequest": resource_pool_status_request,
}
