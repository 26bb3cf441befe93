"""Table rows of StorageVersions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Row
from ..generic.printers.texts import UNSET, first_few, name_of, status_of


def storage_version(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a StorageVersion: the encoding versions of the servers."""
    status = status_of(obj)
    servers = [
        f"{server.get('apiServerID', '')}={server.get('encodingVersion', '')}"
        for server in status.get("storageVersions") or ()
    ]
    yield name_of(obj)
    yield status.get("commonEncodingVersion") or UNSET
    yield first_few(servers, 3)
    yield age(obj)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "StorageVersion": (
        NAME,
        Column(
            "CommonEncodingVersion",
            Field("api.apiserverinternal.v1alpha1.StorageVersionStatus", "commonEncodingVersion"),
        ),
        Column("StorageVersions", Field("api.apiserverinternal.v1alpha1.StorageVersionStatus", "storageVersions")),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "StorageVersion": storage_version,
}
