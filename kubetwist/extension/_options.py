"""Command line of an extension server: applicable flags of C{twist kubeapi}, and additional ones."""

from __future__ import annotations

from typing import Final

from ..cli.flagtable import FLAGS
from ..cli.flagtypes import (
    BOOLEAN,
    DURATION,
    NATURAL,
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
        *("disable-http2-serving", "goaway-chance"),
        *("disabled-metrics", "allow-metric-labels", "allow-metric-labels-manifest"),
    )
)
_SECTION: Final = "Kubernetes API server"
_EXTENSION_FLAGS: Final = (
    Flag("secure-port", PORT, 443, "The port to listen on; 0 selects a free port.", "Secure serving"),
    Flag(
        "service",
        STRING,
        "",
        "The service of this server, as namespace/name. The serving certificate contains its DNS names.",
        "Secure serving",
    ),
    Flag(
        "http2-max-streams-per-connection",
        NATURAL,
        1000,
        "Maximum number of requests of an HTTP/2 connection at a time, of which a proxy may have many. 0: 100.",
        "Secure serving",
    ),
    Flag(
        "kubeconfig",
        STRING,
        "",
        "Kubeconfig of the Kubernetes API server. Default: the service account of the pod.",
        _SECTION,
    ),
    Flag(
        "authentication-tolerate-lookup-failure",
        BOOLEAN,
        False,
        "Start even if the config map extension-apiserver-authentication cannot be read. Until it can, only bearer"
        " tokens authenticate users.",
        _SECTION,
    ),
    Flag(
        "authentication-token-webhook-cache-ttl",
        DURATION,
        10.0,
        "How long to cache token reviews of the Kubernetes API server.",
        _SECTION,
    ),
    Flag(
        "authorization-webhook-cache-authorized-ttl",
        DURATION,
        10.0,
        "How long to cache allowed authorization decisions of the Kubernetes API server.",
        _SECTION,
    ),
    Flag(
        "authorization-webhook-cache-unauthorized-ttl",
        DURATION,
        10.0,
        "How long to cache denied authorization decisions of the Kubernetes API server.",
        _SECTION,
    ),
)


class ExtensionOptions(Options):
    """Options of an extension server. A subclass sets C{command}, its name for C{twist}."""

    description = "An extension API server. The Kubernetes API server authenticates and authorizes its requests."
    command = "extension"
    flags = (
        *(flag for flag in FLAGS if flag.name in _INHERITED_FLAGS or flag.name.startswith("audit-")),
        *_EXTENSION_FLAGS,
    )

    def check(self) -> None:
        """Check combinations of flags."""
        super().check()
        if self["service"] and len([part for part in self["service"].split("/") if part]) != 2:
            raise FlagError(f"--service must be namespace/name, not {self['service']}")

    @property
    def serving_names(self) -> tuple[str, ...]:
        """The names in the serving certificate besides the names of this host."""
        if not self["service"]:
            return ()
        namespace, name = self["service"].split("/")
        return f"{name}.{namespace}.svc", f"{name}.{namespace}", f"{name}.{namespace}.svc.cluster.local"
