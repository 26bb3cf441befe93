"""The pytest plugin that comes with the installation: the fixtures C{kube_api}, C{kube_api_clean} and C{kubeconfig}."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .inprocess import KubeAPI
    from .process import SubprocessServer


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our settings."""
    where = "where kube_api runs: thread (of this process), process, or auto: thread unless pytest-twisted is there"
    parser.addini("kubetwist_server", where, default="auto")
    parser.addini("kubetwist_arguments", "flags of `twist kubeapi` for kube_api", default="")


@pytest.fixture(scope="session")
def kube_api_arguments(pytestconfig: pytest.Config) -> list[str]:
    """The flags that kube_api is started with: those of the setting; override it in a conftest.py for others."""
    return shlex.split(pytestconfig.getini("kubetwist_arguments"))


@pytest.fixture(scope="session")
def kube_api(pytestconfig: pytest.Config, kube_api_arguments: list[str]) -> Iterator[KubeAPI | SubprocessServer]:
    """A Kubernetes API server for the whole session: url, kubeconfig, token, connection, request()."""
    # Only now: whoever installs another reactor than the default one must come first.
    from .inprocess import KubeAPI
    from .process import SubprocessServer

    where = pytestconfig.getini("kubetwist_server")
    if where == "auto":
        where = "process" if pytestconfig.pluginmanager.hasplugin("twisted") else "thread"
    kinds: dict[str, type[KubeAPI] | type[SubprocessServer]] = {"thread": KubeAPI, "process": SubprocessServer}
    if where not in kinds:
        raise pytest.UsageError(f"kubetwist_server is {where!r}, must be auto, thread or process")
    with kinds[where](*kube_api_arguments) as server:
        if isinstance(server, KubeAPI):
            # The first test may need what controllers make, such as service accounts.
            server.settle()
        yield server


@pytest.fixture
def kube_api_clean(kube_api: KubeAPI | SubprocessServer) -> Iterator[KubeAPI]:
    """The same server, as it was when it had started: nothing that other tests have written is left."""
    from .inprocess import KubeAPI

    if not isinstance(kube_api, KubeAPI):
        raise pytest.UsageError("kube_api_clean needs kubetwist_server = thread, and pytest-twisted off")
    kube_api.reset()
    yield kube_api
    # Whatever time a test made it, the next one may not even ask for this server.
    kube_api.clear_faults()
    kube_api.reset_clock()


@pytest.fixture
def kubeconfig(kube_api: KubeAPI | SubprocessServer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the admin's kubeconfig, which C{$KUBECONFIG} names for the time of the test."""
    monkeypatch.setenv("KUBECONFIG", str(kube_api.kubeconfig))
    return kube_api.kubeconfig
