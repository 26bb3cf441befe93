"""Flags that kube-apiserver does not have: the data directory, the release, the web pages."""

from __future__ import annotations

from typing import Final

from ..flagtypes import BOOLEAN, STRING, flag_group

#: Which release is stood in for unless --kubernetes-version says otherwise.
DEFAULT_KUBERNETES_VERSION: Final = "1.36"

FLAGS: Final = flag_group(
    "kubetwist",
    [
        (
            "data-dir",
            STRING,
            "./kubetwist-data",
            "Where certificates, keys, admin.kubeconfig and the embedded store are. Made at the first start.",
        ),
        (
            "in-memory",
            BOOLEAN,
            False,
            "Keep nothing: objects are in memory, and the data directory, unless it is given, is a new temporary one "
            "that is removed at the end.",
        ),
        (
            "kubernetes-version",
            STRING,
            DEFAULT_KUBERNETES_VERSION,
            "The Kubernetes release whose API is served, 1.25 or later.",
        ),
        ("enable-ui", BOOLEAN, True, "Whether there is a web page at /ui that shows what the server holds."),
        (
            "ui-sign-in-link",
            BOOLEAN,
            True,
            "Log, at the start, a link that signs a browser on this machine in to the web page as the admin; it is "
            "valid once, for 15 minutes.",
        ),
        (
            "enable-swagger-ui",
            BOOLEAN,
            True,
            "Whether there is, with the web page, Swagger UI at /swagger-ui: all requests that the server knows, to "
            "read and to try.",
        ),
    ],
)
