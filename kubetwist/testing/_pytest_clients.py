"""Fixtures of the pytest plugin with which client libraries find C{kube_api} by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from ._connection import Connection

_MARKER: Final = "kubernetes_service_account"


def pytest_configure(config: pytest.Config) -> None:
    """Document the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(namespace, name): the service account of kubernetes_incluster, which is created if missing",
    )


@pytest.fixture
def kubeconfig(kube_api: Any) -> Iterator[Path]:
    """
    The path of the admin's kubeconfig, which is the default of clients during the test.

    C{$KUBECONFIG} and F{~/.kube/config} name it, and so do the constants of libraries that have read C{$KUBECONFIG} at
    their import.
    """
    with kube_api.connection.use_kubeconfig() as path:
        yield path


@pytest.fixture
def kubernetes_incluster(request: pytest.FixtureRequest, kube_api: Any) -> Iterator[Connection]:
    """
    The connection of a service account with which clients find the server as in a pod during the test.

    The account is the parameter C{(namespace, name)} of this fixture, or the one of the closest marker, or
    C{default/default}.
    """
    if "kube_api_clean" in request.fixturenames:
        # A later reset would remove the account.
        request.getfixturevalue("kube_api_clean")
    marker = request.node.get_closest_marker(_MARKER)
    account = getattr(request, "param", None) or (marker.args if marker is not None else ("default", "default"))
    if isinstance(account, str) or len(account) != 2:
        raise pytest.UsageError(f"{request.node.nodeid}: the service account is {account!r}, must be (namespace, name)")
    connection: Connection = kube_api.connection.as_service_account(*account, create=True)
    with connection.use_in_cluster():
        yield connection
