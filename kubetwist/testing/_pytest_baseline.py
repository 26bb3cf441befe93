"""The part of the pytest plugin that loads the baseline of servers, and creates namespaces of tests."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ._connection import Connection
    from .manifests import Manifest
    from .pytest_plugin import Server


class NamespaceRemains(pytest.PytestWarning):
    """A namespace of a test is not deleted at the end of the run, because objects in it have finalizers."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting and the option."""
    parser.addini(
        "kubetwist_load",
        "files, folders and glob patterns of manifests that kube_api loads at its start, relative to this file",
        type="args",
        default=[],
    )
    parser.getgroup("kubetwist").addoption(
        "--kubetwist-load",
        metavar="PATH",
        action="append",
        default=[],
        help="file, folder or glob pattern of further manifests that kube_api loads",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Resolve the paths of the command line, which the workers of pytest-xdist get."""
    folder = config.invocation_params.dir
    config.option.kubetwist_load = [_resolve(folder, path) for path in config.option.kubetwist_load]


def _resolve(folder: Path, path: str) -> str:
    """Return a path or pattern relative to a folder; URLs are unchanged, and rejected later."""
    return path if re.match("[a-z]+://", path) else os.path.join(folder, path)


@contextmanager
def report_load_errors() -> Iterator[None]:
    """Report objects that cannot be loaded by their message only, which names the file."""
    from .manifests import LoadError

    try:
        yield
    except LoadError as error:
        # pytest.fail would report the original exception, too.
        raise pytest.fail.Exception(str(error), pytrace=False) from None


@pytest.fixture(scope="session")
def kube_api_manifests(pytestconfig: pytest.Config) -> list[Manifest]:
    """Return the objects that servers load at their start, read once for all servers."""
    from .manifests import read_sources

    ini = pytestconfig.inipath
    folder = pytestconfig.rootpath if ini is None else ini.parent
    paths = [_resolve(folder, path) for path in pytestconfig.getini("kubetwist_load")]
    manifests: list[Manifest] = []
    with report_load_errors():
        manifests = read_sources([*paths, *pytestconfig.option.kubetwist_load])
    return manifests


@pytest.fixture(scope="session")
def kube_api_baseline() -> Callable[[Any], object] | None:
    """
    Return a function that prepares a server; override it in a F{conftest.py}.

    The function is called once for each server, after everything is loaded. The state afterwards is the baseline that
    C{kube_api_clean} and C{reset()} restore.
    """
    return None


@pytest.fixture(scope="session")
def _namespaces(_kube_api_servers: object) -> Iterator[Callable[[Connection, str], None]]:
    """
    Return a function that requests the deletion of a namespace; report at the end what could not be deleted.

    @param _kube_api_servers: The servers, which stop after this fixture.
    """
    from ._namespaces import delete_namespace, remaining_namespaces

    deleted: dict[Connection, list[str]] = {}

    def delete(connection: Connection, name: str) -> None:
        delete_namespace(connection, name)
        deleted.setdefault(connection, []).append(name)

    yield delete
    for connection, names in deleted.items():
        for message in remaining_namespaces(connection, names):
            warnings.warn(NamespaceRemains(message), stacklevel=1)


@pytest.fixture
def kube_namespace(
    request: pytest.FixtureRequest,
    kube_api: Server,
    kube_api_arguments: list[str],
    _namespaces: Callable[[Connection, str], None],
) -> Iterator[str]:
    """
    Return the name of a new namespace of the test, with the objects that controllers create in each namespace.

    It is deleted after the test, without waiting for the end of the deletion.
    """
    from ._namespaces import NamespaceError, create_namespace, created_paths

    clean = "kube_api_clean" in request.fixturenames
    if clean:
        # The reset would remove the namespace.
        request.getfixturevalue("kube_api_clean")
    connection = kube_api.connection
    try:
        name = create_namespace(connection, request.node.name, request.node.nodeid, created_paths(kube_api_arguments))
    except NamespaceError as error:
        pytest.fail(str(error), pytrace=False)
    yield name
    if clean:
        # Faults of the test end now, so that they do not affect the deletion.
        kube_api.clear_faults()  # type: ignore[union-attr] # kube_api_clean rejects other servers
    _namespaces(connection, name)
