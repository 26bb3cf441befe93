"""Rows of Tables for Namespaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row
from ...generic.printers.texts import name_of, status_of


def namespace(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a namespace: its phase."""
    yield name_of(obj)
    yield status_of(obj).get("phase", "")
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Namespace": (NAME, Column("Status", "The status of the namespace"), AGE),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "Namespace": namespace,
}
