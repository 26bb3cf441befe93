"""Table rows of PriorityClasses, Workloads and PodGroups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Rows, boolean, integer
from ..generic.printers.rows import name_and_age
from ..generic.printers.texts import NONE, condition, name_of, spec_of, status_of


def priority_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PriorityClass: its value."""
    yield name_of(obj)
    yield obj.get("value", 0)
    yield bool(obj.get("globalDefault"))
    yield age(obj)
    yield obj.get("preemptionPolicy") or ""


def priority_class_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PriorityClass before 1.32, without its preemption policy."""
    yield from islice(priority_class(obj), 4)


def pod_group(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PodGroup: policy, workload and status."""
    spec = spec_of(obj)
    template = spec.get("podGroupTemplateRef")
    yield name_of(obj)
    yield "Basic" if (spec.get("schedulingPolicy") or {}).get("gang") is None else "Gang"
    yield NONE if template is None else (template.get("workload") or {}).get("workloadName", "")
    yield _pod_group_status(status_of(obj))
    yield age(obj)


def _pod_group_status(status: JSONObject) -> str:
    disrupted, scheduled = condition(status, "DisruptionTarget"), condition(status, "PodGroupScheduled")
    if disrupted is not None:
        return disrupted.get("reason") or ""
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.get("status") == "True" else "Unschedulable"


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "PriorityClass": (
        NAME,
        integer("Value", Field("api.scheduling.v1.PriorityClass", "value")),
        boolean("Global-Default", Field("api.scheduling.v1.PriorityClass", "globalDefault")),
        AGE,
        Column("PreemptionPolicy", Field("api.scheduling.v1.PriorityClass", "preemptionPolicy"), when=">=1.32"),
    ),
    "Workload": (NAME, AGE),
    "PodGroup": (
        NAME,
        Column("Policy", Field("api.scheduling.v1alpha2.PodGroupSpec", "schedulingPolicy")),
        Column("Workload", "Name of the referenced Workload object"),
        Column("Status", "Status of the PodGroup"),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "PriorityClass": {"<1.32": priority_class_before, "": priority_class},
    "Workload": name_and_age,
    "PodGroup": pod_group,
}
