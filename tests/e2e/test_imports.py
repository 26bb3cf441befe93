"""Modules that a start does not import, since it does not need them."""

from __future__ import annotations

import subprocess
import sys

#: Modules that are imported when they are needed for the first time.
DEFERRED = (
    "cbor2",
    "grpc",
    "jh2",
    "kubetwist.api._yamldecoding",
    "kubetwist.audit.log",
    "kubetwist.authentication.oidc",
    "kubetwist.cel.compiler",
    "kubetwist.cel.library",
    "kubetwist.cel.parser",
    "kubetwist.client.streaming",
    "kubetwist.controllers.garbagecollection",
    "kubetwist.http.http2",
    "kubetwist.resources.cborencoding",
    "kubetwist.resources.openapi.builder",
    "kubetwist.storage.encryption",
    "kubetwist.storage.etcd",
    "kubetwist.storage.remote",
    "kubetwist.streams.translator",
    "opentelemetry",
    "sqlite3",
    "treq",
    "twisted.web.client",
    "wsproto",
    "yaml",
)

START = """
import sys
from kubetwist.testing import KubeAPI
with KubeAPI("--controllers="):
    print(*sys.modules)
"""


def test_deferred_imports() -> None:
    """A start in a new process imports no module that is needed for some requests or flags only."""
    done = subprocess.run([sys.executable, "-c", START], capture_output=True, text=True, check=True, timeout=60)
    imported = set(done.stdout.split())
    assert "kubetwist.server.apiserver" in imported
    assert imported.isdisjoint(DEFERRED), imported.intersection(DEFERRED)
