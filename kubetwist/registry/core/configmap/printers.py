"""Rows of Tables for ConfigMaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row, core_field
from ...generic.printers.texts import name_of


def config_map(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a ConfigMap: the number of its keys."""
    yield name_of(obj)
    yield len(obj.get("data") or ()) + len(obj.get("binaryData") or ())
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "ConfigMap": (NAME, Column("Data", core_field("ConfigMap", "data")), AGE),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "ConfigMap": config_map,
}
