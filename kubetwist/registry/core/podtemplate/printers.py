"""Rows of Tables for PodTemplates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell
from ...generic.printers.columns import NAME, Column, Row
from ...generic.printers.texts import container_cells, labels_cell, name_of


def pod_template(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a template: containers, images and labels, without an age."""
    template = obj.get("template") or {}
    yield name_of(obj)
    yield from container_cells(template)
    yield labels_cell((template.get("metadata") or {}).get("labels"))


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "PodTemplate": (
        NAME,
        Column("Containers", "Names of each container in the template."),
        Column("Images", "Images referenced by each container in the template."),
        Column("Pod Labels", "The labels for the pod template."),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "PodTemplate": pod_template,
}
