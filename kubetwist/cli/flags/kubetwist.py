"""Flags that kube-apiserver does not have: data directory, Kubernetes version, web UI."""

from __future__ import annotations

from typing import Final

from ..flagtypes import BOOLEAN, PAIR, STRING, flag_group

#: Default of --kubernetes-version.
DEFAULT_KUBERNETES_VERSION: Final = "1.36"

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
