"""Checks that the level C{restricted} adds to C{baseline}."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...api.resource import JSONObject
from .baseline import bad_seccomp
from .checkresult import (
    CheckResult,
    PodCheck,
    bad_containers,
    contexts,
    in_user_namespace,
    is_windows,
    named,
    plural,
    pod_context,
    quoted_list,
    setters,
)

_Annotations = Mapping[str, str]

#: The allowed types of volumes.
ALLOWED_VOLUMES: Final = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
#: The forbidden types of volumes; for a volume of several types, the first one is reported.
RESTRICTED_VOLUMES: Final = (
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
)


def unless_windows(check: PodCheck) -> PodCheck:
    """Return the check limited to pods that are not for Windows."""

    def checked(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
        return None if is_windows(spec) else check(annotations, spec)

    return checked


def unless_user_namespace(check: PodCheck) -> PodCheck:
    """Return the check limited to pods without a user namespace."""

    def checked(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
        return None if in_user_namespace(spec) else check(annotations, spec)

    return checked


def privilege_escalation(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that processes cannot gain more privileges than their parent."""
    names = bad_containers(spec, lambda context: context.get("allowPrivilegeEscalation") is not False)
    if not names:
        return None
    detail = f"{named(names)} must set securityContext.allowPrivilegeEscalation=false"
    return CheckResult("allowPrivilegeEscalation != false", detail)


def capabilities(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that all capabilities are dropped, and only NET_BIND_SERVICE is added."""
    keeping: list[str] = []
    adding: list[str] = []
    added: set[str] = set()
    for name, context in contexts(spec):
        capabilities = context.get("capabilities") or {}
        if "ALL" not in (capabilities.get("drop") or ()):
            keeping.append(name)
        forbidden = set(capabilities.get("add") or ()) - {"NET_BIND_SERVICE"}
        if forbidden:
            adding.append(name)
            added.update(forbidden)
    details = []
    if keeping:
        details.append(f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        listed = quoted_list(sorted(added))
        details.append(f"{named(adding)} must not include {listed} in securityContext.capabilities.add")
    return CheckResult("unrestricted capabilities", "; ".join(details)) if details else None


def volumes(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that all volumes are of types independent of the node and backed by managed storage."""
    names: list[str] = []
    kinds: set[str] = set()
    for volume in spec.get("volumes") or ():
        if any(volume.get(kind) is not None for kind in ALLOWED_VOLUMES):
            continue
        names.append(volume.get("name") or "")
        kinds.add(next((kind for kind in RESTRICTED_VOLUMES if volume.get(kind) is not None), "unknown"))
    if not names:
        return None
    noun = plural("restricted volume type", "restricted volume types", len(kinds))
    return CheckResult(
        "restricted volume types",
        f"{plural('volume', 'volumes', len(names))} {quoted_list(names)} {plural('uses', 'use', len(names))} {noun} "
        f"{quoted_list(sorted(kinds))}",
    )


def run_as_non_root(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that the kubelet enforces that no container runs as root."""
    pod = pod_context(spec).get("runAsNonRoot")
    values = [(name, context.get("runAsNonRoot")) for name, context in contexts(spec)]
    violators = setters(pod is False, [name for name, value in values if value is False])
    if violators:
        return CheckResult("runAsNonRoot != true", f"{violators} must not set securityContext.runAsNonRoot=false")
    unset = [] if pod else [name for name, value in values if value is None]
    if not unset:
        return None
    return CheckResult("runAsNonRoot != true", f"pod or {named(unset)} must set securityContext.runAsNonRoot=true")


def run_as_user(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that no container runs as root."""

    def is_forbidden(context: JSONObject) -> bool:
        return bool(context.get("runAsUser") == 0)

    violators = setters(is_forbidden(pod_context(spec)), bad_containers(spec, is_forbidden))
    return CheckResult("runAsUser=0", f"{violators} must not set runAsUser=0") if violators else None


def seccomp_profile(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that every container has a confining seccomp profile, in its context or in the pod's."""
    kinds: set[str] = set()
    is_forbidden = bad_seccomp(kinds)
    pod = pod_context(spec)
    violators = setters(is_forbidden(pod), bad_containers(spec, is_forbidden))
    if violators:
        detail = f"{violators} must not set securityContext.seccompProfile.type to {quoted_list(sorted(kinds))}"
        return CheckResult("seccompProfile", detail)
    if pod.get("seccompProfile") is not None:
        return None
    unset = bad_containers(spec, lambda context: context.get("seccompProfile") is None)
    if not unset:
        return None
    return CheckResult(
        "seccompProfile",
        f'pod or {named(unset)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"',
    )
