"""Table rows that kinds of several groups share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from .ages import Cell, age
from .columns import Column, Field, Row
from .texts import name_of


def name_and_age(obj: JSONObject) -> Iterator[Cell]:
    """Nothing else."""
    yield name_of(obj)
    yield age(obj)


def status(obj: JSONObject) -> Iterator[Cell]:
    """A C{Status}, which has no name."""
    for name in ("status", "reason", "message"):
        yield obj.get(name, "")


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "Status": (
        Column("Status", Field("apimachinery.pkg.apis.meta.v1.Status", "status")),
        Column("Reason", Field("apimachinery.pkg.apis.meta.v1.Status", "reason")),
        Column("Message", ""),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "Status": status,
}
