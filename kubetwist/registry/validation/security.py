"""Security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from ...api.errors import duplicate, forbidden, invalid, required, too_long
from ...api.resource import JSONObject
from .fields import Causes, go_json, go_struct, id_number, invalid_shown, local_path, unsupported

_Found = TypeVar("_Found")

_SECCOMP: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_TEXT: Final = (
    "must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)


#: Whether the server whose objects are validated has privileged containers: C{--allow-privileged}.
_privileged_allowed: Final[ContextVar[bool]] = ContextVar("privileged containers are allowed", default=True)


def unprivileged(validate: Callable[..., _Found], *objects: Any) -> _Found:
    """What C{validate} finds in objects, for a server that has no privileged containers."""
    before = _privileged_allowed.set(False)
    try:
        return validate(*objects)
    finally:
        _privileged_allowed.reset(before)


def validate_pod_security_context(context: JSONObject, spec: JSONObject, path: str, causes: Causes) -> None:
    """What holds for all containers of a pod."""
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        id_number(context.get(name), f"{path}.{name}", causes)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        id_number(group, f"{path}.supplementalGroups[{index}]", causes)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        causes.append(invalid(f"{path}.shareProcessNamespace", True, text))
    _sysctls(context.get("sysctls") or [], spec, f"{path}.sysctls", causes)
    _choice(context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"), f"{path}.fsGroupChangePolicy", causes)
    _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", causes)
    _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", causes)
    _choice(context.get("supplementalGroupsPolicy"), ("Merge", "Strict"), f"{path}.supplementalGroupsPolicy", causes)
    _choice(context.get("seLinuxChangePolicy"), ("MountOption", "Recursive"), f"{path}.seLinuxChangePolicy", causes)


def validate_security_context(context: JSONObject, path: str, host_users: bool, causes: Causes) -> None:
    """What holds for one container."""
    if context.get("privileged") and not _privileged_allowed.get():
        causes.append(forbidden(f"{path}.privileged", "disallowed by cluster policy"))
    for name in ("runAsUser", "runAsGroup"):
        id_number(context.get(name), f"{path}.{name}", causes)
    mount = context.get("procMount")
    if mount is not None:
        _choice(mount, ("Default", "Unmasked"), f"{path}.procMount", causes)
        if host_users and mount == "Unmasked":
            text = "`hostUsers` must be false to use `Unmasked`"
            causes.append(invalid(f"{path}.procMount", mount, text))
    if context.get("allowPrivilegeEscalation") is False:
        shown = _shown(context)
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            causes.append(invalid_shown(path, shown, text))
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                causes.append(invalid_shown(path, shown, text))
    _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", causes)
    _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", causes)


_FIELDS: Final = (
    "Capabilities",
    "Privileged",
    "SeLinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
)


def _shown(context: JSONObject) -> str:
    """A container's security context as the reference prints it."""
    found = go_struct(context, _FIELDS)
    for name, fields in (
        ("Capabilities", ("Add", "Drop")),
        ("SeccompProfile", ("Type", "LocalhostProfile")),
        ("AppArmorProfile", ("Type", "LocalhostProfile")),
    ):
        if found[name] is not None:
            found[name] = go_struct(found[name], fields)
    return go_json({"SELinuxOptions" if name == "SeLinuxOptions" else name: part for name, part in found.items()})


def _choice(value: str | None, choice: tuple[str, ...], path: str, causes: Causes) -> None:
    if value is not None and value not in choice:
        causes.append(unsupported(path, value, choice))


def _sysctls(sysctls: list[JSONObject], spec: JSONObject, path: str, causes: Causes) -> None:
    names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        here, name = f"{path}[{index}].name", sysctl.get("name") or ""
        if not name:
            causes.append(required(here))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            causes.append(invalid(here, name, _SYSCTL_TEXT))
        elif name in names:
            causes.append(duplicate(here, name))
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") and plain.startswith("net."):
            causes.append(invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (
            plain.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or plain == "kernel.sem"
        ):
            causes.append(invalid(here, name, "may not be specified when 'hostIPC' is true"))
        names.add(name)


def _seccomp(profile: JSONObject | None, path: str, causes: Causes) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        causes.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _SECCOMP:
        causes.append(unsupported(f"{path}.type", kind, _SECCOMP))
    if kind == "Localhost":
        if local is None:
            causes.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            local_path(local, f"{path}.localhostProfile", causes)
    elif local is not None:
        shown = go_json({"Type": kind, "LocalhostProfile": local})
        text = "can only be set when seccomp type is Localhost"
        causes.append(invalid_shown(f"{path}.localhostProfile", shown, text))


def _app_armor(profile: JSONObject | None, path: str, causes: Causes) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    here = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or local == "":
            causes.append(required(here, "must be set when AppArmor type is Localhost"))
            return
        if local != local.strip():
            causes.append(invalid(here, local, "must not be padded with whitespace"))
        if len(local.encode()) > 4095:
            causes.append(too_long(here, 4095))
    elif kind in ("RuntimeDefault", "Unconfined"):
        if local is not None:
            causes.append(invalid(here, local, "can only be set when AppArmor type is Localhost"))
    elif not kind:
        causes.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        causes.append(unsupported(f"{path}.type", kind, _SECCOMP))
