"""Table rows of RuntimeClasses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Row
from ..generic.printers.texts import name_of


def runtime_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a RuntimeClass: its handler."""
    yield name_of(obj)
    yield obj.get("handler", "")
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "RuntimeClass": (NAME, Column("Handler", ""), AGE),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "RuntimeClass": runtime_class,
}
