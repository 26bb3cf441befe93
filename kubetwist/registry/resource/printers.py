"""Table rows of ResourceClaims, ResourceSlices and DeviceTaintRules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age, since
from ..generic.printers.columns import AGE, NAME, Column, Field, Row
from ..generic.printers.rows import name_and_age
from ..generic.printers.texts import name_of, spec_of, status_of


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
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "DeviceClass": name_and_age,
    "ResourceClaim": resource_claim,
    "ResourceClaimTemplate": name_and_age,
    "ResourceSlice": resource_slice,
    "DeviceTaintRule": device_taint_rule,
}
