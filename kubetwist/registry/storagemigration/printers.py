"""Table rows of StorageVersionMigrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell
from ..generic.printers.columns import META, Column, Field, Row
from ..generic.printers.texts import name_of, spec_of


def storage_version_migration(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a StorageVersionMigration: its resource; it has no age."""
    resource = spec_of(obj).get("resource") or {}
    yield name_of(obj)
    yield f"{resource.get('resource', '')}.{resource.get('group', '')}"


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "StorageVersionMigration": (
        Column("Name", Field(META, "name")),
        Column("Resource", "Fully qualified resource to migrate"),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "StorageVersionMigration": storage_version_migration,
}
