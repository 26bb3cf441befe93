"""Checks of the flags: without effect, deprecated, weak."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from ...api.flagvalues import FlagValues
from .findings import Finding, error, note, ok, warning

#: Flags that kube-apiserver deprecates, and what replaces them.
_DEPRECATED: Final = {
    "admission-control": "--enable-admission-plugins",
    "audit-webhook-batch-initial-backoff": "--audit-webhook-initial-backoff",
    "enable-logs-handler": "",
    "kubelet-port": "",
}
#: Flags that name files with secrets.
_SECRET_FILES: Final = (
    "token-auth-file",
    "tls-private-key-file",
    "service-account-signing-key-file",
    "proxy-client-key-file",
    "kubelet-client-key",
    "etcd-keyfile",
    "encryption-provider-config",
    "authentication-token-webhook-config-file",
    "authorization-webhook-config-file",
    "audit-webhook-config-file",
)
#: Flags that name files which must exist.
_FILES: Final = (
    *_SECRET_FILES,
    *("tls-cert-file", "client-ca-file", "requestheader-client-ca-file", "oidc-ca-file", "authentication-config"),
    *("authorization-config", "authorization-policy-file", "audit-policy-file", "admission-control-config-file"),
    *("etcd-cafile", "etcd-certfile", "kubelet-certificate-authority", "kubelet-client-certificate"),
    *("proxy-client-cert-file", "tracing-config-file", "allow-metric-labels-manifest"),
)
_WILDCARDS: Final = ("0.0.0.0", "::")


def judge_limited(changed: Iterable[str], limited: Mapping[str, str]) -> Iterator[Finding]:
    """
    Judge flags that are set and have no effect.

    @param changed: The flags of the command line.
    @param limited: The reasons, by flag, of flags without effect or with a part of it.
    """
    found = sorted(set(changed) & set(limited))
    for name in found:
        yield note("flags/effect", f"--{name} has no effect, or a part of it: {limited[name]}", "omit the flag")
    if not found:
        yield ok("flags/effect", "all flags of the command line have an effect")


def judge_deprecated(changed: Iterable[str]) -> Iterator[Finding]:
    """Judge flags that are set and deprecated."""
    for name in sorted(set(changed) & set(_DEPRECATED)):
        other = _DEPRECATED[name]
        yield note(
            "flags/deprecated", f"--{name} is deprecated in kube-apiserver", f"use {other}" if other else "avoid it"
        )


def _modes(options: FlagValues) -> tuple[str, ...]:
    return tuple(options["authorization-mode"]) or ("Node", "RBAC")


def _public(options: FlagValues) -> bool:
    """Return whether the server listens on more than loopback addresses."""
    address = options["bind-address"]
    return address in _WILDCARDS or not (address.startswith("127.") or address == "::1")


def _permits_tls12(options: FlagValues) -> bool:
    # The cipher suites of TLS 1.3 are not configurable, and none of them is weak.
    return bool(options["tls-min-version"] != "VersionTLS13")


#: Weak settings: identifier, condition, severity of the finding, message, remedy.
_WEAK: Final[tuple[tuple[str, Callable[[FlagValues], Any], Callable[[str, str, str], Finding], str, str], ...]] = (
    (
        "weak/authorization",
        lambda options: "AlwaysAllow" in _modes(options),
        warning,
        "--authorization-mode=AlwaysAllow: every authenticated user may do everything",
        "use --authorization-mode=Node,RBAC",
    ),
    (
        "weak/node-authorization",
        lambda options: (
            not options["authorization-config"] and "RBAC" in _modes(options) and "Node" not in _modes(options)
        ),
        note,
        "--authorization-mode has no Node: kubelets need broad roles",
        "use --authorization-mode=Node,RBAC",
    ),
    (
        "weak/encryption",
        lambda options: (
            not (options["encryption-provider-config"] or options["hardened"])
            and options["storage-backend"] != "memory"
        ),
        note,
        "Secrets are stored without encryption at rest",
        "set --encryption-provider-config (docs: encryption)",
    ),
    (
        "weak/audit",
        lambda options: not (options["audit-policy-file"] or options["hardened"]),
        note,
        "there is no audit log",
        "set --audit-policy-file and --audit-log-path",
    ),
    (
        "weak/audit-destination",
        lambda options: (
            options["audit-policy-file"]
            and not (options["audit-log-path"] or options["audit-webhook-config-file"] or options["hardened"])
        ),
        warning,
        "--audit-policy-file is set, and events are written nowhere",
        "set --audit-log-path or --audit-webhook-config-file",
    ),
    (
        "weak/fsync",
        lambda options: options["unsafe-no-fsync"] and not options["in-memory"],
        warning,
        "--unsafe-no-fsync: a power failure loses acknowledged writes",
        "use it for tests only",
    ),
    (
        "weak/lost-writes",
        lambda options: options["allow-lost-writes"],
        warning,
        "--allow-lost-writes: a damaged store is started although writes are lost",
        "remove the flag after the start that needs it",
    ),
    (
        "weak/static-tokens",
        lambda options: options["token-auth-file"],
        warning,
        "--token-auth-file: its tokens do not expire, and a change needs a restart",
        "use service account tokens, certificates or OpenID Connect",
    ),
    (
        "weak/tls",
        lambda options: (
            _permits_tls12(options)
            and any("_CBC_" in one or one.startswith("TLS_RSA_") for one in options["tls-cipher-suites"])
        ),
        warning,
        "--tls-cipher-suites enables suites with CBC or without forward secrecy",
        "omit the flag, or use suites with ECDHE and GCM or CHACHA20",
    ),
    (
        "weak/tls-version",
        lambda options: _permits_tls12(options) and _public(options),
        note,
        "clients may use TLS 1.2",
        "set --tls-min-version=VersionTLS13 if all clients support it",
    ),
    (
        "weak/kubelet",
        lambda options: not options["kubelet-certificate-authority"] and _public(options) and not options["fake-nodes"],
        note,
        "certificates of kubelets are not verified",
        "set --kubelet-certificate-authority if kubelets join this server",
    ),
    (
        "weak/loopback-proxy",
        lambda options: options["allow-loopback-proxy"] and _public(options),
        warning,
        "--allow-loopback-proxy: users who may proxy reach services on the loopback addresses of this machine",
        "omit the flag unless a kubelet runs on this machine",
    ),
    (
        "weak/webhook-networks",
        lambda options: not options["webhook-url-denied-cidrs"],
        warning,
        "--webhook-url-denied-cidrs is empty: webhooks may call the metadata service of the cloud",
        "omit the flag",
    ),
    (
        "weak/profiling",
        lambda options: options["profiling"] and "AlwaysAllow" in _modes(options),
        warning,
        "--profiling with --authorization-mode=AlwaysAllow: every authenticated user may profile the server",
        "set --profiling=false",
    ),
    (
        "weak/tokens",
        lambda options: not options["service-account-lookup"],
        warning,
        "--service-account-lookup=false: tokens of deleted service accounts remain valid",
        "omit the flag",
    ),
    (
        "weak/request-headers",
        lambda options: options["requestheader-client-ca-file"] and not options["requestheader-allowed-names"],
        note,
        "--requestheader-client-ca-file without --requestheader-allowed-names: each certificate of the authority may"
        " act as any user",
        "set --requestheader-allowed-names, or use an authority for proxies only",
    ),
)


def judge_settings(options: FlagValues) -> Iterator[Finding]:
    """Judge settings that are weak."""
    found = [make(name, message, remedy) for name, weak, make, message, remedy in _WEAK if weak(options)]
    yield from found
    if not any(one.id.startswith("weak/") and one.severity > 1 for one in found):
        yield ok("weak", "no setting is insecure")


def check_files(options: FlagValues) -> Iterator[Finding]:
    """Check that files of flags exist, and that other users cannot read those with secrets."""
    problems = False
    for name in _FILES:
        path = options[name]
        if not path:
            continue
        try:
            with Path(path).open("rb"):
                mode = stat.S_IMODE(Path(path).stat().st_mode)
        except OSError as failure:
            problems = True
            yield error("flags/files", f"--{name}: {path} cannot be read: {failure.strerror}", "correct the path")
            continue
        if name in _SECRET_FILES and mode & 0o007:
            problems = True
            yield warning(
                "flags/secrets",
                f"--{name}: all users of this machine may read {path} (mode {mode:04o})",
                f"chmod 0600 {path}",
            )
    if not problems:
        yield ok("flags/files", "the files of flags can be read, and their secrets only by their owner")
