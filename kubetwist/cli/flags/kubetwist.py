"""Flags that kube-apiserver does not have: data directory, Kubernetes version, web UI."""

from __future__ import annotations

import os
from typing import Final

from ..flagtypes import BOOLEAN, NATURAL, PAIR, STRING, FlagType, flag_group

#: Default of --kubernetes-version.
DEFAULT_KUBERNETES_VERSION: Final = "1.36"

#: Maximum of --workers.
_MAX_WORKERS: Final = 64


def parse_workers(text: str) -> int:
    """
    Parse the value of C{--workers}.

    @raise ValueError: It is neither C{auto} nor a number up to 64.
    """
    if text == "auto":
        return min(max(len(os.sched_getaffinity(0)) - 1, 1), _MAX_WORKERS)
    try:
        count: int = NATURAL.parse(text)
    except ValueError:
        count = -1
    if not 0 <= count <= _MAX_WORKERS:
        raise ValueError(f"it must be auto, or a number between 0 and {_MAX_WORKERS}")
    return count


FLAGS: Final = flag_group(
    "kubetwist",
    [
        (
            "data-dir",
            STRING,
            "./kubetwist-data",
            "Directory of certificates, keys, admin.kubeconfig and the embedded store. Created at the first start.",
        ),
        (
            "in-memory",
            BOOLEAN,
            False,
            "Persist nothing: objects are kept in memory. Without --data-dir, the data directory is a temporary one"
            " that is removed at exit.",
        ),
        (
            "kubernetes-version",
            STRING,
            DEFAULT_KUBERNETES_VERSION,
            "The Kubernetes release whose API is served, 1.25 or later.",
        ),
        (
            "workers",
            FlagType(parse_workers, "count"),
            0,
            "Number of processes that serve requests, beside a process with the storage and the controllers. 0 for one"
            " process that does everything; auto for one per CPU but one.",
        ),
        (
            "hardened",
            BOOLEAN,
            False,
            "Secure settings: TLS 1.3, anonymous requests for health checks only, an audit log and a key for Secrets in"
            " the data directory, the baseline policy for pods, no external IPs, NodeRestriction and"
            " OwnerReferencesPermissionEnforcement, no profiling. Flags that weaken these are refused.",
        ),
        ("enable-ui", BOOLEAN, True, "Serve a web UI at /ui."),
        (
            "ui-sign-in-link",
            BOOLEAN,
            True,
            "Log a sign-in link for the web UI at startup. It signs a browser on this machine in as the admin, once,"
            " within 15 minutes.",
        ),
        (
            "enable-swagger-ui",
            BOOLEAN,
            True,
            "Serve Swagger UI at /swagger-ui, if --enable-ui is set.",
        ),
        (
            "plugin-config-file",
            PAIR,
            {},
            "Configuration file of an authenticator or authorizer that is a plugin, as NAME=PATH with the plugin's"
            " name; repeat it for several plugins. The file is reloaded when it changes.",
        ),
    ],
)
