"""Validation of security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .....api.errors import MAX_LENGTH, duplicate, forbidden, invalid, required, too_long
from .....api.gostructs import go_struct
from .....api.resource import JSONObject
from ....generic.privileges import privileged_allowed
from ....generic.validation.fields import (
    ErrorList,
    check,
    dns_subdomain,
    go_json,
    id_number,
    invalid_shown,
    local_path,
    unsupported,
)
from .options import PodValidationOptions

_SECCOMP: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_SYSCTL: Final = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_SYSCTL_TEXT: Final = (
    "must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
#: Windows user names: an optional NetBIOS or DNS domain, and a name without special characters.
_NET_BIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DOMAIN_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DOMAIN: Final = re.compile(rf"{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*")
_CONTROL: Final = re.compile("[\\x00-\\x1f\\x7f]")
_NOT_IN_USER: Final = frozenset('"/\\:;|=,+*?<>@[]')
_CREDENTIAL_SPEC_KIB: Final = 64


def validate_pod_security_context(
    context: JSONObject, spec: JSONObject, path: str, errors: ErrorList, options: PodValidationOptions
) -> None:
    """
    Validate the security context of a pod.

    @param context: The security context.
    @param spec: The spec of the pod.
    @param path: The field path for errors.
    @param errors: Receives the errors.
    @param options: What the server permits.
    """
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        id_number(context.get(name), f"{path}.{name}", errors)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        id_number(group, f"{path}.supplementalGroups[{index}]", errors)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        text = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{path}.shareProcessNamespace", True, text))
    _sysctls(context.get("sysctls") or [], spec, f"{path}.sysctls", errors)
    _choice(context.get("fsGroupChangePolicy"), ("Always", "OnRootMismatch"), f"{path}.fsGroupChangePolicy", errors)
    _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", errors)
    _windows(context.get("windowsOptions"), f"{path}.windowsOptions", errors)
    _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", errors)
    _choice(context.get("supplementalGroupsPolicy"), ("Merge", "Strict"), f"{path}.supplementalGroupsPolicy", errors)
    if context.get("seLinuxChangePolicy") is not None:
        changes = ("MountOption", "Recursive") if options.allows("SELinuxMount") else ("Recursive",)
        _choice(context["seLinuxChangePolicy"], changes, f"{path}.seLinuxChangePolicy", errors)


def validate_security_context(context: JSONObject, path: str, host_users: bool, errors: ErrorList) -> None:
    """
    Validate the security context of a container.

    @param context: The security context.
    @param path: The field path for errors.
    @param host_users: Whether the pod uses the user namespace of the host.
    @param errors: Receives the errors.
    """
    if context.get("privileged") and not privileged_allowed():
        errors.append(forbidden(f"{path}.privileged", "disallowed by cluster policy"))
    for name in ("runAsUser", "runAsGroup"):
        id_number(context.get(name), f"{path}.{name}", errors)
    mount = context.get("procMount")
    if mount is not None:
        _choice(mount, ("Default", "Unmasked"), f"{path}.procMount", errors)
        if host_users and mount == "Unmasked":
            text = "`hostUsers` must be false to use `Unmasked`"
            errors.append(invalid(f"{path}.procMount", mount, text))
    _seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", errors)
    if context.get("allowPrivilegeEscalation") is False:
        formatted = _format_context(context)
        if context.get("privileged"):
            text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid_shown(path, formatted, text, context, "core.SecurityContext"))
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
                errors.append(invalid_shown(path, formatted, text, context, "core.SecurityContext"))
    _windows(context.get("windowsOptions"), f"{path}.windowsOptions", errors)
    _app_armor(context.get("appArmorProfile"), f"{path}.appArmorProfile", errors)


def _format_context(context: JSONObject) -> str:
    """Return the security context of a container as the reference prints it."""
    return go_json(go_struct(context, "SecurityContext"))


def _choice(value: str | None, choice: tuple[str, ...], path: str, errors: ErrorList) -> None:
    if value is not None and value not in choice:
        errors.append(unsupported(path, value, choice))


def _sysctls(sysctls: list[JSONObject], spec: JSONObject, path: str, errors: ErrorList) -> None:
    names: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        item_path, name = f"{path}[{index}].name", sysctl.get("name") or ""
        if not name:
            errors.append(required(item_path))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.append(invalid(item_path, name, _SYSCTL_TEXT))
        elif name in names:
            errors.append(duplicate(item_path, name))
        plain = name.replace("/", ".")
        if spec.get("hostNetwork") and plain.startswith("net."):
            errors.append(invalid(item_path, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and (
            plain.startswith(("kernel.shm", "kernel.msg", "fs.mqueue.")) or plain == "kernel.sem"
        ):
            errors.append(invalid(item_path, name, "may not be specified when 'hostIPC' is true"))
        names.add(name)


def _seccomp(profile: JSONObject | None, path: str, errors: ErrorList) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    elif kind not in _SECCOMP:
        errors.append(unsupported(f"{path}.type", kind, _SECCOMP))
    if kind == "Localhost":
        if local is None:
            errors.append(required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            local_path(local, f"{path}.localhostProfile", errors)
    elif local is not None:
        formatted = go_json({"Type": kind, "LocalhostProfile": local})
        text = "can only be set when seccomp type is Localhost"
        errors.append(invalid_shown(f"{path}.localhostProfile", formatted, text, profile, "core.SeccompProfile"))


def _app_armor(profile: JSONObject | None, path: str, errors: ErrorList) -> None:
    if profile is None:
        return
    kind, local = profile.get("type") or "", profile.get("localhostProfile")
    item_path = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or local == "":
            errors.append(required(item_path, "must be set when AppArmor type is Localhost"))
            return
        if local != local.strip():
            errors.append(invalid(item_path, local, "must not be padded with whitespace"))
        if len(local.encode()) > 4095:
            errors.append(too_long(item_path, 4095, earlier=MAX_LENGTH))
    elif kind in ("RuntimeDefault", "Unconfined"):
        if local is not None:
            errors.append(invalid(item_path, local, "can only be set when AppArmor type is Localhost"))
    elif not kind:
        errors.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        errors.append(unsupported(f"{path}.type", kind, _SECCOMP))


def _windows(options: JSONObject | None, path: str, errors: ErrorList) -> None:
    if options is None:
        return
    name, spec = options.get("gmsaCredentialSpecName"), options.get("gmsaCredentialSpec")
    if name is not None:
        check(name, f"{path}.gmsaCredentialSpecName", dns_subdomain, errors)
    if spec == "":
        errors.append(invalid(f"{path}.gmsaCredentialSpec", spec, "gmsaCredentialSpec cannot be an empty string"))
    elif spec is not None and len(spec.encode()) > _CREDENTIAL_SPEC_KIB * 1024:
        text = f"gmsaCredentialSpec size must be under {_CREDENTIAL_SPEC_KIB} KiB"
        errors.append(invalid(f"{path}.gmsaCredentialSpec", spec, text))
    user = options.get("runAsUserName")
    if user is not None:
        for text in _validate_windows_user_name(user):
            errors.append(invalid(f"{path}.runAsUserName", user, text))


def _validate_windows_user_name(text: str) -> Iterator[str]:
    """Return the errors of a Windows user name, which may have a domain."""
    if not text:
        yield "runAsUserName cannot be an empty string"
    elif _CONTROL.search(text):
        yield "runAsUserName cannot contain control characters"
    elif text.count("\\") > 1:
        yield "runAsUserName cannot contain more than one backslash"
    else:
        domain, backslash, user = text.rpartition("\\")
        if len(domain.encode()) >= 256:
            yield "runAsUserName's Domain length must be under 256 characters"
        if backslash and not _NET_BIOS.fullmatch(domain) and not _DOMAIN.fullmatch(domain):
            yield "runAsUserName's Domain doesn't match the NetBios nor the DNS format"
        if not user:
            yield "runAsUserName's User cannot be empty"
        elif len(user.encode()) > 104:
            yield "runAsUserName's User length must not be longer than 104 characters"
        if user and not user.strip(". "):
            yield "runAsUserName's User cannot contain only periods or spaces"
        if not _NOT_IN_USER.isdisjoint(user):
            yield "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
