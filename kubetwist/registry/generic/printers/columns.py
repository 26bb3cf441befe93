"""
Columns of Tables, and common columns.

Most descriptions are the descriptions of fields in the type definitions of the release; the texts here are those that
the reference also has in its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ....api.resource import JSONObject
from ....api.tables import Describe
from .ages import Cell

#: Returns the cells of the row of an object, one for each column.
Row = Callable[[JSONObject], Iterator[Cell]]


class Field(NamedTuple):
    """A field whose description is used for a column."""

    type: str
    name: str


class Column(NamedTuple):
    """
    A column of a Table.

    @ivar description: The description, or the field whose description is used.
    @ivar priority: 0 for columns that are always shown, 1 for columns of wide output.
    """

    name: str
    description: Field | str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self, describe: Describe) -> JSONObject:
        """Return the entry in C{columnDefinitions} of a Table."""
        text = self.description if isinstance(self.description, str) else describe(*self.description)
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": text,
            "priority": self.priority,
        }


def wide(name: str, description: Field | str) -> Column:
    """Return a column that only wide output shows."""
    return Column(name, description, priority=1)


def integer(name: str, description: Field | str) -> Column:
    """Return a column of integers."""
    return Column(name, description, "integer")


def boolean(name: str, description: Field | str) -> Column:
    """Return a column of booleans."""
    return Column(name, description, "boolean")


def core_field(kind: str, field: str) -> Field:
    """Return a field of a type of the core group."""
    return Field(f"api.core.v1.{kind}", field)


META: Final = "apimachinery.pkg.apis.meta.v1.ObjectMeta"
NAME: Final = Column("Name", Field(META, "name"), format="name")
AGE: Final = Column("Age", Field(META, "creationTimestamp"))
CONTAINERS: Final = (
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
)

#: The default columns.
DEFAULT: Final = (NAME, Column("Created At", Field(META, "creationTimestamp"), "date"))
