"""
The profile C{--hardened}: the settings that it implies, and the control-plane checks of the CIS Kubernetes benchmark.

The functions are pure. F{hardenedfiles.py} writes the files of the profile into the data directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from attrs import frozen

from ..api.flagvalues import FlagValues

#: Plugins that the profile enables in addition to the default ones.
PLUGINS: Final = ("DenyServiceExternalIPs", "NodeRestriction", "OwnerReferencesPermissionEnforcement")
#: Default plugins that the profile requires.
REQUIRED_PLUGINS: Final = ("NamespaceLifecycle", "PodSecurity", "ServiceAccount")
#: Values of other flags that the profile implies; an explicit other value is refused.
VALUES: Final = {"tls-min-version": "VersionTLS13", "profiling": False, "debug-socket-path": ""}
#: Providers whose ciphers the benchmark accepts.
STRONG_PROVIDERS: Final = ("aesgcm", "aescbc", "kms", "secretbox")

PASS: Final = "pass"
FAIL: Final = "fail"
#: The check depends on the cluster or on a file that is not read.
MANUAL: Final = "manual"


class ProfileError(ValueError):
    """A flag weakens the profile; the text is one line."""


def apply_profile(options: FlagValues) -> dict[str, object]:
    """
    Return the values of flags that C{--hardened} replaces.

    @param options: The flags; C{changed} has the names of those that were given.
    @return: New values by flag; empty without C{--hardened}.
    @raise ProfileError: A flag that was given weakens the profile.
    """
    if not options["hardened"]:
        return {}
    new: dict[str, object] = {}
    for name, value in VALUES.items():
        if name in options.changed and options[name] != value:
            raise ProfileError(f"--hardened and --{name}={_text(options[name])} are mutually exclusive")
        new[name] = value
    disabled = sorted({*PLUGINS, *REQUIRED_PLUGINS}.intersection(options["disable-admission-plugins"]))
    if disabled:
        raise ProfileError(f"--hardened and --disable-admission-plugins={','.join(disabled)} are mutually exclusive")
    if "AlwaysAllow" in options["authorization-mode"]:
        raise ProfileError("--hardened and --authorization-mode=AlwaysAllow are mutually exclusive")
    if options["storage-backend"] not in ("memory", "sqlite") and not options["encryption-provider-config"]:
        raise ProfileError(
            f"--hardened with --storage-backend={options['storage-backend']} needs --encryption-provider-config:"
            " all servers of a shared storage need the same keys"
        )
    new["enable-admission-plugins"] = tuple(dict.fromkeys((*options["enable-admission-plugins"], *PLUGINS)))
    return new


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def secrets_provider(text: str) -> str:
    """
    Return the provider that encrypts Secrets.

    @param text: An C{EncryptionConfiguration}, as YAML.
    @return: The name; C{""} if no rule applies to Secrets, or the text is no such configuration.
    """
    # Imported lazily: few servers have this file, and the import is slow.
    import yaml

    try:
        document = yaml.safe_load(text)
        for rule in document["resources"]:
            if {"secrets", "*.", "*.*"}.intersection(rule["resources"]):
                return str(next(iter(rule["providers"][0])))
    except (yaml.YAMLError, KeyError, IndexError, TypeError, StopIteration):
        pass
    return ""


@frozen
class Item:
    """
    The result of a check.

    @ivar id: The number in the CIS Kubernetes benchmark; C{K...} for checks that the benchmark does not have.
    @ivar title: What is checked.
    @ivar state: L{PASS}, L{FAIL} or L{MANUAL}.
    @ivar remedy: What to do if it does not pass; C{""} if it passes.
    """

    id: str
    title: str
    state: str
    remedy: str


class _Server:
    """The settings of a server that are derived from several flags."""

    def __init__(self, options: FlagValues, provider: str) -> None:
        self.options = options
        self.hardened = bool(options["hardened"])
        self.provider = provider
        # The default of --authorization-mode is Node,RBAC.
        self.modes = options["authorization-mode"] or ("Node", "RBAC")
        self.etcd = options["storage-backend"] == "etcd3"
        self.tls_to_etcd = self.etcd and all(url.startswith("https:") for url in options["etcd-servers"])

    def enabled(self, plugin: str, default: bool = False) -> bool:
        """Return whether an admission plugin is enabled."""
        if plugin in self.options["disable-admission-plugins"]:
            return False
        return default or plugin in self.options["enable-admission-plugins"]

    def at_least(self, flag: str, minimum: int) -> bool:
        """Return whether a limit of the audit log is high enough; 0 is no limit."""
        limit: int = self.options[flag]
        return not 0 < limit < minimum

    @property
    def audited(self) -> bool:
        """Whether events are written to a log or a webhook by a policy."""
        options = self.options
        written = options["audit-log-path"] or options["audit-webhook-config-file"]
        return self.hardened or bool(written and options["audit-policy-file"])


#: A result: whether the check passes; L{None} if that must be decided by hand.
_Test = Callable[[_Server], bool | None]


def _mode(name: str) -> _Test:
    return lambda server: None if server.options["authorization-config"] else name in server.modes


def _anonymous(server: _Server) -> bool | None:
    if server.hardened or not server.options["anonymous-auth"]:
        return True
    return None if server.options["authentication-config"] else False


def _encrypted(server: _Server) -> bool:
    implied = server.hardened and not server.options["encryption-provider-config"]
    # Nothing is at rest in memory.
    return implied or bool(server.provider) or server.options["storage-backend"] == "memory"


def _strong(server: _Server) -> bool:
    explicit = server.options["encryption-provider-config"]
    return _encrypted(server) and (not explicit or server.provider in STRONG_PROVIDERS)


_AUDIT = "set --audit-policy-file and --audit-log-path, or --hardened"
_HARDENED = "set --hardened"
#: Number, title, check, remedy.
CHECKS: Final[tuple[tuple[str, str, _Test, str], ...]] = (
    ("1.2.1", "anonymous requests are refused, or limited to health checks", _anonymous, _HARDENED),
    (
        "1.2.2",
        "no static tokens",
        lambda s: not s.options["token-auth-file"],
        "remove --token-auth-file; use client certificates, service accounts or OpenID Connect",
    ),
    ("1.2.3", "external IPs of Services are denied", lambda s: s.enabled("DenyServiceExternalIPs"), _HARDENED),
    ("1.2.4", "a client certificate for kubelets", lambda s: True, ""),
    (
        "1.2.5",
        "certificates of kubelets are verified",
        lambda s: bool(s.options["kubelet-certificate-authority"]),
        "set --kubelet-certificate-authority, if there are kubelets",
    ),
    (
        "1.2.6",
        "authorization does not allow everything",
        lambda s: None if s.options["authorization-config"] else "AlwaysAllow" not in s.modes,
        "remove AlwaysAllow from --authorization-mode",
    ),
    ("1.2.7", "the authorizer Node is enabled", _mode("Node"), "add Node to --authorization-mode"),
    ("1.2.8", "the authorizer RBAC is enabled", _mode("RBAC"), "add RBAC to --authorization-mode"),
    (
        "1.2.9",
        "the rate of events is limited",
        lambda s: s.enabled("EventRateLimit") or None,
        "enable EventRateLimit, with limits for the cluster",
    ),
    ("1.2.10", "AlwaysAdmit is not enabled", lambda s: not s.enabled("AlwaysAdmit"), "remove AlwaysAdmit"),
    (
        "1.2.11",
        "images are always pulled",
        lambda s: s.enabled("AlwaysPullImages") or None,
        "enable AlwaysPullImages, if nodes are shared by several tenants",
    ),
    ("1.2.12", "ServiceAccount is enabled", lambda s: s.enabled("ServiceAccount", True), "do not disable it"),
    ("1.2.13", "NamespaceLifecycle is enabled", lambda s: s.enabled("NamespaceLifecycle", True), "do not disable it"),
    ("1.2.14", "NodeRestriction is enabled", lambda s: s.enabled("NodeRestriction"), _HARDENED),
    ("1.2.15", "profiling is off", lambda s: not s.options["profiling"], "set --profiling=false or --hardened"),
    ("1.2.16", "an audit log is written", lambda s: s.audited, _AUDIT),
    (
        "1.2.17",
        "audit logs are kept for 30 days",
        lambda s: s.audited and s.at_least("audit-log-maxage", 30),
        f"{_AUDIT}, with --audit-log-maxage=30",
    ),
    (
        "1.2.18",
        "ten audit logs are kept",
        lambda s: s.audited and s.at_least("audit-log-maxbackup", 10),
        f"{_AUDIT}, with --audit-log-maxbackup=10",
    ),
    (
        "1.2.19",
        "audit logs have 100 MB or more",
        lambda s: s.audited and s.at_least("audit-log-maxsize", 100),
        f"{_AUDIT}, with --audit-log-maxsize=100",
    ),
    (
        "1.2.20",
        "requests have a timeout",
        lambda s: 0 < s.options["request-timeout"] <= 300,
        "set --request-timeout to at most 5m",
    ),
    (
        "1.2.21",
        "tokens of deleted service accounts are refused",
        lambda s: bool(s.options["service-account-lookup"]),
        "do not set --service-account-lookup=false",
    ),
    ("1.2.22", "a separate key for service account tokens", lambda s: True, ""),
    (
        "1.2.23",
        "a client certificate for etcd",
        lambda s: not s.etcd or bool(s.options["etcd-certfile"] and s.options["etcd-keyfile"]),
        "set --etcd-certfile and --etcd-keyfile",
    ),
    ("1.2.24", "the API is served with TLS", lambda s: True, ""),
    ("1.2.25", "an authority for client certificates", lambda s: True, ""),
    (
        "1.2.26",
        "certificates of etcd are verified",
        lambda s: not s.etcd or (s.tls_to_etcd and bool(s.options["etcd-cafile"])),
        "set --etcd-cafile, and https:// URLs in --etcd-servers",
    ),
    ("1.2.27", "Secrets are encrypted at rest", _encrypted, "set --encryption-provider-config or --hardened"),
    (
        "1.2.28",
        "the cipher for Secrets is a strong one",
        _strong,
        f"have one of {', '.join(STRONG_PROVIDERS)} first in --encryption-provider-config",
    ),
    ("1.2.29", "only strong cipher suites are served", lambda s: True, ""),
    (
        "1.2.30",
        "tokens for pods are not extended to a year",
        lambda s: not s.options["service-account-extend-token-expiration"],
        "set --service-account-extend-token-expiration=false, if all clients reload their tokens",
    ),
    (
        "K.1",
        "TLS 1.3 is required",
        lambda s: s.options["tls-min-version"] == "VersionTLS13",
        "set --tls-min-version=VersionTLS13 or --hardened",
    ),
    (
        "K.2",
        "owner references need the permission to delete",
        lambda s: s.enabled("OwnerReferencesPermissionEnforcement"),
        _HARDENED,
    ),
    (
        "K.3",
        "pods of all namespaces have to meet the baseline policy",
        lambda s: s.hardened or (None if s.options["admission-control-config-file"] else False),
        "set --hardened, or defaults of PodSecurity in --admission-control-config-file",
    ),
)


def check(options: FlagValues, provider: str = "") -> Iterator[Item]:
    """
    Check the flags of a server.

    @param options: The flags, with the values that C{--hardened} implies.
    @param provider: The provider of C{--encryption-provider-config} for Secrets, see L{secrets_provider}.
    @return: The items of the benchmark in their order.
    """
    server = _Server(options, provider)
    for number, title, test, remedy in CHECKS:
        passes = test(server)
        state = MANUAL if passes is None else PASS if passes else FAIL
        yield Item(number, title, state, "" if state == PASS else remedy)
