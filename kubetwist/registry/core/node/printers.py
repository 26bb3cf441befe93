"""Rows of Tables for Nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import UNKNOWN, Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Rows, core_field, wide
from ...generic.printers.texts import NONE, condition, name_of, spec_of, status_of

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def node(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a node, whose kernel has the architecture since 1.36."""
    return _node(obj, with_architecture=True)


def node_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a node before 1.36."""
    return _node(obj, with_architecture=False)


def _node(obj: JSONObject, with_architecture: bool) -> Iterator[Cell]:
    """Return the cells of a node: readiness, roles, versions and addresses."""
    status = status_of(obj)
    info = status.get("nodeInfo") or {}
    ready = condition(status, "Ready")
    states = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec_of(obj).get("unschedulable"):
        states.append("SchedulingDisabled")
    yield name_of(obj)
    yield ",".join(states)
    yield ",".join(_roles(obj)) or NONE
    yield age(obj)
    yield info.get("kubeletVersion", "")
    yield _address(status, "InternalIP")
    yield _address(status, "ExternalIP")
    yield info.get("osImage") or UNKNOWN
    kernel = info.get("kernelVersion") or UNKNOWN
    yield f"{kernel} ({info['architecture']})" if with_architecture and info.get("architecture") else kernel
    yield info.get("containerRuntimeVersion") or UNKNOWN


def _roles(obj: JSONObject) -> list[str]:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get(_ROLE_LABEL, ""))
    return sorted(roles - {""})


def _address(status: JSONObject, kind: str) -> str:
    for address in status.get("addresses") or ():
        if address.get("type") == kind:
            text: str = address.get("address", "")
            return text
    return NONE


#: The columns of Tables, by kind.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Node": (
        NAME,
        Column("Status", "The status of the node"),
        Column("Roles", "The roles of the node"),
        AGE,
        Column("Version", core_field("NodeSystemInfo", "kubeletVersion")),
        wide("Internal-IP", core_field("NodeStatus", "addresses")),
        wide("External-IP", core_field("NodeStatus", "addresses")),
        wide("OS-Image", core_field("NodeSystemInfo", "osImage")),
        wide("Kernel-Version", core_field("NodeSystemInfo", "kernelVersion")),
        wide("Container-Runtime", core_field("NodeSystemInfo", "containerRuntimeVersion")),
    ),
}

#: The functions that return the cells of a row, by kind.
ROWS: Final[Mapping[str, Rows]] = {
    "Node": {"<1.36": node_before, "": node},
}
