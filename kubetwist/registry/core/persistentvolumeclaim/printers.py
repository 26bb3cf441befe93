"""Rows of Tables for PersistentVolumeClaims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row, core_field, wide
from ...generic.printers.texts import name_of, spec_of, status_of
from ..persistentvolume.printers import access_modes, class_name, phase_of, storage_size, text_or_unset


def persistent_volume_claim(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a claim: phase and volume; capacity and access modes only once it is bound."""
    spec, status = spec_of(obj), status_of(obj)
    bound = bool(spec.get("volumeName"))
    yield name_of(obj)
    yield phase_of(obj)
    yield spec.get("volumeName", "")
    yield storage_size(status.get("capacity")) if bound else ""
    yield access_modes(status) if bound else ""
    yield class_name(obj)
    yield text_or_unset(spec, "volumeAttributesClassName")
    yield age(obj)
    yield text_or_unset(spec, "volumeMode")


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", core_field("PersistentVolumeClaimStatus", "phase")),
        Column("Volume", core_field("PersistentVolumeClaimSpec", "volumeName")),
        Column("Capacity", core_field("PersistentVolumeClaimStatus", "capacity")),
        Column("Access Modes", core_field("PersistentVolumeClaimStatus", "accessModes")),
        Column("StorageClass", "StorageClass of the pvc"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
        AGE,
        wide("VolumeMode", core_field("PersistentVolumeClaimSpec", "volumeMode")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "PersistentVolumeClaim": persistent_volume_claim,
}
