"""Fixtures: a server and a kubelet in separate processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from tests.fakekubelet import KubeletProcess

MERGE = "application/merge-patch+json"
#: Seconds that something may take that is done in a moment.
PATIENCE = 30.0
#: Both ways to speak with a server: WebSocket, and SPDY.
BOTH = pytest.mark.parametrize("websockets", ["true", "false"])


@pytest.fixture(scope="package")
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeletProcess]:
    """A kubelet for all tests, started after the server."""
    kubelet = KubeletProcess(tmp_path_factory.mktemp("kubelet"))
    yield kubelet
    kubelet.kill()


@pytest.fixture(scope="package")
def server(kubelet: KubeletProcess) -> Iterator[SubprocessServer]:
    """A server that may connect to this machine, and trusts only the authority of the kubelet's certificate."""
    with SubprocessServer(
        "--authorization-mode=AlwaysAllow",
        "--allow-loopback-proxy",
        f"--kubelet-certificate-authority={kubelet.folder / 'ca.crt'}",
        "--controllers=",
    ) as server:
        kubelet.start(clients(server))
        make_node(server, "node", kubelet)
        yield server
        assert "Traceback" not in server.output(), server.output()


def clients(server: SubprocessServer) -> bytes:
    """The authority of the server's client certificate for kubelets."""
    return (server.kubeconfig.parent / "pki" / "ca.crt").read_bytes()


def make_node(server: SubprocessServer, name: str, kubelet: KubeletProcess, *features: str) -> None:
    """Create a node with this kubelet."""
    code, _ = server.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    assert code in (201, 409)
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        "declaredFeatures": list(features),
    }
    code, created = server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=MERGE)
    assert code == 200, created


def make_pod(server: SubprocessServer, namespace: str, node: str = "node", address: str = "127.0.0.1") -> None:
    """Create a pod named pod on a node."""
    containers = [{"name": "main", "image": "none"}]
    obj = {"metadata": {"name": "pod"}, "spec": {"nodeName": node, "containers": containers}}
    code, created = server.request("POST", f"/api/v1/namespaces/{namespace}/pods", obj)
    assert code == 201, created
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    path = f"/api/v1/namespaces/{namespace}/pods/pod/status"
    code, created = server.request("PATCH", path, {"status": status}, content_type=MERGE)
    assert code == 200, created


@pytest.fixture
def pod(server: SubprocessServer, namespace: str) -> str:
    """The name of a running pod."""
    make_pod(server, namespace)
    return "pod"


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen")


def connections(server: SubprocessServer, port: int) -> int:
    """Return the number of connections of the server to a port of this machine."""
    sockets = set()
    for entry in Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except FileNotFoundError:
            continue
    inodes = {one.removeprefix("socket:[").removesuffix("]") for one in sockets if one.startswith("socket:")}
    lines = [line.split() for line in Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(line[9] in inodes and int(line[2].rpartition(":")[2], 16) == port for line in lines)
