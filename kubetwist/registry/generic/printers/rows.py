"""Rows of Tables for kinds of several groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from .ages import Cell, age
from .columns import Column, Field, Row
from .texts import name_of


def name_and_age(obj: JSONObject) -> Iterator[Cell]:
    """Return the name and age of an object."""
    yield name_of(obj)
    yield age(obj)


def status(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a C{Status}, which has no name."""
    for name in ("status", "reason", "message"):
        yield obj.get(name, "")


#: The columns of Tables, by kind.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Status": (
        Column("Status", Field("apimachinery.pkg.apis.meta.v1.Status", "status")),
        Column("Reason", Field("apimachinery.pkg.apis.meta.v1.Status", "reason")),
        Column("Message", ""),
    ),
}

#: The functions that return the cells of a row, by kind.
ROWS: Final[Mapping[str, Row]] = {
    "Status": status,
}
