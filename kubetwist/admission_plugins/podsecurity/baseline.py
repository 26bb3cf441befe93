"""Checks of the level C{baseline}, which forbids known ways to escape from a container."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ...api.go.quote import quoted
from ...api.podspecs import containers
from ...api.resource import JSONObject
from .checkresult import (
    CheckResult,
    PodCheck,
    bad_containers,
    in_user_namespace,
    named,
    plural,
    pod_context,
    quoted_list,
    setters,
)

_Annotations = Mapping[str, str]

CAPABILITIES: Final = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
SYSCTLS: Final = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.ping_group_range",
        "net.ipv4.ip_unprivileged_port_start",
    )
)
SYSCTLS_27: Final = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_29: Final = SYSCTLS_27 | {
    f"net.ipv4.tcp_{name}" for name in ("keepalive_time", "fin_timeout", "keepalive_intvl", "keepalive_probes")
}
SYSCTLS_32: Final = SYSCTLS_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}
SYSCTLS_37: Final = SYSCTLS_32 | {"net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat"}
SELINUX_TYPES: Final = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
SELINUX_TYPES_31: Final = SELINUX_TYPES | {"container_engine_t"}

_APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
#: Profiles of AppArmor and seccomp that confine.
CONFINING: Final = frozenset(("RuntimeDefault", "Localhost"))


def apparmor_profile(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that AppArmor profiles confine, in fields and in annotations."""
    kinds: set[str] = set()

    def is_forbidden(context: JSONObject) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type") in CONFINING:
            return False
        kinds.add(profile.get("type") or "")
        return True

    violators = setters(is_forbidden(pod_context(spec)), bad_containers(spec, is_forbidden))
    forbidden_annotations = sorted(
        f"{key}={quoted(value)}"
        for key, value in annotations.items()
        if key.startswith(_APPARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if forbidden_annotations:
        annotations_text = plural("annotation", "annotations", len(forbidden_annotations))
        violators = " and ".join(filter(None, (violators, annotations_text)))
    if not violators:
        return None
    values = [*sorted(kinds), *forbidden_annotations]
    return CheckResult(
        plural("forbidden AppArmor profile", "forbidden AppArmor profiles", len(values)),
        f"{violators} must not set AppArmor profile type to {quoted_list(values)}",
    )


def capabilities(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that no capabilities are added beyond the defaults of container runtimes."""
    added: set[str] = set()

    def is_forbidden(context: JSONObject) -> bool:
        forbidden = set((context.get("capabilities") or {}).get("add") or ()) - CAPABILITIES
        added.update(forbidden)
        return bool(forbidden)

    names = bad_containers(spec, is_forbidden)
    if not names:
        return None
    return CheckResult(
        "non-default capabilities",
        f"{named(names)} must not include {quoted_list(sorted(added))} in securityContext.capabilities.add",
    )


def host_namespaces(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that the pod does not share the node's network, PID or IPC namespace."""
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    return CheckResult("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that the pod mounts no files of the node."""
    names = [one.get("name") or "" for one in spec.get("volumes") or () if one.get("hostPath") is not None]
    if not names:
        return None
    return CheckResult("hostPath volumes", f"{plural('volume', 'volumes', len(names))} {quoted_list(names)}")


def host_ports(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that the pod uses no host ports."""
    names: list[str] = []
    host_ports: set[str] = set()
    for container, _, _ in containers(spec):
        ports = [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]
        if ports:
            names.append(container.get("name") or "")
            host_ports.update(ports)
    if not names:
        return None
    return CheckResult(
        "hostPort",
        f"{named(names)} {plural('uses', 'use', len(names))} {plural('hostPort', 'hostPorts', len(host_ports))} "
        f"{', '.join(sorted(host_ports))}",
    )


def host_probes(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that probes and lifecycle hooks do not set a host."""
    names: set[str] = set()
    hosts: set[str] = set()
    for container, _, _ in containers(spec):
        container_hosts = set(_hosts(container))
        if container_hosts:
            names.add(container.get("name") or "")
            hosts.update(container_hosts)
    if not names:
        return None
    noun = plural("probe or lifecycle host", "probe or lifecycle hosts", len(hosts))
    return CheckResult(
        "probe or lifecycle host",
        f"{named(sorted(names))} {plural('uses', 'use', len(names))} {noun} {quoted_list(sorted(hosts))}",
    )


def _hosts(container: JSONObject) -> Iterator[str]:
    """Yield the hosts of the probes and lifecycle hooks of a container."""
    lifecycle = container.get("lifecycle") or {}
    actions = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    actions += [lifecycle.get(hook) for hook in ("postStart", "preStop")]
    for action in actions:
        for kind in ("httpGet", "tcpSocket"):
            host = ((action or {}).get(kind) or {}).get("host")
            if host:
                yield host


def privileged(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that no container is privileged."""
    names = bad_containers(spec, lambda context: context.get("privileged"))
    return CheckResult("privileged", f"{named(names)} must not set securityContext.privileged=true") if names else None


def proc_mount(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that no container unmasks C{/proc}."""
    kinds: set[str] = set()

    def is_forbidden(context: JSONObject) -> bool:
        kind = context.get("procMount")
        if kind is None or kind == "Default":
            return False
        kinds.add(kind)
        return True

    names = bad_containers(spec, is_forbidden)
    if not names:
        return None
    detail = f"{named(names)} must not set securityContext.procMount to {quoted_list(sorted(kinds))}"
    return CheckResult("procMount", detail)


def proc_mount_35(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check L{proc_mount} except for pods in a user namespace, which may unmask C{/proc}."""
    return None if in_user_namespace(spec) else proc_mount(annotations, spec)


def _selinux_options(types: frozenset[str]) -> PodCheck:
    def selinux_options(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
        """Check that the SELinux type is allowed, and that user and role are not set."""
        kinds: set[str] = set()
        set_fields: set[str] = set()

        def is_forbidden(context: JSONObject) -> bool:
            options = context.get("seLinuxOptions") or {}
            kind = options.get("type") or ""
            fields = {field for field in ("user", "role") if options.get(field)}
            set_fields.update(fields)
            if kind not in types:
                kinds.add(kind)
            return bool(fields) or kind not in types

        violators = setters(is_forbidden(pod_context(spec)), bad_containers(spec, is_forbidden))
        if not violators:
            return None
        details = [f"{plural('type', 'types', len(kinds))} {quoted_list(sorted(kinds))}"] if kinds else []
        details += [f"{field} may not be set" for field in ("user", "role") if field in set_fields]
        return CheckResult(
            "seLinuxOptions", f"{violators} set forbidden securityContext.seLinuxOptions: {'; '.join(details)}"
        )

    return selinux_options


selinux_options = _selinux_options(SELINUX_TYPES)
selinux_options_31 = _selinux_options(SELINUX_TYPES_31)


def seccomp_annotations(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that seccomp profiles confine, in the annotations that preceded the fields."""
    keys = [_SECCOMP_POD, *(f"{_SECCOMP}{container.get('name') or ''}" for container, _, _ in containers(spec))]
    forbidden = {
        f"{key}={quoted(annotations[key])}" for key in keys if key in annotations and _is_unconfined(annotations[key])
    }
    if not forbidden:
        return None
    listed = ", ".join(sorted(forbidden))
    return CheckResult("seccompProfile", f"forbidden {plural('annotation', 'annotations', len(forbidden))} {listed}")


def _is_unconfined(profile: str) -> bool:
    return profile not in ("runtime/default", "docker/default") and not profile.startswith("localhost/")


def bad_seccomp(kinds: set[str]) -> Callable[[JSONObject], bool]:
    """Return a predicate for security contexts with an unconfined profile; it adds the profile's type to C{kinds}."""

    def is_forbidden(context: JSONObject) -> bool:
        profile = context.get("seccompProfile")
        if profile is None or profile.get("type") in CONFINING:
            return False
        kinds.add(profile.get("type") or "")
        return True

    return is_forbidden


def seccomp_profile(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that seccomp profiles confine."""
    kinds: set[str] = set()
    is_forbidden = bad_seccomp(kinds)
    violators = setters(is_forbidden(pod_context(spec)), bad_containers(spec, is_forbidden))
    if not violators:
        return None
    detail = f"{violators} must not set securityContext.seccompProfile.type to {quoted_list(sorted(kinds))}"
    return CheckResult("seccompProfile", detail)


def _sysctls(safe: frozenset[str]) -> PodCheck:
    def sysctls(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
        """Check that sysctls do not affect anything outside of the pod."""
        names = [one.get("name") or "" for one in pod_context(spec).get("sysctls") or ()]
        unsafe = [name for name in names if name not in safe]
        return CheckResult("forbidden sysctls", ", ".join(unsafe)) if unsafe else None

    return sysctls


sysctls = _sysctls(SYSCTLS)
sysctls_27 = _sysctls(SYSCTLS_27)
sysctls_29 = _sysctls(SYSCTLS_29)
sysctls_32 = _sysctls(SYSCTLS_32)
sysctls_37 = _sysctls(SYSCTLS_37)


def windows_host_process(annotations: _Annotations, spec: JSONObject) -> CheckResult | None:
    """Check that neither the pod nor a container is a Windows HostProcess."""

    def is_forbidden(context: JSONObject) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    violators = setters(is_forbidden(pod_context(spec)), bad_containers(spec, is_forbidden))
    return (
        CheckResult("hostProcess", f"{violators} must not set securityContext.windowsOptions.hostProcess=true")
        if violators
        else None
    )
