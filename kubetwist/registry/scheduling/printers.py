"""Table rows of PriorityClasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Row, boolean, integer
from ..generic.printers.texts import name_of


def priority_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a PriorityClass: its value."""
    yield name_of(obj)
    yield obj.get("value", 0)
    yield bool(obj.get("globalDefault"))
    yield age(obj)
    yield obj.get("preemptionPolicy") or ""


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "PriorityClass": (
        NAME,
        integer("Value", Field("api.scheduling.v1.PriorityClass", "value")),
        boolean("Global-Default", Field("api.scheduling.v1.PriorityClass", "globalDefault")),
        AGE,
        Column("PreemptionPolicy", Field("api.scheduling.v1.PriorityClass", "preemptionPolicy")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "PriorityClass": priority_class,
}
