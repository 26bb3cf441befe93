"""Rows of Tables for ReplicationControllers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, CONTAINERS, NAME, Column, Row, core_field, integer, wide
from ...generic.printers.texts import container_cells, labels_cell, name_of, spec_of, status_of


def replication_controller(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ReplicationController, whose selector is a map of labels."""
    yield from replicas_row(obj)
    yield from container_cells(spec_of(obj).get("template"))
    yield labels_cell(spec_of(obj).get("selector"))


def replicas_row(obj: JSONObject) -> Iterator[Cell]:
    """Yield the row of a ReplicaSet or ReplicationController."""
    status = status_of(obj)
    yield name_of(obj)
    yield spec_of(obj).get("replicas") or 0
    yield status.get("replicas", 0)
    yield status.get("readyReplicas", 0)
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ReplicationController": (
        NAME,
        integer("Desired", core_field("ReplicationControllerSpec", "replicas")),
        integer("Current", core_field("ReplicationControllerStatus", "replicas")),
        integer("Ready", core_field("ReplicationControllerStatus", "readyReplicas")),
        AGE,
        *CONTAINERS,
        wide("Selector", core_field("ReplicationControllerSpec", "selector")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "ReplicationController": replication_controller,
}
