"""Table rows of APIServices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Row
from ..generic.printers.texts import condition, name_of, spec_of, status_of


def api_service(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of an APIService: its service and availability."""
    backend = spec_of(obj).get("service")
    available = condition(status_of(obj), "Available")
    yield name_of(obj)
    yield "Local" if backend is None else f"{backend.get('namespace', '')}/{backend.get('name', '')}"
    if available is None:
        yield "Unknown"
    elif available.get("status") != "True" and available.get("reason"):
        yield f"{available.get('status', '')} ({available['reason']})"
    else:
        yield available.get("status", "")
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "APIService": (
        NAME,
        Column("Service", "The reference to the service that hosts this API endpoint."),
        Column("Available", "Whether this service is available."),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "APIService": api_service,
}
