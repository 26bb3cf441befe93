"""Rows of volumes, claims, and the classes and drivers behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...api.resource import JSONObject
from ..generic.printers.ages import age
from ..generic.printers.texts import NONE, UNSET, name_of, spec_of, status_of

#: Access modes in the order of printing, abbreviated.
_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
#: Where the class of a volume was before it had a field.
_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def persistent_volume(obj: JSONObject) -> Iterator[Any]:
    """Size, modes, state and claim."""
    spec, status = spec_of(obj), status_of(obj)
    claim = spec.get("claimRef")
    yield name_of(obj)
    yield _storage(spec.get("capacity"))
    yield _access_modes(spec)
    yield spec.get("persistentVolumeReclaimPolicy", "")
    yield _phase(obj)
    yield "" if claim is None else f"{claim.get('namespace', '')}/{claim.get('name', '')}"
    yield _class(obj)
    yield _given(spec, "volumeAttributesClassName")
    yield status.get("reason", "")
    yield age(obj)
    yield _given(spec, "volumeMode")


def persistent_volume_claim(obj: JSONObject) -> Iterator[Any]:
    """State and volume; what it got is told only once it is bound."""
    spec, status = spec_of(obj), status_of(obj)
    bound = bool(spec.get("volumeName"))
    yield name_of(obj)
    yield _phase(obj)
    yield spec.get("volumeName", "")
    yield _storage(status.get("capacity")) if bound else ""
    yield _access_modes(status) if bound else ""
    yield _class(obj)
    yield _given(spec, "volumeAttributesClassName")
    yield age(obj)
    yield _given(spec, "volumeMode")


def _storage(quantities: Any) -> str:
    return str((quantities or {}).get("storage", "0"))


def _access_modes(owner: JSONObject) -> str:
    modes = owner.get("accessModes") or ()
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _phase(obj: JSONObject) -> str:
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    phase: str = status_of(obj).get("phase", "")
    return phase


def _class(obj: JSONObject) -> str:
    annotated = (obj["metadata"].get("annotations") or {}).get(_CLASS_ANNOTATION)
    name: str = spec_of(obj).get("storageClassName") or "" if annotated is None else annotated
    return name


def _given(spec: JSONObject, name: str) -> str:
    value = spec.get(name)
    return UNSET if value is None else str(value)


def storage_class(obj: JSONObject) -> Iterator[Any]:
    """Who provisions, and how."""
    annotations = obj["metadata"].get("annotations") or {}
    default = any(annotations.get(name) == "true" for name in _DEFAULT_CLASS_ANNOTATIONS)
    yield f"{name_of(obj)} (default)" if default else name_of(obj)
    yield obj.get("provisioner", "")
    yield obj.get("reclaimPolicy") or "Delete"
    yield obj.get("volumeBindingMode") or "Immediate"
    yield bool(obj.get("allowVolumeExpansion"))
    yield age(obj)


def volume_attributes_class(obj: JSONObject) -> Iterator[Any]:
    """Its driver."""
    yield name_of(obj)
    yield obj.get("driverName", "")
    yield age(obj)


def volume_attachment(obj: JSONObject) -> Iterator[Any]:
    """What is attached where."""
    spec = spec_of(obj)
    yield name_of(obj)
    yield spec.get("attacher", "")
    yield (spec.get("source") or {}).get("persistentVolumeName") or ""
    yield spec.get("nodeName", "")
    yield bool(status_of(obj).get("attached"))
    yield age(obj)


def csi_node(obj: JSONObject) -> Iterator[Any]:
    """How many drivers it has."""
    yield name_of(obj)
    yield len(spec_of(obj).get("drivers") or ())
    yield age(obj)


def csi_driver(obj: JSONObject) -> Iterator[Any]:
    """What the driver wants done for it."""
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
