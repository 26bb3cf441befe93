"""
Columns of Tables, and common columns.

Most descriptions are the descriptions of fields in the type definitions of the release; the texts here are those that
the reference also has in its source, or takes from types that are no longer served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ....api.featuregates import FeatureGates
from ....api.resource import JSONObject
from ....api.tables import Describe
from .ages import Cell

#: Returns the cells of the row of an object, one for each column.
Row = Callable[[JSONObject], Iterator[Cell]]
#: The function of a kind, or, if releases differ, functions by condition (L{FeatureGates.meets}); the first that is met
#: counts.
Rows = Row | Mapping[str, Row]


class Field(NamedTuple):
    """A field whose description is used for a column."""

    type: str
    name: str


class Column(NamedTuple):
    """
    A column of a Table.

    @ivar description: The description, or the field whose description is used.
    @ivar priority: 0 for columns that are always shown, 1 for columns of wide output.
    @ivar when: The condition of the column; see L{FeatureGates.meets}.
    """

    name: str
    description: Field | str
    type: str = "string"
    format: str = ""
    priority: int = 0
    when: str = ""

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


def described_before(release: str, description: Field | str, column: Column) -> tuple[Column, Column]:
    """
    Return a column of all releases whose description has changed.

    @param release: The first release with the description of C{column}, such as C{"1.36"}.
    @param description: The description in earlier releases.
    """
    return column._replace(description=description, when=f"<{release}"), column._replace(when=f">={release}")


def select_row(rows: Rows, features: FeatureGates) -> Row:
    """Return the function for rows that a server with C{features} uses."""
    if isinstance(rows, Mapping):
        return next(row for condition, row in rows.items() if features.meets(condition))
    return rows


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
