"""The pytest plugin that comes with the installation: the fixtures C{kube_api}, C{kube_api_clean} and C{kubeconfig}."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .child import ChildKubeAPI
    from .inprocess import KubeAPI
    from .process import SubprocessServer

    Server = KubeAPI | ChildKubeAPI | SubprocessServer


def pytest_addoption(parser: pytest.Parser) -> None:
    """Our settings."""
    where = (
        "where kube_api runs: thread (of this process), child (a process that does what it is told), process (as in "
        "production), or auto: thread, but child where pytest-twisted is"
    )
    parser.addini("kubetwist_server", where, default="auto")
    parser.addini("kubetwist_arguments", "flags of `twist kubeapi` for kube_api", default="")


@pytest.fixture(scope="session")
def kube_api_arguments(pytestconfig: pytest.Config) -> list[str]:
    """The flags that kube_api is started with: those of the setting; override it in a conftest.py for others."""
    return shlex.split(pytestconfig.getini("kubetwist_arguments"))


@pytest.fixture(scope="session")
def kube_api(pytestconfig: pytest.Config, kube_api_arguments: list[str]) -> Iterator[Server]:
    """A Kubernetes API server for the whole session: url, kubeconfig, token, connection, request()."""
    # Only now: whoever installs another reactor than the default one must come first.
    from .child import ChildKubeAPI
    from .inprocess import KubeAPI
    from .process import SubprocessServer

    where = pytestconfig.getini("kubetwist_server")
    if where == "auto":
        where = "child" if pytestconfig.pluginmanager.hasplugin("twisted") else "thread"
    kinds: dict[str, Callable[..., Server]] = {"thread": KubeAPI, "child": ChildKubeAPI, "process": SubprocessServer}
    if where not in kinds:
        raise pytest.UsageError(f"kubetwist_server is {where!r}, must be auto, thread, child or process")
    with kinds[where](*kube_api_arguments) as server:
        if not isinstance(server, SubprocessServer):
            # The first test may need what controllers make, such as service accounts.
            server.settle()
        yield server


@pytest.fixture
def kube_api_clean(kube_api: Server) -> Iterator[KubeAPI | ChildKubeAPI]:
    """The same server, as it was when it had started: nothing that other tests have written is left."""
    from .process import SubprocessServer

    if isinstance(kube_api, SubprocessServer):
        raise pytest.UsageError("kube_api_clean needs kubetwist_server = thread or child")
    kube_api.reset()
    yield kube_api
    # Whatever time a test made it, the next one may not even ask for this server.
    kube_api.clear_faults()
    kube_api.reset_clock()


@pytest.fixture
def kubeconfig(kube_api: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the admin's kubeconfig, which C{$KUBECONFIG} names for the time of the test."""
    monkeypatch.setenv("KUBECONFIG", str(kube_api.kubeconfig))
    return kube_api.kubeconfig
