"""The volumes of a pod; see kubernetes, C{pkg/apis/core/validation/validation.go}, ValidateVolumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ...api.errors import duplicate, forbidden, invalid, required
from ...api.names import qualified_name_problems
from ...api.resource import JSONObject
from .fields import (
    Causes,
    check,
    dns_label,
    dns_subdomain,
    local_file_path,
    local_path,
    no_backsteps,
    one_of,
    quantity,
    quote,
    unsupported,
)

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
#: What downward API volumes may show of their pod.
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
_BYTE_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")

Source = Callable[[JSONObject, str, Causes], None]


def validate_volumes(
    volumes: list[JSONObject] | None, path: str, causes: Causes, pod_name: str = ""
) -> Mapping[str, JSONObject]:
    """
    Check all volumes of a pod.

    @param pod_name: For the names of claims made for generic ephemeral volumes; C{""} in templates.
    @return: Those that are right, by name: mounts of the others lead nowhere.
    """
    good: dict[str, JSONObject] = {}
    for index, volume in enumerate(volumes or ()):
        here = f"{path}[{index}]"
        found: Causes = []
        name = volume.get("name") or ""
        _validate_source(volume, here, name, pod_name, found)
        if not name:
            found.append(required(f"{here}.name"))
        else:
            check(name, f"{here}.name", dns_label, found)
        if name in good:
            found.append(duplicate(f"{here}.name", name))
        if found:
            causes.extend(found)
        else:
            good[name] = volume
    return good


def _validate_source(volume: JSONObject, path: str, name: str, pod_name: str, causes: Causes) -> None:
    """Exactly one source, of which all the rest is true."""
    count = 0
    for kind, validate in _SOURCES.items():
        source = volume.get(kind)
        if source is None:
            continue
        count += 1
        if count > 1:
            causes.append(forbidden(f"{path}.{kind}", "may not specify more than 1 volume type"))
        else:
            validate(source, f"{path}.{kind}", causes)
            if kind in ("rbd", "iscsi") and len(name) > 63:
                causes.append(invalid(f"{path}.name", name, "must be no more than 63 characters"))
            elif kind == "ephemeral" and pod_name:
                claim = f"{pod_name}-{name}"
                for text in dns_subdomain(claim):
                    causes.append(invalid(f"{path}.name", name, f"PVC name {quote(claim)}: {text}"))
    if not count:
        causes.append(required(path, "must specify a volume type"))


def _needs(*names: str) -> Source:
    def validate(source: JSONObject, path: str, causes: Causes) -> None:
        for name in names:
            if not source.get(name):
                causes.append(required(f"{path}.{name}"))

    return validate


def _empty_dir(source: JSONObject, path: str, causes: Causes) -> None:
    limit = source.get("sizeLimit")
    if limit is not None and quantity(limit).sign() < 0:
        causes.append(forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity"))


def _host_path(source: JSONObject, path: str, causes: Causes) -> None:
    where = source.get("path")
    if not where:
        causes.append(required(f"{path}.path"))
        return
    no_backsteps(where, f"{path}.path", causes)
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        causes.append(unsupported(f"{path}.type", kind, _HOST_PATH_TYPES))


def _git_repo(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("repository"):
        causes.append(required(f"{path}.repository"))
    local_path(source.get("directory") or "", f"{path}.directory", causes)


def validate_mode(mode: int | None, path: str, causes: Causes) -> None:
    """The permissions of a file."""
    if mode is not None and not 0 <= mode <= 0o777:
        causes.append(invalid(path, mode, _MODE))


def _items(items: list[JSONObject] | None, path: str, causes: Causes) -> None:
    for index, item in enumerate(items or ()):
        here = f"{path}[{index}]"
        if not item.get("key"):
            causes.append(required(f"{here}.key"))
        where = item.get("path")
        if not where:
            causes.append(required(f"{here}.path"))
        local_file_path(where or "", f"{here}.path", causes)
        validate_mode(item.get("mode"), f"{here}.mode", causes)


def _secret(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("secretName"):
        causes.append(required(f"{path}.secretName"))
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
    _items(source.get("items"), f"{path}.items", causes)


def _config_map(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("name"):
        causes.append(required(f"{path}.name"))
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
    _items(source.get("items"), f"{path}.items", causes)


def _disk(name_field: str) -> Source:
    def validate(source: JSONObject, path: str, causes: Causes) -> None:
        if not source.get(name_field):
            causes.append(required(f"{path}.{name_field}"))
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            causes.append(invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive"))

    return validate


def _nfs(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("server"):
        causes.append(required(f"{path}.server"))
    where = source.get("path")
    if not where:
        causes.append(required(f"{path}.path"))
    elif not where.startswith("/"):
        causes.append(invalid(f"{path}.path", where, "must be an absolute path"))


def _iscsi(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("targetPortal"):
        causes.append(required(f"{path}.targetPortal"))
    name = source.get("iqn") or ""
    if not name:
        causes.append(required(f"{path}.iqn"))
    elif not name.startswith(("iqn", "eui", "naa")):
        causes.append(invalid(f"{path}.iqn", name, "must be valid format starting with iqn, eui, or naa"))
    lun = source.get("lun") or 0
    if not 0 <= lun <= 255:
        causes.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))


def _claim(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("claimName"):
        causes.append(required(f"{path}.claimName"))


def field_selector(reference: JSONObject, choice: tuple[str, ...], path: str, causes: Causes) -> None:
    """A field of a pod, as the downward API offers it."""
    if not reference.get("apiVersion"):
        causes.append(required(f"{path}.apiVersion"))
        return
    field = reference.get("fieldPath") or ""
    if not field:
        causes.append(required(f"{path}.fieldPath"))
        return
    base, bracket, rest = field.partition("[")
    subscript = rest[1:-2] if bracket and rest[:1] == "'" and rest[-2:] == "']" else None
    if reference["apiVersion"] != "v1":
        text = f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}"
        causes.append(invalid(f"{path}.fieldPath", field, text))
    elif subscript is not None and base in ("metadata.annotations", "metadata.labels"):
        name = subscript.lower() if base == "metadata.annotations" else subscript
        for text in qualified_name_problems(name):
            causes.append(invalid(path, name, text))
    elif (subscript is None and field not in _KNOWN_FIELDS) or (subscript is not None and base not in _KNOWN_FIELDS):
        text = f"error converting fieldPath: field label not supported: {field if subscript is None else base}"
        causes.append(invalid(f"{path}.fieldPath", field, text))
    elif subscript is not None:
        causes.append(invalid(path, base, "does not support subscript"))
    elif field not in choice:
        causes.append(unsupported(f"{path}.fieldPath", field, choice))


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


def resource_selector(reference: JSONObject, path: str, causes: Causes, *, volume: bool) -> None:
    """A resource of a container, as the downward API offers it."""
    name = reference.get("resource") or ""
    if volume and not reference.get("containerName"):
        causes.append(required(f"{path}.containerName"))
    elif not name:
        causes.append(required(f"{path}.resource"))
    elif name not in RESOURCE_FIELDS and not name.startswith(("requests.hugepages-", "limits.hugepages-")):
        causes.append(unsupported(f"{path}.resource", name, RESOURCE_FIELDS))
    divisor = str(reference.get("divisor") or "0")
    if quantity(divisor).sign() == 0:
        return
    what = name.partition(".")[2]
    if what == "cpu":
        if divisor not in ("1m", "1"):
            text = "only divisor's values 1m and 1 are supported with the cpu resource"
            causes.append(invalid(f"{path}.divisor", name, text))
    elif divisor not in _BYTE_DIVISORS:
        kind = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(what, "hugepages")
        text = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {kind} resource"
        causes.append(invalid(f"{path}.divisor", name, text))


def _downward_items(source: JSONObject, path: str, causes: Causes) -> None:
    for item in source.get("items") or ():
        where = item.get("path")
        if not where:
            causes.append(required(f"{path}.path"))
        local_file_path(where or "", f"{path}.path", causes)
        reference = item.get("fieldRef")
        resource = item.get("resourceFieldRef")
        if reference is not None:
            field_selector(reference, VOLUME_FIELDS, f"{path}.fieldRef", causes)
            if resource is not None:
                text = "fieldRef and resourceFieldRef can not be specified simultaneously"
                causes.append(invalid(path, "resource", text))
        elif resource is not None:
            resource_selector(resource, f"{path}.resourceFieldRef", causes, volume=True)
        else:
            causes.append(required(path, "one of fieldRef and resourceFieldRef is required"))
        validate_mode(item.get("mode"), f"{path}.mode", causes)


def _downward_api(source: JSONObject, path: str, causes: Causes) -> None:
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
    _downward_items(source, path, causes)


def _projected(source: JSONObject, path: str, causes: Causes) -> None:
    validate_mode(source.get("defaultMode"), f"{path}.defaultMode", causes)
    paths: set[str] = set()

    def take(where: str | None, field: str, name: str) -> None:
        if where:
            if where in paths:
                causes.append(invalid(field, name, f"conflicting duplicate paths: {where}"))
            paths.add(where)

    for index, projection in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        count = 0
        for kind in (
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ):
            part = projection.get(kind)
            if part is None:
                continue
            count += 1
            field = f"{here}.{kind}"
            if count > 1:
                causes.append(forbidden(field, "may not specify more than 1 volume type per source"))
                continue
            if kind in ("secret", "configMap"):
                if not part.get("name"):
                    causes.append(required(f"{field}.name"))
                _items(part.get("items"), f"{field}.items", causes)
                for item in part.get("items") or ():
                    take(item.get("path"), field, part.get("name") or "")
            elif kind == "downwardAPI":
                _downward_items(part, field, causes)
                for item in part.get("items") or ():
                    take(item.get("path"), field, item.get("path") or "")
            elif kind == "serviceAccountToken":
                _token(part, field, causes)
                take(part.get("path"), field, part.get("path") or "")


def _token(source: JSONObject, path: str, causes: Causes) -> None:
    seconds = source.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        causes.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    elif seconds is not None and seconds > 2**32:
        causes.append(
            invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
        )
    where = source.get("path")
    if not where:
        causes.append(required(f"{path}.path"))
    else:
        local_file_path(where, f"{path}.path", causes)


def csi_driver_name(name: str, path: str, causes: Causes) -> None:
    """The name of a CSI driver, which is a name in DNS whatever its case."""
    if not name:
        causes.append(required(path))
        return
    if len(name) > 63:
        from ...api.errors import too_long

        causes.append(too_long(path, 63))
    for text in dns_subdomain(name.lower()):
        causes.append(invalid(path, name, text))


def _csi(source: JSONObject, path: str, causes: Causes) -> None:
    csi_driver_name(source.get("driver") or "", f"{path}.driver", causes)
    reference = source.get("nodePublishSecretRef")
    if reference is not None:
        if not reference.get("name"):
            causes.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            check(reference["name"], f"{path}.name", dns_subdomain, causes)


def _ephemeral(source: JSONObject, path: str, causes: Causes) -> None:
    template = source.get("volumeClaimTemplate")
    if template is None:
        causes.append(required(f"{path}.volumeClaimTemplate"))
        return
    from .persistentvolumes import validate_claim_spec

    validate_claim_spec(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec", causes)


def _image(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("reference"):
        causes.append(required(f"{path}.reference"))
    one_of(source.get("pullPolicy"), _PULL_POLICIES, f"{path}.pullPolicy", causes)


def _azure_disk(source: JSONObject, path: str, causes: Causes) -> None:
    _needs("diskName", "diskURI")(source, path, causes)
    one_of(source.get("cachingMode"), ("None", "ReadOnly", "ReadWrite"), f"{path}.cachingMode", causes)
    kind, uri = source.get("kind"), source.get("diskURI") or ""
    if kind not in ("Dedicated", "Managed", "Shared"):
        causes.append(unsupported(f"{path}.kind", kind or "", ("Dedicated", "Managed", "Shared")))
    form = _MANAGED_DISK if kind == "Managed" else _BLOB_DISK
    if uri and not uri.startswith(form.partition("{")[0].rstrip("/")):
        causes.append(unsupported(f"{path}.diskURI", uri, (form,)))


def _fibre(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("targetWWNs") and not source.get("wwids"):
        causes.append(required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both"))
    lun = source.get("lun")
    if source.get("targetWWNs"):
        if lun is None:
            causes.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        elif not 0 <= lun <= 255:
            causes.append(invalid(f"{path}.lun", lun, "must be between 0 and 255, inclusive"))


def _cephfs(source: JSONObject, path: str, causes: Causes) -> None:
    if not source.get("monitors"):
        causes.append(required(f"{path}.monitors"))


#: In the reference's order, which decides which of several sources is the one too many. Shared with persistent
#: volumes.
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
    "flocker": _needs(),
    "persistentVolumeClaim": _claim,
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _cephfs,
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward_api,
    "fc": _fibre,
    "flexVolume": _needs("driver"),
    "configMap": _config_map,
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _azure_disk,
    "storageos": _needs("volumeName"),
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
