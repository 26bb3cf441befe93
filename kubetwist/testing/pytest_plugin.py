"""The pytest plugin that comes with the installation: the fixture C{kube_api}."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
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
def kube_api(pytestconfig: pytest.Config) -> Iterator[KubeAPI | SubprocessServer]:
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
    with kinds[where](*shlex.split(pytestconfig.getini("kubetwist_arguments"))) as server:
        yield server
