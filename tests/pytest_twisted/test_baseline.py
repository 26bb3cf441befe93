"""Tests of C{kube_api_baseline} with C{kube_api_twisted}."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import pytest_twisted

from kubetwist.testing import InProcessServer

BOTTOM = "/api/v1/namespaces/prepared/configmaps/bottom"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prepared"}}
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bottom", "namespace": "prepared"}}


@pytest.fixture(scope="session")
def kube_api_baseline() -> Callable[[Any], None]:
    """Prepare servers by blocking methods."""

    def prepare(server: Any) -> None:
        # Not threadable.isInIOThread(): the identifier of a reactor's thread that has ended can be used again.
        assert threading.current_thread() is not threading.main_thread()
        server.load([NAMESPACE, CONFIG_MAP])
        server.wait_for("serviceaccounts/default", namespace="prepared")
        assert server.request("GET", BOTTOM)[0] == 200
        server.freeze_time()
        server.resume_time()

    return prepare


@pytest_twisted.ensureDeferred
async def test_prepared(kube_api_twisted: InProcessServer) -> None:
    """The server of a test is prepared, and a reset returns to this state."""
    client = kube_api_twisted.connection.treq()
    assert (await client.get(BOTTOM)).code == 200
    assert (await client.delete(BOTTOM)).code == 200
    assert (await client.get(BOTTOM)).code == 404
    await kube_api_twisted.reset()
    assert (await client.get(BOTTOM)).code == 200
