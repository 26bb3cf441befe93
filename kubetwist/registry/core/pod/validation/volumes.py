"""Validation of the volumes of a pod; see kubernetes, C{pkg/apis/core/validation/validation.go}, ValidateVolumes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from .....api.errors import duplicate, forbidden, invalid, required, too_long
from .....api.names import validate_qualified_name
from .....api.resource import JSONObject
from ....generic.validation.fields import (
    ErrorList,
    check,
    dns_label,
    dns_subdomain,
    local_file_path,
    local_path,
    no_backsteps,
    one_of,
    quantity,
    quote,
    template_metadata,
    unsupported,
    unsupported_string,
)
from ....generic.validation.signernames import signer_name
from .initiators import validate_initiator

_MODE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
#: The fields of the pod that downward API volumes may contain.
VOLUME_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
RESOURCE_FIELDS: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_MANAGED_DISK: Final = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK: Final = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_ADDRESSES: Final = "must be a host:port pair or multiple pairs separated by commas"
_HOST_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")
_KEY_TYPES: Final = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_MIN_CERTIFICATE_SECONDS: Final = 3600
#: Maximum lifetimes of pod certificates in seconds: for signers of kubernetes.io, and for other signers.
_MAX_CERTIFICATE_SECONDS: Final = (86400, 7862400)
#: Field paths of volume sources that differ in the reference.
_SOURCE_PATHS: Final = {"gcePersistentDisk": "persistentDisk"}
_EXTRA_PATHS: Final = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")

Source = Callable[[JSONObject, str, ErrorList], None]


def validate_volumes(
    volumes: list[JSONObject] | None, path: str, errors: ErrorList, pod_name: str = ""
) -> Mapping[str, JSONObject]:
    """
    Validate the volumes of a pod.

    @param volumes: The volumes.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param pod_name: The name of the pod, for the names of claims of ephemeral volumes; C{""} in templates.
    @return: The valid volumes by name: mounts of other volumes are errors.
    """
    good: dict[str, JSONObject] = {}
    generated_claims = {
        f"{pod_name}-{volume.get('name') or ''}"
        for volume in (volumes or () if pod_name else ())
        if volume.get("ephemeral") is not None
    }
    for index, volume in enumerate(volumes or ()):
        item_path = f"{path}[{index}]"
        volume_errors: ErrorList = []
        name = volume.get("name") or ""
        _validate_source(volume, item_path, name, pod_name, volume_errors)
        if not name:
            volume_errors.append(required(f"{item_path}.name"))
        else:
            check(name, f"{item_path}.name", dns_label, volume_errors)
        if name in good:
            volume_errors.append(duplicate(f"{item_path}.name", name))
        if volume_errors:
            errors.extend(volume_errors)
        else:
            good[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in generated_claims:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{item_path}.persistentVolumeClaim.claimName", claim, text))
    return good


def _validate_source(volume: JSONObject, path: str, name: str, pod_name: str, errors: ErrorList) -> None:
    """Validate that there is exactly one source, and the source."""
    count = 0
    for kind, validate in _SOURCES.items():
        source = volume.get(kind)
        if source is None:
            continue
        count += 1
        if count > 1:
            extra = _EXTRA_PATHS.get(kind, kind)
            errors.append(forbidden(f"{path}.{extra}", "may not specify more than 1 volume type"))
        else:
            validate(source, f"{path}.{_SOURCE_PATHS.get(kind, kind)}", errors)
            if kind == "ephemeral" and pod_name and name:
                claim = f"{pod_name}-{name}"
                for text in dns_subdomain(claim):
                    errors.append(invalid(f"{path}.name", name, f"PVC name {quote(claim)}: {text}"))
        portal = f"{name}:{source.get('targetPortal') or ''}"
        if kind == "iscsi" and source.get("initiatorName") is not None and len(portal.encode()) > 64:
            errors.append(invalid(f"{path}.name", name, _LONG_PORTAL))
    if not count:
        errors.append(required(path, "must specify a volume type"))


_LONG_PORTAL: Final = (
    "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters "
    "if iscsi.initiatorName is specified."
)


def _needs(*names: str) -> Source:
    def validate(source: JSONObject, path: str, errors: ErrorList) -> None:
        for name in names:
            if not source.get(name):
                errors.append(required(f"{path}.{name}"))

    return validate


def _empty_dir(source: JSONObject, path: str, errors: ErrorList) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity(limit).sign() < 0:
        errors.append(forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _host_path(source: JSONObject, path: str, errors: ErrorList) -> None:
    file_path = source.get("path")
    if not file_path:
        errors.append(required(f"{path}.path"))
        return
    no_backsteps(file_path, f"{path}.path", errors)
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        errors.append(unsupported(f"{path}.type", kind, _HOST_PATH_TYPES))


def _git_repo(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("repository"):
        errors.append(required(f"{path}.repository"))
    local_path(source.get("directory") or "", f"{path}.directory", errors)


def validate_mode(mode: int | None, path: str, errors: ErrorList) -> None:
    """Validate the mode of a file."""
    if mode is not None and not 0 <= mode <= 0o777:
        errors.append(invalid(path, mode, _MODE))


def _items(items: list[JSONObject] | None, path: str, errors: ErrorList) -> None:
    for index, item in enumerate(items or ()):
        _item(item, f"{path}[{index}]", errors)


def _item(item: JSONObject, path: str, errors: ErrorList) -> None:
    if not item.get("key"):
        errors.append(required(f"{path}.key"))
    file_path = item.get("path")
    if not file_path:
        errors.append(required(f"{path}.path"))
    local_file_path(file_path or "", f"{path}.path", errors)
    validate_mode(item.get("mode"), f"{path}.mode", errors)


def _secret(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("secretName"):
        errors.append(required(f"{path}.secretName"))
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    _items(source.get("items"), f"{path}.items", errors)


def _config_map(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("name"):
        errors.append(required(f"{path}.name"))
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    _items(source.get("items"), f"{path}.items", errors)


def _disk(name_field: str) -> Source:
    def validate(source: JSONObject, path: str, errors: ErrorList) -> None:
        if not source.get(name_field):
            errors.append(required(f"{path}.{name_field}"))
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            errors.append(invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive"))

    return validate


def _nfs(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("server"):
        errors.append(required(f"{path}.server"))
    file_path = source.get("path")
    if not file_path:
        errors.append(required(f"{path}.path"))
    if not (file_path or "").startswith("/"):
        errors.append(invalid(f"{path}.path", file_path or "", "must be an absolute path"))


def _iscsi(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("targetPortal"):
        errors.append(required(f"{path}.targetPortal"))
    if not source.get("iqn"):
        errors.append(required(f"{path}.iqn"))
    else:
        _disk_name(source["iqn"], f"{path}.iqn", errors)
    lun = source.get("lun") or 0
    if not 0 <= lun <= 255:
        errors.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        errors.append(required(f"{path}.secretRef"))
    if source.get("initiatorName") is not None:
        _disk_name(source["initiatorName"], f"{path}.initiatorname", errors)


def _disk_name(name: str, path: str, errors: ErrorList) -> None:
    if name.startswith(("iqn", "eui", "naa")):
        check(name, path, validate_initiator, errors)
    else:
        errors.append(invalid(path, name, "must be valid format starting with iqn, eui, or naa"))


def _quobyte(source: JSONObject, path: str, errors: ErrorList) -> None:
    registry = source.get("registry")
    if not registry:
        errors.append(required(f"{path}.registry", _ADDRESSES))
    elif len((source.get("tenant") or "").encode()) >= 65:
        text = "must be a UUID and may not exceed a length of 64 characters"
        errors.append(required(f"{path}.tenant", text))
    else:
        for pair in registry.split(","):
            if not _HOST_PORT.fullmatch(pair):
                errors.append(invalid(f"{path}.registry", registry, _ADDRESSES))
    if not source.get("volume"):
        errors.append(required(f"{path}.volume"))


def _flocker(source: JSONObject, path: str, errors: ErrorList) -> None:
    name, number = source.get("datasetName") or "", source.get("datasetUUID") or ""
    if not name and not number:
        errors.append(required(path, "one of datasetName and datasetUUID is required"))
    if name and number:
        text = "datasetName and datasetUUID can not be specified simultaneously"
        errors.append(invalid(path, "resource", text))
    if "/" in name:
        errors.append(invalid(f"{path}.datasetName", name, "must not contain '/'"))


def _secret_name(source: JSONObject, path: str, errors: ErrorList) -> None:
    """Validate the name in a reference to a secret."""
    if source.get("secretRef") is not None and not source["secretRef"].get("name"):
        errors.append(required(f"{path}.secretRef.name"))


def _cinder(source: JSONObject, path: str, errors: ErrorList) -> None:
    _needs("volumeID")(source, path, errors)
    _secret_name(source, path, errors)


def _storage_os(source: JSONObject, path: str, errors: ErrorList) -> None:
    _needs("volumeName")(source, path, errors)
    for name in ("volumeName", "volumeNamespace"):
        if source.get(name):
            check(source[name], f"{path}.{name}", dns_label, errors)
    _secret_name(source, path, errors)


def _flex(source: JSONObject, path: str, errors: ErrorList) -> None:
    _needs("driver")(source, path, errors)
    for key in sorted(source.get("options") or ()):
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            text = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{key}]", key, text))


def _claim(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("claimName"):
        errors.append(required(f"{path}.claimName"))


def field_selector(reference: JSONObject, choice: tuple[str, ...], path: str, errors: ErrorList) -> None:
    """
    Validate a reference to a field of the pod in the downward API.

    @param reference: The reference.
    @param choice: The supported fields.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    """
    if not reference.get("apiVersion"):
        errors.append(required(f"{path}.apiVersion"))
        return
    field = reference.get("fieldPath") or ""
    if not field:
        errors.append(required(f"{path}.fieldPath"))
        return
    base, bracket, rest = field.partition("[")
    subscript = rest[1:-2] if bracket and rest[:1] == "'" and rest[-2:] == "']" else None
    if reference["apiVersion"] != "v1":
        text = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        errors.append(invalid(f"{path}.fieldPath", field, text))
    elif subscript is not None and base in ("metadata.annotations", "metadata.labels"):
        name = subscript.lower() if base == "metadata.annotations" else subscript
        for text in validate_qualified_name(name):
            errors.append(invalid(path, name, text))
    elif (subscript is None and field not in _KNOWN_FIELDS) or (subscript is not None and base not in _KNOWN_FIELDS):
        text = f"error converting fieldPath: field label not supported: {field if subscript is None else base}"
        errors.append(invalid(f"{path}.fieldPath", field, text))
    elif subscript is not None:
        errors.append(invalid(path, base, "does not support subscript"))
    elif field not in choice:
        errors.append(unsupported_string(f"{path}.fieldPath", field, choice))


_KNOWN_FIELDS: Final = frozenset(
    (
        *VOLUME_FIELDS,
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    )
)


def resource_selector(reference: JSONObject, path: str, errors: ErrorList, *, volume: bool) -> None:
    """
    Validate a reference to a resource of a container in the downward API.

    @param reference: The reference.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param volume: Whether the reference is in a volume, which requires the name of the container.
    """
    name = reference.get("resource") or ""
    if volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not name:
        errors.append(required(f"{path}.resource"))
    elif name not in RESOURCE_FIELDS and not name.startswith(("requests.hugepages-", "limits.hugepages-")):
        errors.append(unsupported_string(f"{path}.resource", name, RESOURCE_FIELDS))
    divisor = str(reference.get("divisor") or "0")
    if quantity(divisor).sign() == 0:
        return
    suffix = name.partition(".")[2]
    if name in ("limits.cpu", "requests.cpu"):
        if divisor not in ("1m", "1"):
            text = "only divisor's values 1m and 1 are supported with the cpu resource"
            errors.append(invalid(f"{path}.divisor", name, text))
        return
    kind = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(suffix)
    if kind is None and suffix.startswith("hugepages-"):
        kind = "hugepages"
    if kind is not None and name.startswith(("limits.", "requests.")) and divisor not in _BYTE_DIVISORS:
        text = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {kind} resource"
        errors.append(invalid(f"{path}.divisor", name, text))


def _downward_item(item: JSONObject, path: str, errors: ErrorList) -> None:
    file_path = item.get("path")
    if not file_path:
        errors.append(required(f"{path}.path"))
    local_file_path(file_path or "", f"{path}.path", errors)
    reference = item.get("fieldRef")
    resource = item.get("resourceFieldRef")
    if reference is not None:
        field_selector(reference, VOLUME_FIELDS, f"{path}.fieldRef", errors)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", text))
    elif resource is not None:
        resource_selector(resource, f"{path}.resourceFieldRef", errors, volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    validate_mode(item.get("mode"), f"{path}.mode", errors)


def _downward_api(source: JSONObject, path: str, errors: ErrorList) -> None:
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    for item in source.get("items") or ():
        _downward_item(item, path, errors)


def _projected(source: JSONObject, path: str, errors: ErrorList) -> None:
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", errors)
    paths: set[str] = set()

    def take(file_path: str | None, value: str | None = None) -> None:
        if file_path and file_path in paths:
            errors.append(invalid(path, file_path if value is None else value, "conflicting duplicate paths"))
        elif file_path:
            paths.add(file_path)

    for index, projection in enumerate(source.get("sources") or ()):
        item_path = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            source_fields = projection.get(kind)
            if source_fields is None:
                continue
            if not source_fields.get("name"):
                errors.append(required(f"{item_path}.{kind}.name"))
            for position, item in enumerate(source_fields.get("items") or ()):
                _item(item, f"{item_path}.{kind}.items[{position}]", errors)
                take(item.get("path"), source_fields.get("name") or "")
        if projection.get("downwardAPI") is not None:
            for item in projection["downwardAPI"].get("items") or ():
                _downward_item(item, f"{item_path}.downwardAPI", errors)
                take(item.get("path"))
        if projection.get("serviceAccountToken") is not None:
            _token(projection["serviceAccountToken"], path, f"{item_path}.serviceAccountToken", errors)
        if projection.get("podCertificate") is not None:
            _pod_certificate(projection["podCertificate"], f"{item_path}.podCertificate", errors, take)
        # Trust bundles are not counted, since their feature gate is disabled and they are dropped.
        if sum(value is not None for value in projection.values()) > 1:
            errors.append(forbidden(item_path, "may not specify more than 1 volume type per source"))


def _token(source: JSONObject, whole: str, path: str, errors: ErrorList) -> None:
    """
    Validate a projected service account token.

    @param whole: The field path of the volume, which the reference uses for errors of the path.
    """
    seconds = source.get("expirationSeconds") or 0
    if seconds < 600:
        errors.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    elif seconds > 2**32:
        errors.append(
            invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    file_path = source.get("path")
    if not file_path:
        errors.append(required(f"{whole}.path"))
    else:
        local_file_path(file_path, f"{whole}.path", errors)


def _pod_certificate(source: JSONObject, path: str, errors: ErrorList, take: Callable[[str], None]) -> None:
    """Validate a projected pod certificate."""
    signer = source.get("signerName") or ""
    signer_name(signer, f"{path}.signerName", errors)
    if source.get("keyType") not in _KEY_TYPES:
        errors.append(unsupported_string(f"{path}.keyType", source.get("keyType") or "", _KEY_TYPES))
    seconds = source.get("maxExpirationSeconds")
    if seconds is not None:
        host = signer.partition("/")[0]
        longest = _MAX_CERTIFICATE_SECONDS[not f".{host}".endswith(".kubernetes.io")]
        limit = f">= {_MIN_CERTIFICATE_SECONDS}" if seconds < _MIN_CERTIFICATE_SECONDS else f"<= {longest}"
        if not _MIN_CERTIFICATE_SECONDS <= seconds <= longest:
            text = f"if provided, maxExpirationSeconds must be {limit}"
            errors.append(invalid(f"{path}.maxExpirationSeconds", seconds, text))
    fields = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(name)]
    for name in fields:
        local_file_path(source[name], f"{path}.{name}", errors)
        take(source[name])
    if not fields:
        text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
        errors.append(required(path, text))


def csi_driver_name(name: str, path: str, errors: ErrorList) -> None:
    """Validate the name of a CSI driver: a DNS name in any case."""
    if not name:
        errors.append(required(path))
        errors += [invalid(path, name, text).before(1, 35) for text in dns_subdomain(name)]
        return
    if len(name) > 63:
        errors.append(too_long(path, 63))
    for text in dns_subdomain(name.lower()):
        errors.append(invalid(path, name, text))


def _csi(source: JSONObject, path: str, errors: ErrorList) -> None:
    csi_driver_name(source.get("driver") or "", f"{path}.driver", errors)
    reference = source.get("nodePublishSecretRef")
    if reference is not None:
        if not reference.get("name"):
            errors.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            check(reference["name"], f"{path}.name", dns_subdomain, errors)


def _ephemeral(source: JSONObject, path: str, errors: ErrorList) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        errors.append(required(f"{path}.volumeClaimTemplate"))
        return
    from ...persistentvolumeclaim.validation import validate_claim_spec

    item_path, metadata = f"{path}.volumeClaimTemplate.metadata", template.get("metadata") or {}
    template_metadata(metadata, item_path, errors)
    validate_claim_spec(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec", errors)


def _image(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("reference"):
        errors.append(required(f"{path}.reference"))
    one_of(source.get("pullPolicy"), _PULL_POLICIES, f"{path}.pullPolicy", errors)


def _azure_disk(source: JSONObject, path: str, errors: ErrorList) -> None:
    _needs("diskName", "diskURI")(source, path, errors)
    mode, kind, uri = source.get("cachingMode"), source.get("kind"), source.get("diskURI") or ""
    if mode is not None and mode not in ("None", "ReadOnly", "ReadWrite"):
        errors.append(unsupported(f"{path}.cachingMode", mode, ("None", "ReadOnly", "ReadWrite")))
    if kind is None:
        return
    if kind not in ("Dedicated", "Managed", "Shared"):
        errors.append(unsupported(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared")))
    form = _MANAGED_DISK if kind == "Managed" else _BLOB_DISK
    if not uri.startswith(form.partition("{")[0]):
        errors.append(unsupported_string(f"{path}.diskURI", uri, (form,)))


def _fibre(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("targetWWNs") and not source.get("wwids"):
        errors.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    if source.get("targetWWNs") and source.get("wwids"):
        text = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", source["targetWWNs"], text))
    lun = source.get("lun")
    if source.get("targetWWNs"):
        if lun is None:
            errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        elif not 0 <= lun <= 255:
            errors.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))


def _cephfs(source: JSONObject, path: str, errors: ErrorList) -> None:
    if not source.get("monitors"):
        errors.append(required(f"{path}.monitors"))


#: In the order of the reference, since only the first of several sources is valid. Also for PersistentVolumes.
_SOURCES: Final[Mapping[str, Source]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _secret,
    "nfs": _nfs,
    "iscsi": _iscsi,
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _flocker,
    "persistentVolumeClaim": _claim,
    "rbd": _needs("monitors", "image"),
    "cinder": _cinder,
    "cephfs": _cephfs,
    "quobyte": _quobyte,
    "downwardAPI": _downward_api,
    "fc": _fibre,
    "flexVolume": _flex,
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _storage_os,
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}

SHARED_SOURCES: Final[Mapping[str, Source]] = {
    name: _SOURCES[name]
    for name in (
        "hostPath",
        "gcePersistentDisk",
        "awsElasticBlockStore",
        "glusterfs",
        "flocker",
        "nfs",
        "rbd",
        "quobyte",
        "cephfs",
        "iscsi",
        "cinder",
        "fc",
        "flexVolume",
        "azureFile",
        "vsphereVolume",
        "photonPersistentDisk",
        "portworxVolume",
        "azureDisk",
        "scaleIO",
        "storageos",
    )
}
