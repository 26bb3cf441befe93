"""
Columns of Tables, and those that many kinds have.

Most descriptions are those of fields, which come with the types of the release that is served; only what the
reference says in its own words, or still says in the words of a version that is gone, is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ....api.resource import JSONObject
from .ages import Cell

#: Makes the cells of an object's row, as many as the kind has columns.
Row = Callable[[JSONObject], Iterator[Cell]]

#: Looks up the description of a field: of C{"api.core.v1.PodStatus"}, the field C{"podIP"}.
Describe = Callable[[str, str], str]


class Field(NamedTuple):
    """A field whose description a column has."""

    type: str
    name: str


class Column(NamedTuple):
    """
    A column.

    @ivar description: A text, or the field that has it.
    @ivar priority: 0 for what is always shown, 1 for what is shown only in wide output.
    """

    name: str
    description: Field | str
    type: str = "string"
    format: str = ""
    priority: int = 0

    def definition(self, describe: Describe) -> JSONObject:
        """The entry of a Table's C{columnDefinitions}."""
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

#: The columns of what has none of its own.
DEFAULT: Final = (NAME, Column("Created At", Field(META, "creationTimestamp"), "date"))
