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
    parser.addini("kubetwist_server", "where kube_api runs: thread (of this process) or process", default="thread")
    parser.addini("kubetwist_arguments", "flags of `twist kubeapi` for kube_api", default="")


@pytest.fixture(scope="session")
def kube_api(pytestconfig: pytest.Config) -> Iterator[KubeAPI | SubprocessServer]:
    """A Kubernetes API server for the whole session: url, kubeconfig, token, connection, request()."""
    # Only now: whoever installs another reactor than the default one must come first.
    from .inprocess import KubeAPI
    from .process import SubprocessServer

    kinds: dict[str, type[KubeAPI] | type[SubprocessServer]] = {"thread": KubeAPI, "process": SubprocessServer}
    kind = kinds.get(pytestconfig.getini("kubetwist_server"))
    if kind is None:
        raise pytest.UsageError("kubetwist_server must be thread or process")
    with kind(*shlex.split(pytestconfig.getini("kubetwist_arguments"))) as server:
        yield server
