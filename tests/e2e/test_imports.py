"""Modules that a start does not import, since it does not need them."""

from __future__ import annotations

import subprocess
import sys

#: Modules that are imported when they are needed for the first time.
DEFERRED = (
    "cbor2",
    "grpc",
    "jh2",
    "jwt",
    "kubetwist.admission.expressions",
    "kubetwist.admission_plugins.limitranger",
    "kubetwist.admission_plugins.serviceaccount",
    "kubetwist.api._yamldecoding",
    "kubetwist.audit.log",
    "kubetwist.authentication.oidc",
    "kubetwist.authentication.oidcclient",
    "kubetwist.cel.admission",
    "kubetwist.cel.compiler",
    "kubetwist.cel.library",
    "kubetwist.cel.parser",
    "kubetwist.client.streaming",
    "kubetwist.controllers.garbagecollection",
    "kubetwist.http.http2",
    "kubetwist.registry.apps.strategy",
    "kubetwist.registry.core.pod.strategy",
    "kubetwist.registry.core.pod.validation",
    "kubetwist.registry.resource.strategy",
    "kubetwist.resources.cborencoding",
    "kubetwist.resources.openapi.builder",
    "kubetwist.resources.openapi.operations",
    "kubetwist.schema.validation",
    "kubetwist.server.debugsocket",
    "kubetwist.storage.encryption.reloading",
    "kubetwist.storage.etcd",
    "kubetwist.storage.remote",
    "kubetwist.streams.channels",
    "kubetwist.streams.translator",
    "kubetwist.ui.assets",
    "kubetwist.ui.oidc",
    "opentelemetry",
    "sqlite3",
    "treq",
    "twisted.web.client",
    "wsproto",
    "yaml",
)

#: Maximum number of modules of kubetwist that a start imports. Imports are most of the time of a start.
MAX_MODULES = 645

START = """
import sys
from kubetwist.testing import KubeAPI
with KubeAPI("--controllers="):
    print(*sys.modules)
"""


def imported_by_start() -> set[str]:
    """Return the names of the modules that a start in a new process imports; without controllers, which start later."""
    command = [sys.executable, "-c", START]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    imported = set(done.stdout.split())
    assert "kubetwist.server.apiserver" in imported
    return imported


def test_deferred_imports() -> None:
    """A start in a new process imports no module that is needed for some requests or flags only."""
    imported = imported_by_start()
    assert imported.isdisjoint(DEFERRED), imported.intersection(DEFERRED)


def test_number_of_modules() -> None:
    """A start imports a limited number of modules."""
    count = sum(name.partition(".")[0] == "kubetwist" for name in imported_by_start())
    assert count <= MAX_MODULES, count
