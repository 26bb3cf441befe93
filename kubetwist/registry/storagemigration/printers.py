"""Table rows of StorageVersionMigrations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell
from ..generic.printers.columns import META, Column, Field, Rows, described_before
from ..generic.printers.texts import name_of, spec_of, status_of

#: The conditions that are shown as the status.
_STATES: Final = ("Running", "Failed", "Succeeded")


def storage_version_migration(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a StorageVersionMigration: its resource and status; it has no age."""
    resource = spec_of(obj).get("resource") or {}
    name, group = resource.get("resource", ""), resource.get("group", "")
    state = "Unknown"
    for one in status_of(obj).get("conditions") or ():
        if one.get("status") == "True" and one.get("type") in _STATES:
            state = one["type"]
    yield name_of(obj)
    yield f"{name}.{group}" if group else name
    yield state


def storage_version_migration_before(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a StorageVersionMigration before 1.35: its resource with the version."""
    resource = spec_of(obj).get("resource") or {}
    yield name_of(obj)
    yield ".".join(resource.get(name, "") for name in ("resource", "version", "group"))


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "StorageVersionMigration": (
        Column("Name", Field(META, "name")),
        *described_before(
            "1.35", "Fully qualified resource to migrate", Column("Resource", "GroupResource to migrate")
        ),
        Column("Status", "Status of the migration", when=">=1.35"),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "StorageVersionMigration": {"<1.35": storage_version_migration_before, "": storage_version_migration},
}
