"""The command line of an extension server: the applicable flags of C{twist kubeapi}, and additional ones."""

from __future__ import annotations

from typing import Final

from ..cli.flagtable import FLAGS
from ..cli.flagtypes import (
    BOOLEAN,
    DURATION,
    PORT,
    STRING,
    Flag,
    FlagError,
)
from ..cli.kubeapi import Options

_INHERITED_FLAGS: Final = frozenset(
    (
        *("data-dir", "in-memory", "kubernetes-version", "bind-address", "external-hostname", "tls-min-version"),
        *("tls-cert-file", "tls-private-key-file", "request-timeout", "shutdown-delay-duration", "logging-format", "v"),
        *("vmodule", "profiling", "tracing-config-file"),
        *("min-request-timeout", "storage-backend", "watch-cache", "watch-cache-sizes", "default-watch-cache-size"),
        *("delete-collection-workers", "webhook-url-denied-cidrs", "max-connections-per-address"),
        *("tls-cipher-suites", "tls-sni-cert-key", "strict-transport-security-directives", "livez-grace-period"),
        *("shutdown-send-retry-after", "shutdown-watch-termination-grace-period", "show-hidden-metrics-for-version"),
        *("disabled-metrics", "allow-metric-labels", "allow-metric-labels-manifest"),
    )
)
_SECTION: Final = "Kubernetes API server"
_EXTENSION_FLAGS: Final = (
    Flag("secure-port", PORT, 443, "The port to listen on; 0 takes a free one.", "Secure serving"),
    Flag(
        "service",
        STRING,
        "",
        "The service by which this server is reached, as namespace/name: the serving certificate is for its names.",
        "Secure serving",
    ),
    Flag(
        "kubeconfig",
        STRING,
        "",
        "Where the Kubernetes API server is, and as whom to speak to it; without it, that of the pod this runs in.",
        _SECTION,
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        BOOLEAN,
        False,
        "Whether to start without knowing how the Kubernetes API server knows users. Tokens are all that counts until"
        " that is known.",
        _SECTION,
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        10.0,
        "For how long it is remembered what the Kubernetes API server says of a token.",
        _SECTION,
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        10.0,
        "For how long it is remembered what it allows.",
        _SECTION,
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        10.0,
        "For how long it is remembered what it does not allow.",
        _SECTION,
    ),
)


class ExtensionOptions(Options):
    """The options of an extension server; a subclass sets its name for C{twist} in C{command}."""

    about = "An API server behind a Kubernetes API server, which decides who is who and who may do what."
    command = "extension"
    flags = (
        *(flag for flag in FLAGS if flag.name in _INHERITED_FLAGS or flag.name.startswith("audit-")),
        *_EXTENSION_FLAGS,
    )

    def check(self) -> None:
        """Check the flags that depend on each other."""
        super().check()
        if self["service"] and len([part for part in self["service"].split("/") if part]) != 2:
            raise FlagError(f"--service must be namespace/name, not {self['service']}")

    @property
    def serving_names(self) -> tuple[str, ...]:
        """Return the names in the serving certificate besides those of this host."""
        if not self["service"]:
            return ()
        namespace, name = self["service"].split("/")
        return f"{name}.{namespace}.svc", f"{name}.{namespace}", f"{name}.{namespace}.svc.cluster.local"
