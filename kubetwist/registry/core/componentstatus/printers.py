"""Rows of Tables for ComponentStatuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell
from ...generic.printers.columns import NAME, Column, Row
from ...generic.printers.texts import condition, name_of


def component_status(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a component: its health, without an age."""
    healthy = condition(obj, "Healthy")
    yield name_of(obj)
    if healthy is None:
        yield from ("Unknown", "", "")
    else:
        yield "Healthy" if healthy.get("status") == "True" else "Unhealthy"
        yield healthy.get("message", "")
        yield healthy.get("error", "")


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ComponentStatus": (
        NAME,
        Column("Status", "Status of the component conditions"),
        Column("Message", "Message of the component conditions"),
        Column("Error", "Error of the component conditions"),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "ComponentStatus": component_status,
}
