"""Validation of PersistentVolumes; see kubernetes, C{pkg/apis/core/validation/validation.go}."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from posixpath import normpath
from typing import Final

from ....api.errors import FieldError, forbidden, invalid, required
from ....api.featuregates import FeatureGates
from ....api.go.diff import diff
from ....api.gostructs import go_struct
from ....api.jsontypes import JSONValue
from ....api.objectmeta import UpdateErrors
from ....api.resource import JSONObject
from ...generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    go_json,
    immutable,
    invalid_shown,
    need,
    no_backsteps,
    quantity,
    quantity_positive,
    unsupported,
)
from ..node.labels import term_warnings
from ..pod.validation.affinity import validate_node_selector
from ..pod.validation.initiators import validate_initiator
from ..pod.validation.volumes import SHARED_SOURCES, csi_driver_name

_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")
_RECLAIM: Final = ("Delete", "Recycle", "Retain")
NEGATIVE: Final = "must be a valid resource quantity"
_MOUNT_OPTIONS: Final = "volume.beta.kubernetes.io/mount-options"
STORAGE_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
OLD_STORAGE_CLASS: Final = 'deprecated since v1.8; use "storageClassName" attribute instead'
#: Volume types that support the annotation with mount options.
_MOUNTED_WITH_OPTIONS: Final = (
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
)
#: Deprecated volume types, in the order of the reference's warnings, with their names there.
_OLD_VOLUMES: Final = {
    "cephfs": "cephfs: deprecated in v1.28, non-functional in v1.31+",
    "photonPersistentDisk": "photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+",
    "scaleIO": "scaleIO: deprecated in v1.16, non-functional in v1.22+",
    "storageos": "storageOS: deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "glusterfs: deprecated in v1.25, non-functional in v1.26+",
    "rbd": "rbd: deprecated in v1.28, non-functional in v1.31+",
}
#: Node labels that an update may replace by their new names.
_RENAMED_LABELS: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}

Source = Callable[[JSONObject, str, ErrorList], None]


def access_modes(modes: list[str], path: str, errors: ErrorList) -> None:
    """Check the access modes of a volume or claim."""
    for mode in modes:
        if mode not in _MODES:
            errors.append(unsupported(path, mode, _MODES))
    if "ReadWriteOncePod" in modes and any(mode in _MODES and mode != "ReadWriteOncePod" for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))


def validate_volume(obj: JSONObject) -> list[FieldError]:
    """Return the validation errors of a volume."""
    errors = _volume(obj)
    _mount_options(obj, errors)
    return errors


def _volume(obj: JSONObject) -> list[FieldError]:
    errors: ErrorList = []
    validate_volume_spec(obj["spec"], "spec", errors, obj["metadata"].get("name") or "")
    return errors


def _mount_options(obj: JSONObject, errors: ErrorList) -> None:
    if _MOUNT_OPTIONS not in (obj["metadata"].get("annotations") or {}):
        return
    if all(obj["spec"].get(name) is None for name in _MOUNTED_WITH_OPTIONS):
        text = "may not specify mount options for this volume type"
        errors.append(forbidden(f"metadata.annotations.{_MOUNT_OPTIONS}", text))


def validate_volume_spec(spec: JSONObject, path: str, errors: ErrorList, name: str = "") -> None:
    """
    Validate the spec of a volume: capacity, access modes and source.

    @param spec: The spec.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param name: The name of the volume, which is part of some iSCSI initiator names.
    """
    modes, reclaim = spec.get("accessModes") or [], spec.get("persistentVolumeReclaimPolicy")
    if not modes:
        errors.append(required(f"{path}.accessModes"))
    access_modes(modes, f"{path}.accessModes", errors)
    _capacity(spec.get("capacity"), f"{path}.capacity", errors)
    if reclaim and reclaim not in _RECLAIM:
        errors.append(unsupported(f"{path}.persistentVolumeReclaimPolicy", reclaim, _RECLAIM))
    affinity = spec.get("nodeAffinity")
    if affinity is not None:
        item_path = f"{path}.nodeAffinity.required"
        if affinity.get("required") is not None:
            validate_node_selector(affinity["required"], item_path, errors)
        else:
            errors.append(required(item_path, "must specify required node constraints"))
    _sources(spec, path, name, errors)
    _recycled_root(spec, path, errors)
    if spec.get("storageClassName"):
        check(spec["storageClassName"], f"{path}.storageClassName", dns_subdomain, errors)
    if spec.get("volumeMode") is not None and spec["volumeMode"] not in VOLUME_MODES:
        errors.append(unsupported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    attributes = spec.get("volumeAttributesClassName")
    if attributes is not None:
        item_path = f"{path}.volumeAttributesClassName"
        if attributes:
            check(attributes, item_path, dns_subdomain, errors)
        else:
            errors.append(required(item_path, "an empty string is disallowed"))
        if spec.get("csi") is None:
            errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))


def validate_inline_volume_spec(spec: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate the inline volume of an attachment, which must be a CSI volume with few other fields."""
    source_path = "in the context of inline volumes"
    for name in ("claimRef", "capacity"):
        if spec.get(name) is not None and (spec[name] or name == "claimRef"):
            errors.append(forbidden(f"{path}.{name}", f"may not be specified {source_path}"))
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", f"has to be specified {source_path}"))
    modes, reclaim = spec.get("accessModes") or [], spec.get("persistentVolumeReclaimPolicy")
    if not modes:
        errors.append(required(f"{path}.accessModes"))
    access_modes(modes, f"{path}.accessModes", errors)
    if reclaim and reclaim != "Retain":
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", f"may only be Retain {source_path}"))
    if spec.get("nodeAffinity") is not None:
        errors.append(forbidden(f"{path}.nodeAffinity", f"may not be specified {source_path}"))
    _sources(spec, path, "", errors)
    _recycled_root(spec, path, errors)
    if spec.get("storageClassName"):
        errors.append(forbidden(f"{path}.storageClassName", f"may not be specified {source_path}"))
    if spec.get("volumeMode") not in (None, "Filesystem"):
        errors.append(
            forbidden(f"{path}.volumeMode", f"may not specify volumeMode other than Filesystem {source_path}")
        )


def _recycled_root(spec: JSONObject, path: str, errors: ErrorList) -> None:
    source_path = (spec.get("hostPath") or {}).get("path") or ""
    if (
        source_path.startswith("/")
        and not normpath(source_path).strip("/")
        and spec.get("persistentVolumeReclaimPolicy") == "Recycle"
    ):
        text = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", text))


def _capacity(given: JSONObject | None, path: str, errors: ErrorList) -> None:
    capacity = given or {}
    if not capacity:
        errors.append(required(path))
    if set(capacity) != {"storage"}:
        formatted = None if given is None else dict(sorted(capacity.items()))
        go_type = "core.ResourceList=map[core.ResourceName]resource.Quantity"
        errors.append(unsupported(path, formatted, ("storage",), given, go_type))
    for name, value in sorted(capacity.items()):
        item_path = f"{path}[{name}]"
        if quantity(value).sign() < 0:
            errors.append(invalid(item_path, quantity(value).scaled_value(), NEGATIVE))
        quantity_positive(value, item_path, errors)


def _sources(spec: JSONObject, path: str, name: str, errors: ErrorList) -> None:
    """Validate that there is exactly one source, and the source."""
    count = 0
    for kind, validate in _SOURCES.items():
        source = spec.get(kind)
        if source is None:
            continue
        count += 1
        # The reference does not reject a second source of this type.
        if count > 1 and kind != "flexVolume":
            kind_name = "cephFS" if kind == "cephfs" else kind
            errors.append(forbidden(f"{path}.{kind_name}", "may not specify more than 1 volume type"))
            continue
        # The field path of the reference has another name for this type.
        item_path = f"{path}.{'persistentDisk' if kind == 'gcePersistentDisk' else kind}"
        if kind == "iscsi":
            _iscsi(source, item_path, errors, name)
        else:
            validate(source, item_path, errors)
        if kind == "local" and spec.get("nodeAffinity") is None:
            errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    if not count:
        errors.append(required(path, "must specify a volume type"))


def _local(source: JSONObject, path: str, errors: ErrorList) -> None:
    source_path = source.get("path")
    if not source_path:
        errors.append(required(f"{path}.path"))
    else:
        no_backsteps(source_path, f"{path}.path", errors)


def _glusterfs(source: JSONObject, path: str, errors: ErrorList) -> None:
    SHARED_SOURCES["glusterfs"](source, path, errors)
    namespace, item_path = source.get("endpointsNamespace"), f"{path}.endpointsNamespace"
    if namespace == "":
        text = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(invalid(item_path, namespace, text))
    elif namespace is not None:
        check(namespace, item_path, dns_label, errors)


def _iscsi(source: JSONObject, path: str, errors: ErrorList, name: str = "") -> None:
    portal, initiator = source.get("targetPortal") or "", source.get("initiatorName")
    if not portal:
        errors.append(required(f"{path}.targetPortal"))
    if initiator is not None and len(f"{name}:{portal}".encode()) > 64:
        text = (
            "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
            "specified."
        )
        errors.append(invalid(f"{path}.targetportal", portal, text))
    need(source.get("iqn"), f"{path}.iqn", validate_initiator, errors)
    lun = source.get("lun") or 0
    if not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))
    secret = source.get("secretRef")
    if secret is None and (source.get("chapAuthDiscovery") or source.get("chapAuthSession")):
        errors.append(required(f"{path}.secretRef"))
    elif secret is not None and not secret.get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    if initiator is not None:
        check(initiator, f"{path}.initiatorname", validate_initiator, errors)


def _cinder(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("volumeID"):
        errors.append(required(f"{path}.volumeID"))
    _secret(source, path, errors)


def _azure_file(source: JSONObject, path: str, errors: ErrorList) -> None:
    SHARED_SOURCES["azureFile"](source, path, errors)
    if source.get("secretNamespace") == "":
        errors.append(required(f"{path}.secretNamespace"))


def _storage_os(source: JSONObject, path: str, errors: ErrorList) -> None:
    need(source.get("volumeName"), f"{path}.volumeName", dns_label, errors)
    if source.get("volumeNamespace"):
        check(source["volumeNamespace"], f"{path}.volumeNamespace", dns_label, errors)
    _secret(source, path, errors)


def _secret(source: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate that a reference to a secret has a name and a namespace."""
    if source.get("secretRef") is not None:
        for part in ("name", "namespace"):
            if not source["secretRef"].get(part):
                errors.append(required(f"{path}.secretRef.{part}"))


def _csi(source: JSONObject, path: str, errors: ErrorList) -> None:
    csi_driver_name(source.get("driver") or "", f"{path}.driver", errors)
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    # The reference does not validate the secret for staging.
    for name in ("controllerPublish", "controllerExpand", "nodePublish", "nodeExpand"):
        reference, item_path = source.get(f"{name}SecretRef"), f"{path}.{name}SecretRef"
        if reference is not None:
            need(reference.get("name"), f"{item_path}.name", dns_subdomain, errors)
            need(reference.get("namespace"), f"{item_path}.namespace", dns_label, errors)


#: In the order of the reference, since only the first of several sources is valid.
_SOURCES: Final[Mapping[str, Source]] = {
    **{name: SHARED_SOURCES[name] for name in ("hostPath", "gcePersistentDisk", "awsElasticBlockStore")},
    "glusterfs": _glusterfs,
    **{name: SHARED_SOURCES[name] for name in ("flocker", "nfs", "rbd", "quobyte", "cephfs")},
    "iscsi": _iscsi,
    "cinder": _cinder,
    **{name: SHARED_SOURCES[name] for name in ("fc", "flexVolume")},
    "azureFile": _azure_file,
    **{name: SHARED_SOURCES[name] for name in ("vsphereVolume", "photonPersistentDisk", "portworxVolume")},
    **{name: SHARED_SOURCES[name] for name in ("azureDisk", "scaleIO")},
    "local": _local,
    "storageos": _storage_os,
    "csi": _csi,
}


def validate_volume_update(obj: JSONObject, old: JSONObject, features: FeatureGates) -> list[FieldError]:
    """
    Return the validation errors of an update; the source is immutable.

    As in the reference, errors of the new volume occur twice.
    """
    first = validate_volume(obj)
    errors = _volume(obj)
    spec, before = obj["spec"], old["spec"]
    new, was = _source(spec), _source(before)
    if "csi" in new and "csi" in was and was["csi"].get("controllerExpandSecretRef") is None:
        # This field may be added later.
        new["csi"] = {name: part for name, part in new["csi"].items() if name != "controllerExpandSecretRef"}
    if new != was:
        formatted = diff(*(go_struct(source, "PersistentVolumeSource") for source in (was, new)))
        text = f"spec.persistentvolumesource is immutable after creation\n{formatted}"
        errors.append(forbidden("spec.persistentvolumesource", text))
    immutable(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode", errors)
    affinity, stored = spec.get("nodeAffinity"), before.get("nodeAffinity")
    is_renamed = stored is None or affinity == stored or affinity == _renamed(stored, affinity)
    if not is_renamed and not features.enabled("MutablePVNodeAffinity"):
        text = "field is immutable, except for updating from beta label to GA"
        found = None if affinity is None else go_struct(affinity, "VolumeNodeAffinity")
        errors.append(invalid_shown("nodeAffinity", go_json(found), text, affinity, "*core.VolumeNodeAffinity"))
    attributes, was_class = spec.get("volumeAttributesClassName"), before.get("volumeAttributesClassName")
    if attributes != was_class and not features.enabled("VolumeAttributesClass"):
        text = "update is forbidden when the VolumeAttributesClass feature gate is disabled"
        errors.append(forbidden("spec.volumeAttributesClassName", text))
    if was_class is not None and attributes is None:
        text = "update from non-nil value to nil is forbidden"
        errors.append(forbidden("spec.volumeAttributesClassName", text))
    return UpdateErrors(first, errors)


def _source(spec: JSONObject) -> JSONObject:
    return {name: spec[name] for name in _SOURCES if spec.get(name) is not None}


def _renamed(old: JSONValue, new: JSONValue) -> JSONValue:
    """Return C{old} with the new names of its node labels where C{new} uses them."""
    if isinstance(old, dict) and isinstance(new, dict):
        changed = {name: _renamed(part, new.get(name)) for name, part in old.items()}
        name = _RENAMED_LABELS.get(old.get("key") or "")
        if name and name == new.get("key"):
            changed["key"] = name
        return changed
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_renamed(*pair) for pair in zip(old, new, strict=True)]
    return old


def volume_warnings(obj: JSONObject) -> Iterator[str]:
    """Return warnings about deprecated fields and volume types."""
    spec, annotations = obj["spec"], obj["metadata"].get("annotations") or {}
    if STORAGE_CLASS in annotations:
        yield f"metadata.annotations[{STORAGE_CLASS}]: {OLD_STORAGE_CLASS}"
    if _MOUNT_OPTIONS in annotations:
        yield (f'metadata.annotations[{_MOUNT_OPTIONS}]: deprecated since v1.31; use "mountOptions" attribute instead')
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended "
            "approach is to use dynamic provisioning."
        )
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        yield from term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for kind, text in _OLD_VOLUMES.items():
        if spec.get(kind) is not None:
            yield f"spec.{text}"
