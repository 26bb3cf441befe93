"""Rows of Tables for PersistentVolumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....api.jsontypes import JSONValue
from ....api.resource import JSONObject
from ...generic.printers.ages import Cell, age
from ...generic.printers.columns import AGE, NAME, Column, Row, core_field, wide
from ...generic.printers.texts import UNSET, name_of, spec_of, status_of

#: Access modes in the order of printing, abbreviated.
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


#: The deprecated annotation with the storage class.
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"


def persistent_volume(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a volume: capacity, modes, status and claim."""
    spec, status = spec_of(obj), status_of(obj)
    claim = spec.get("claimRef")
    yield name_of(obj)
    yield storage_size(spec.get("capacity"))
    yield access_modes(spec)
    yield spec.get("persistentVolumeReclaimPolicy", "")
    yield phase_of(obj)
    yield "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}"
    yield class_name(obj)
    yield text_or_unset(spec, "volumeAttributesClassName")
    yield status.get("reason", "")
    yield age(obj)
    yield text_or_unset(spec, "volumeMode")


def storage_size(quantities: JSONValue) -> str:
    """Return the amount of storage in a list of quantities."""
    return str((quantities or {}).get("storage", "0"))


def access_modes(owner: JSONObject) -> str:
    """Return the short names of access modes."""
    modes = owner.get("accessModes") or ()
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def phase_of(obj: JSONObject) -> str:
    """Return the phase, or that the object is being deleted."""
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = status_of(obj).get("phase", "")
    return phase


def class_name(obj: JSONObject) -> str:
    """Return the name of a volume's or claim's storage class."""
    annotated = (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    name: str = spec_of(obj).get("storageClassName") or "" if annotated is None else annotated
    return name


def text_or_unset(spec: JSONObject, name: str) -> str:
    """Return the text of a field, or C{<unset>}."""
    value = spec.get(name)
    return UNSET if value is None else str(value)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "PersistentVolume": (
        NAME,
        Column("Capacity", core_field("PersistentVolumeSpec", "capacity")),
        Column("Access Modes", core_field("PersistentVolumeSpec", "accessModes")),
        Column("Reclaim Policy", core_field("PersistentVolumeSpec", "persistentVolumeReclaimPolicy")),
        Column("Status", core_field("PersistentVolumeStatus", "phase")),
        Column("Claim", core_field("PersistentVolumeSpec", "claimRef")),
        Column("StorageClass", "StorageClass of the pv"),
        Column("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
        Column("Reason", core_field("PersistentVolumeStatus", "reason")),
        AGE,
        wide("VolumeMode", core_field("PersistentVolumeSpec", "volumeMode")),
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Row]] = {
    "PersistentVolume": persistent_volume,
}
