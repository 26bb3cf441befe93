"""Rows of Tables for Secrets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row, core_field
from ...generic.printers.texts import name_of


def secret(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a Secret: its type and the number of its keys."""
    yield name_of(obj)
    yield obj.get("type", "")
    yield len(obj.get("data") or ())
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Secret": (NAME, Column("Type", core_field("Secret", "type")), Column("Data", core_field("Secret", "data")), AGE),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "Secret": secret,
}
