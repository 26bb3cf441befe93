"""Persistent volumes and claims; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from typing import Any, Final

from ...api.errors import Cause, forbidden, invalid, required
from ...api.godiff import diff
from ...api.names import qualified_name_problems
from ...api.resource import JSONObject
from ...schema.gostructs import go_struct
from .affinity import validate_node_selector
from .fields import (
    Causes,
    check,
    dns_subdomain,
    go_json,
    immutable,
    invalid_shown,
    label_selector,
    no_backsteps,
    quantity,
    quantity_positive,
    unsupported,
)
from .podvolumes import SHARED_SOURCES, csi_driver_name
from .resources import is_native, resource_value

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
_CLAIM_SPEC: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)
_RESIZES: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_NEGATIVE: Final = "must be a valid resource quantity"
_SOURCES: Final = (*SHARED_SOURCES, "local", "csi")


def _access_modes(modes: list[str], path: str, causes: Causes) -> None:
    for mode in modes:
        if mode not in _MODES:
            causes.append(unsupported(path, mode, _MODES))
    if "ReadWriteOncePod" in modes and len(set(modes)) > 1:
        causes.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


# --- volumes -----------------------------------------------------------------------------------------------------


def validate_volume(obj: JSONObject) -> list[Cause]:
    """A volume as it may stand."""
    causes: Causes = []
    validate_volume_spec(obj["spec"], "spec", causes)
    return causes


def validate_volume_spec(spec: JSONObject, path: str, causes: Causes) -> None:
    """Capacity, access, and where the data are."""
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    if not modes:
        causes.append(required(f"{path}.accessModes"))
    _access_modes(modes, f"{path}.accessModes", causes)
    if not capacity:
        causes.append(required(f"{path}.capacity"))
    if set(capacity) != {"storage"}:
        shown = dict(sorted(capacity.items())) or None
        causes.append(unsupported(f"{path}.capacity", shown, ("storage",)))
    for name in sorted(capacity):
        where = f"{path}.capacity[{name}]"
        if name == "storage" and quantity(capacity[name]).sign() < 0:
            causes.append(invalid(where, quantity(capacity[name]).scaled(), "must be a valid resource quantity"))
        if name == "storage":
            quantity_positive(capacity[name], where, causes)
    reclaim = spec.get("persistentVolumeReclaimPolicy")
    if reclaim and reclaim not in _RECLAIM:
        causes.append(unsupported(f"{path}.persistentVolumeReclaimPolicy", reclaim, _RECLAIM))
    affine = (spec.get("nodeAffinity") or {}).get("required") is not None
    if spec.get("nodeAffinity") is not None:
        if affine:
            validate_node_selector(spec["nodeAffinity"]["required"], f"{path}.nodeAffinity.required", causes)
        else:
            text = "must specify required node constraints"
            causes.append(required(f"{path}.nodeAffinity.required", text))
    count = 0
    for name in _SOURCES:
        source = spec.get(name)
        if source is None:
            continue
        count += 1
        if count > 1:
            causes.append(forbidden(f"{path}.{name}", "may not specify more than 1 volume type"))
        elif name == "local":
            _local(source, affine, path, causes)
        elif name == "csi":
            _csi(source, f"{path}.csi", causes)
        else:
            SHARED_SOURCES[name](source, f"{path}.{name}", causes)
    if not count:
        causes.append(required(path, "must specify a volume type"))
    if (spec.get("hostPath") or {}).get("path") == "/" and reclaim == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        causes.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", text))
    if spec.get("storageClassName"):
        check(spec["storageClassName"], f"{path}.storageClassName", dns_subdomain, causes)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in _VOLUME_MODES:
        causes.append(unsupported(f"{path}.volumeMode", spec["volumeMode"], _VOLUME_MODES))


def _local(source: JSONObject, affine: bool, path: str, causes: Causes) -> None:
    where = source.get("path")
    if not where:
        causes.append(required(f"{path}.local.path"))
    else:
        no_backsteps(where, f"{path}.local.path", causes)
    if not affine:
        causes.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))


def _csi(source: JSONObject, path: str, causes: Causes) -> None:
    csi_driver_name(source.get("driver") or "", f"{path}.driver", causes)
    if not source.get("volumeHandle"):
        causes.append(required(f"{path}.volumeHandle"))
    for name in (
        "controllerPublishSecretRef",
        "nodePublishSecretRef",
        "nodeStageSecretRef",
        "controllerExpandSecretRef",
        "nodeExpandSecretRef",
    ):
        reference = source.get(name)
        if reference is not None:
            for part in ("name", "namespace"):
                if not reference.get(part):
                    causes.append(required(f"{path}.{name}.{part}"))


def validate_volume_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Where the data are does not change."""
    causes = validate_volume(obj)
    spec, before = obj["spec"], old["spec"]
    new, was = _source(spec), _source(before)
    if "csi" in new and "csi" in was and "controllerExpandSecretRef" not in was["csi"]:
        # This one may be added later.
        new["csi"] = {name: part for name, part in new["csi"].items() if name != "controllerExpandSecretRef"}
    if new != was:
        shown = diff(*(go_struct(one, "PersistentVolumeSource") for one in (new, was)))
        text = f"spec.persistentvolumesource is immutable after creation\n{shown}"
        causes.append(forbidden("spec.persistentvolumesource", text))
    immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode", causes)
    if before.get("nodeAffinity") is not None and spec.get("nodeAffinity") != before["nodeAffinity"]:
        text = "field is immutable, except for updating from beta label to GA"
        affinity = spec.get("nodeAffinity")
        found = None if affinity is None else go_struct(affinity, "VolumeNodeAffinity")
        causes.append(invalid_shown("nodeAffinity", go_json(found), text))
    return causes


def _source(spec: JSONObject) -> JSONObject:
    return {name: spec[name] for name in _SOURCES if spec.get(name) is not None}


# --- claims ------------------------------------------------------------------------------------------------------


def validate_claim(obj: JSONObject) -> list[Cause]:
    """A claim as it may stand."""
    causes: Causes = []
    validate_claim_spec(obj["spec"], "spec", causes)
    return causes


def validate_claim_spec(spec: JSONObject, path: str, causes: Causes) -> None:
    """Size, access, class, data source; also of claims that are templates."""
    modes = spec.get("accessModes") or []
    if not modes:
        causes.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    if spec.get("selector") is not None:
        label_selector(spec["selector"], f"{path}.selector", causes)
    _access_modes(modes, f"{path}.accessModes", causes)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        causes.append(required(f"{path}.resources[storage]"))
    else:
        quantity_positive(size, f"{path}.resources[storage]", causes)
    if spec.get("storageClassName"):
        check(spec["storageClassName"], f"{path}.storageClassName", dns_subdomain, causes)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in _VOLUME_MODES:
        causes.append(unsupported(f"{path}.volumeMode", spec["volumeMode"], _VOLUME_MODES))
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for name, data in (("dataSource", source), ("dataSourceRef", reference)):
        if data is not None:
            _data_source(data, f"{path}.{name}", causes)
    if source is not None and reference is not None and _identity(source) != _identity(reference):
        causes.append(invalid_shown(path, "{}", "must match dataSourceRef"))
    if spec.get("volumeAttributesClassName"):
        where = f"{path}.volumeAttributesClassName"
        check(spec["volumeAttributesClassName"], where, dns_subdomain, causes)


def _identity(data: JSONObject) -> list[str]:
    return [data.get(part) or "" for part in ("apiGroup", "kind", "name")]


def _data_source(data: JSONObject, path: str, causes: Causes) -> None:
    for name in ("name", "kind"):
        if not data.get(name):
            causes.append(required(f"{path}.{name}"))
    group = data.get("apiGroup") or ""
    if not group and data.get("kind") != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        causes.append(invalid(path, data.get("kind") or "", text))
    if group:
        for text in dns_subdomain(group):
            causes.append(invalid(f"{path}.apiGroup", group, text))


def validate_claim_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Only a bound claim may change, and only in size and attributes."""
    causes = validate_claim(obj)
    spec, before = dict(obj["spec"]), dict(old["spec"])
    if not before.get("volumeName"):
        _carry(before, spec, "volumeName")
    if before.get("storageClassName") is None:
        _carry(spec, before, "storageClassName")
    bound = (obj.get("status") or {}).get("phase") == "Bound"
    if bound:
        requests = dict((before.get("resources") or {}).get("requests") or {})
        spec["resources"] = {
            **(spec.get("resources") or {}),
            "requests": {**((spec.get("resources") or {}).get("requests") or {}), "storage": requests.get("storage")},
        }
        if spec.get("volumeAttributesClassName") is not None:
            _carry(spec, before, "volumeAttributesClassName")
    if spec != before:
        causes.append(
            forbidden(
                "spec", _CLAIM_SPEC + diff(*(go_struct(one, "PersistentVolumeClaimSpec") for one in (before, spec)))
            )
        )
    _size(obj, old, causes)
    immutable(obj["spec"].get("volumeMode"), old["spec"].get("volumeMode"), "volumeMode", causes)
    held, new = old["spec"].get("volumeAttributesClassName"), obj["spec"].get("volumeAttributesClassName")
    if held is not None and held != new:
        where = "spec.volumeAttributesClassName"
        if new is None:
            causes.append(forbidden(where, "update from non-nil value to nil is forbidden"))
        elif not new:
            causes.append(forbidden(where, "update from non-nil value to an empty string is forbidden"))
    return causes


def _carry(target: JSONObject, source: JSONObject, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _size(obj: JSONObject, old: JSONObject, causes: Causes) -> None:
    """A claim does not shrink below what it has."""

    def storage(holder: JSONObject, *path: str) -> Any:
        found: Any = holder
        for name in path:
            found = (found or {}).get(name)
        return quantity(found if found is not None else "0")

    new = storage(obj, "spec", "resources", "requests", "storage")
    was = storage(old, "spec", "resources", "requests", "storage")
    if new < was and new <= storage(old, "status", "capacity", "storage"):
        text = "field can not be less than status.capacity"
        causes.append(forbidden("spec.resources.requests.storage", text))


def validate_claim_status_update(obj: JSONObject, old: JSONObject) -> list[Cause]:
    """Amounts."""
    causes: Causes = []
    if not obj["spec"].get("accessModes"):
        causes.append(required("Spec.accessModes"))
    status = obj.get("status") or {}
    for name, value in sorted((status.get("capacity") or {}).items()):
        if quantity(value).sign() < 0:
            causes.append(invalid(f"status.capacity[{name}]", quantity(value).scaled(), _NEGATIVE))
    path = "status.allocatedResourceStatus"
    for name, value in sorted((status.get("allocatedResourceStatuses") or {}).items()):
        if _resizable(name, path, causes) and value not in _RESIZES:
            # The reference shows the resource here, not what was said of it.
            causes.append(unsupported(path, name, _RESIZES))
    path = "status.allocatedResources"
    for name, value in sorted((status.get("allocatedResources") or {}).items()):
        if not _resizable(name, path, causes):
            continue
        if quantity(value).sign() < 0:
            causes.append(invalid(f"{path}[{name}]", quantity(value).scaled(), _NEGATIVE))
        else:
            resource_value(name, value, f"{path}[{name}]", causes)
    return causes


def _resizable(name: str, path: str, causes: Causes) -> bool:
    """Whether a claim can have been given some of a resource: storage, or what is not Kubernetes' own."""
    texts = qualified_name_problems(name)
    if texts:
        causes.extend(invalid(path, name, text) for text in texts)
    elif is_native(name) and name != "storage":
        causes.append(unsupported(path, name, ("storage",)))
    else:
        return True
    return False
