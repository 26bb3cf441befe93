"""Table rows of StorageClasses, VolumeAttributesClasses, VolumeAttachments and CSI objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...api.resource import JSONObject
from ..generic.printers.ages import Cell, age
from ..generic.printers.columns import AGE, NAME, Column, Field, Rows, boolean, integer
from ..generic.printers.texts import NONE, UNSET, name_of, spec_of, status_of

_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_ATTRIBUTES_ANNOTATION = "volumeattributesclass.alpha.kubernetes.io/is-default-class"


def storage_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a StorageClass: provisioner and policies."""
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in _DEFAULT_CLASS_ANNOTATIONS)
    yield f"{name_of(obj)} (default)" if default else name_of(obj)
    yield obj.get("provisioner", "")
    yield obj.get("reclaimPolicy") or "Delete"
    yield obj.get("volumeBindingMode") or "Immediate"
    yield bool(obj.get("allowVolumeExpansion"))
    yield age(obj)


def volume_attributes_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a VolumeAttributesClass: its driver."""
    yield name_of(obj)
    yield obj.get("driverName", "")
    yield age(obj)


def marked_volume_attributes_class(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a VolumeAttributesClass before 1.34; the name of a default class is marked."""
    name, *rest = volume_attributes_class(obj)
    annotations = obj["metadata"].get("annotations") or {}
    yield f"{name} (default)" if annotations.get(_DEFAULT_ATTRIBUTES_ANNOTATION) == "true" else name
    yield from rest


def volume_attachment(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a VolumeAttachment: attacher, volume and node."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("attacher", "")
    yield (spec.get("source") or {}).get("persistentVolumeName") or ""
    yield spec.get("nodeName", "")
    yield bool(status_of(obj).get("attached"))
    yield age(obj)


def csi_node(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a CSINode: the number of its drivers."""
    yield name_of(obj)
    yield len(spec_of(obj).get("drivers") or ())
    yield age(obj)


def csi_driver(obj: JSONObject) -> Iterator[Cell]:
    """Return the cells of a CSIDriver: its capabilities."""
    spec = spec_of(obj)
    requests = spec.get("tokenRequests")
    attach = spec.get("attachRequired")
    yield name_of(obj)
    yield True if attach is None else attach
    yield bool(spec.get("podInfoOnMount"))
    yield bool(spec.get("storageCapacity"))
    yield UNSET if requests is None else ",".join(request.get("audience", "") for request in requests)
    yield bool(spec.get("requiresRepublish"))
    yield ",".join(spec.get("volumeLifecycleModes") or ()) or NONE
    yield age(obj)


def _storage(kind: str, field: str) -> Field:
    return Field(f"api.storage.v1.{kind}", field)


#: The columns of a kind's Tables.
COLUMNS: Final[Mapping[str, tuple[Column, ...]]] = {
    "StorageClass": (
        NAME,
        *(
            Column(name, _storage("StorageClass", name[0].lower() + name[1:]))
            for name in ("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion")
        ),
        AGE,
    ),
    "VolumeAttributesClass": (
        NAME,
        Column("DriverName", _storage("VolumeAttributesClass", "driverName")),
        AGE,
    ),
    "VolumeAttachment": (
        NAME,
        Column("Attacher", _storage("VolumeAttachmentSpec", "attacher"), format="name"),
        Column("PV", _storage("VolumeAttachmentSource", "persistentVolumeName")),
        Column("Node", _storage("VolumeAttachmentSpec", "nodeName")),
        boolean("Attached", _storage("VolumeAttachmentStatus", "attached")),
        AGE,
    ),
    "CSINode": (
        NAME,
        integer("Drivers", "Drivers indicates the number of CSI drivers registered on the node"),
        AGE,
    ),
    "CSIDriver": (
        NAME,
        boolean("AttachRequired", _storage("CSIDriverSpec", "attachRequired")),
        boolean("PodInfoOnMount", _storage("CSIDriverSpec", "podInfoOnMount")),
        boolean("StorageCapacity", _storage("CSIDriverSpec", "storageCapacity")),
        Column("TokenRequests", _storage("CSIDriverSpec", "tokenRequests")),
        boolean("RequiresRepublish", _storage("CSIDriverSpec", "requiresRepublish")),
        Column("Modes", _storage("CSIDriverSpec", "volumeLifecycleModes")),
        AGE,
    ),
}

#: Makes the cells of a kind's row.
ROWS: Final[Mapping[str, Rows]] = {
    "StorageClass": storage_class,
    "VolumeAttributesClass": {"<1.34": marked_volume_attributes_class, "": volume_attributes_class},
    "VolumeAttachment": volume_attachment,
    "CSINode": csi_node,
    "CSIDriver": csi_driver,
}
