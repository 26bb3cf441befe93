"""Tests for kubelets, clients and servers that end, for slow readers, and for forbidden addresses."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from kubetwist.testing import SubprocessServer
from tests.fakekubelet import KubeletProcess

from ..conftest import Kubectl
from .conftest import BOTH, MERGE, PATIENCE, clients, connections, make_node, make_pod, until

pytestmark = pytest.mark.kubectl

PIECE = 1 << 16
#: What a connection may hold besides its kernel buffers, and what a log of this many bytes may cost.
FLAT = 32 << 20
LARGE = 200 << 20


@pytest.fixture
def doomed(kubelet: KubeletProcess, server: SubprocessServer, namespace: str) -> Iterator[KubeletProcess]:
    """Another kubelet with a pod, which the test kills."""
    other = KubeletProcess.beside(kubelet, namespace)
    other.start(clients(server))
    make_node(server, namespace, other)
    make_pod(server, namespace, namespace)
    yield other
    other.kill()


def test_kubelet_that_dies_while_a_log_is_followed(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess
) -> None:
    """A client that follows a log gets a truncated response when the kubelet dies."""
    doomed.log(kubectl.namespace, "pod", "main").write_text("one\n")
    following = kubectl.start("logs", "-f", "pod")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    assert connections(server, doomed.port) == 1
    doomed.kill()
    rest, _ = following.communicate(timeout=PATIENCE)
    assert following.returncode == 1
    # That is the text of client-go for a stream of HTTP/2 that the server has aborted.
    assert "INTERNAL_ERROR; received from peer" in rest
    until(lambda: connections(server, doomed.port) == 0, "the end of the connection")
    refused = kubectl.run("logs", "pod")
    assert f'Get "https://127.0.0.1:{doomed.port}/containerLogs/' in refused.stderr
    assert "connect: connection refused" in refused.stderr


@BOTH
def test_kubelet_that_dies_while_a_command_runs(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess, websockets: str
) -> None:
    """A client that runs a command gets an error when the kubelet dies, and no connection remains."""
    kubectl.environment = kubectl.environment | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    running = kubectl.start("exec", "pod", "--", "sh", "-c", "echo started; exec sleep 600")
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    doomed.kill()
    running.communicate(timeout=PATIENCE)
    # Over SPDY kubectl takes the end of everything for success.
    assert running.returncode != 0 or websockets == "false"
    until(lambda: connections(server, doomed.port) == 0, "the end of the connection")


def test_client_that_dies_while_it_follows_a_log(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess
) -> None:
    """The request to the kubelet ends when the client dies while it follows a log; the connection is kept."""
    doomed.log(kubectl.namespace, "pod", "main").write_text("one\n")
    following = kubectl.start("logs", "-f", "pod")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    assert connections(server, doomed.port) == 1
    following.kill()
    following.communicate()
    until(doomed.abandoned, "the end of the request")
    assert connections(server, doomed.port) == 1


@BOTH
def test_client_that_dies_while_a_command_runs(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess, websockets: str
) -> None:
    """The connection to the kubelet is closed when the client dies while it runs a command."""
    kubectl.environment = kubectl.environment | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    running = kubectl.start("exec", "pod", "--", "sh", "-c", "echo started; exec sleep 600")
    assert running.stdout is not None
    assert running.stdout.readline() == "started\n"
    assert connections(server, doomed.port) == 1
    running.kill()
    running.communicate()
    until(lambda: connections(server, doomed.port) == 0, "the end of the connection")


def test_server_that_stops(
    start_server: Callable[..., SubprocessServer], kubelet: KubeletProcess, home: Path, namespace: str
) -> None:
    """A server that stops does not wait for followed logs and running commands."""
    stopping = start_server(
        "--controllers=", "--allow-loopback-proxy", f"--kubelet-certificate-authority={kubelet.folder / 'ca.crt'}"
    )
    other = KubeletProcess.beside(kubelet, f"{namespace}-other")
    try:
        other.start(clients(stopping))
        make_node(stopping, "node", other)
        stopping.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        make_pod(stopping, "default")
        other.log("default", "pod", "main").write_text("started\n")
        kubectl = Kubectl(stopping.kubeconfig, "default", home)
        command = ("exec", "pod", "--", "sh", "-c", "echo started; exec sleep 600")
        running = [kubectl.start("logs", "-f", "pod"), kubectl.start(*command)]
        kubectl.environment = kubectl.environment | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}
        running.append(kubectl.start(*command))
        for one in running:
            assert one.stdout is not None
            assert one.stdout.readline() == "started\n"
        assert stopping.stop() == 0
        for one in running:
            one.communicate(timeout=PATIENCE)
    finally:
        other.kill()


def memory(server: SubprocessServer) -> int:
    """Return the resident memory of the server in bytes."""
    return int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_slow_reader_of_a_large_log(
    server: SubprocessServer, kubelet: KubeletProcess, namespace: str, pod: str
) -> None:
    """A large log does not increase the server's memory even if its reader is slow, and arrives completely."""
    with kubelet.log(namespace, pod, "main").open("wb") as log:
        for _ in range(LARGE // (1 << 20)):
            log.write(b"x" * (1 << 20))
    parts = urlsplit(server.url)
    path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
    head = f"GET {path} HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    assert server.request("GET", f"{path}?limitBytes=1")[0] == 200
    before = most = memory(server)
    with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as plain:
        context: ssl.SSLContext = server.connection.ssl_context()
        with context.wrap_socket(plain, server_hostname=parts.hostname) as reader:
            reader.sendall(head.encode())
            received = reader.recv(PIECE)
            length = len(received.partition(b"\r\n\r\n")[2])
            while length < LARGE:
                if length % (320 * PIECE) < PIECE:
                    # A while in which nothing is read.
                    for _ in range(5):
                        assert server.request("GET", "/readyz")[0] == 200
                    most = max(most, memory(server))
                data = reader.recv(PIECE)
                assert data, f"the log ended after {length} bytes"
                length += len(data)
    assert length == LARGE
    assert most - before < FLAT, f"{(most - before) >> 20} MiB"
    (kubelet.log(namespace, pod, "main")).unlink()


def test_addresses_of_this_machine(
    start_server: Callable[..., SubprocessServer], kubelet: KubeletProcess, home: Path
) -> None:
    """CVE-2020-8562, CVE-2022-3294: without the flag that permits it, no node, pod or name leads to this machine."""
    strict = start_server("--controllers=")
    make_node(strict, "node", kubelet)
    code, _ = strict.request("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    assert code == 201
    make_pod(strict, "default")
    at = "/api/v1/namespaces/default/pods/pod"
    for address in ("127.0.0.1", "localhost"):
        status = {"addresses": [{"type": "Hostname", "address": address}]}
        assert strict.request("PATCH", "/api/v1/nodes/node/status", {"status": status}, content_type=MERGE)[0] == 200
        for path in (
            "/api/v1/nodes/node/proxy/healthz",
            "/api/v1/nodes/node:80/proxy/",
            f"{at}/log",
            f"{at}:80/proxy/",
        ):
            code, answer = strict.request("GET", path)
            assert (code, answer["message"]) == (400, "address not allowed"), path
    refused = Kubectl(strict.kubeconfig, "default", home).run("exec", "pod", "--", "true")
    assert "address not allowed" in refused.stderr
