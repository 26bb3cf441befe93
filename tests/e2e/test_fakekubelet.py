"""Tests of the simulated kubelet with kubectl and the Python client: logs, commands, copies, ports."""

from __future__ import annotations

import json
import os
import pty
import re
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from .conftest import Kubectl

#: Both ways to speak with a server: WebSocket, and SPDY.
BOTH = pytest.mark.parametrize("websockets", ["true", "false"])
IMAGES: dict[str, Any] = {
    "web": {
        "logs": {"lines": ["starting"], "every": "50ms", "line": "tick {n}"},
        "exec": {
            "sh -c 'exit 3'": {"stdout": "out", "stderr": "err", "exit": 3},
        },
        "ports": {
            80: {"http": {"body": "hello", "headers": {"X-A": "b"}}},
            81: "echo",
            83: {"response": "220 ready\r\n"},
        },
        "files": {"/etc/version": "1\n"},
    },
    "quiet": {},
    "done": {"logs": "finished"},
}


@pytest.fixture(scope="module")
def local_server() -> Iterator[int]:
    """The port of an HTTP server of the test, to which a port of a pod is forwarded."""

    class Handler(BaseHTTPRequestHandler):
        """Answer with the method, the path and the body."""

        def do_GET(self) -> None:
            """Answer a request."""
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = f"{self.command} {self.path} ".encode() + body
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # named by http.server

        def log_message(self, *arguments: object) -> None:
            """Do not log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        yield http.server_address[1]
        http.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, local_server: int) -> Iterator[SubprocessServer]:
    """A server with a simulated node."""
    path = tmp_path_factory.mktemp("images") / "images.yaml"
    forwarded = {85: {"forward": f"localhost:{local_server}"}}
    images = IMAGES | {"web": IMAGES["web"] | {"ports": IMAGES["web"]["ports"] | forwarded}}
    path.write_text(json.dumps({"images": images}))
    with SubprocessServer("--fake-nodes=1", f"--fake-images={path}") as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="module")
def kubectl(server: SubprocessServer, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Run kubectl in a namespace with a pod for each image."""
    kubectl = Kubectl(server.kubeconfig, "default", tmp_path_factory.mktemp("home"))
    deadline = time.monotonic() + 30
    while kubectl.run("get", "serviceaccount", "default").returncode and time.monotonic() < deadline:
        time.sleep(0.1)
    for name in ("web", "quiet"):
        kubectl("run", name, f"--image=registry.example/{name}:1.2")
    kubectl("run", "done", "--image=done", "--restart=Never", "--annotations=kubetwist.dev/run-seconds=1")
    kubectl("wait", "--for=condition=Ready", "pod/web", "pod/quiet", "--timeout=30s")
    kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/done", "--timeout=30s")
    return kubectl


pytestmark = pytest.mark.kubectl


def test_logs(kubectl: Kubectl) -> None:
    """Logs have the lines of the image."""
    lines = kubectl("logs", "web").splitlines()
    assert lines[:2] == ["starting", "tick 1"]
    last = kubectl("logs", "web", "--tail=2", "--timestamps").splitlines()
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z tick \d+", line) for line in last), last
    assert len(last) == 2
    assert kubectl("logs", "web", "--limit-bytes=5") == "start"
    assert kubectl("logs", "quiet") == ""
    assert kubectl("logs", "done", "-f") == "finished\n"
    previous = kubectl.run("logs", "web", "--previous")
    assert 'previous terminated container "web" in pod "web" not found' in previous.stderr


def test_follow(kubectl: Kubectl) -> None:
    """New lines of a followed log arrive."""
    process = subprocess.Popen(
        [*kubectl.command, "logs", "--follow", "--tail=1", "web"],
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.environment,
    )
    assert process.stdout is not None
    numbers = [int(process.stdout.readline().split()[1]) for _ in range(4)]
    process.kill()
    process.wait()
    assert numbers == list(range(numbers[0], numbers[0] + 4))


@BOTH
def test_exec(kubectl: Kubectl, websockets: str) -> None:
    """Commands have the configured results, or run simulated programs."""
    mode = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    done = kubectl.run("exec", "web", "--", "sh", "-c", "exit 3", **mode)
    assert (done.returncode, done.stdout) == (3, "out")
    assert done.stderr == "errcommand terminated with exit code 3\n"
    assert kubectl("exec", "web", "--", "cat", "/etc/version", **mode) == "1\n"
    assert kubectl("exec", "-i", "web", "--", "sh", stdin="echo a\nhostname\n", **mode) == "a\nweb\n"
    assert kubectl("exec", "-i", "web", "--", "cat", stdin="text", **mode) == "text"
    missing = kubectl.run("exec", "web", "--", "nginx", **mode)
    assert missing.returncode == 127
    assert 'exec: "nginx": executable file not found in $PATH' in missing.stderr
    ended = kubectl.run("exec", "done", "--", "ls", **mode)
    assert "completed pod" in ended.stderr or 'container not found ("done")' in ended.stderr


@BOTH
def test_terminal(kubectl: Kubectl, websockets: str) -> None:
    """A shell on a terminal has a prompt, and echoes its input."""
    near, far = pty.openpty()
    process = subprocess.Popen(
        [*kubectl.command, "exec", "-it", "web", "--", "sh"],
        stdin=far,
        stdout=far,
        stderr=far,
        env=kubectl.environment | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets},
        start_new_session=True,
    )
    os.close(far)
    output = b""

    def read_until(text: bytes) -> None:
        nonlocal output
        while text not in output:
            piece = os.read(near, 1000)
            assert piece, output
            output += piece

    read_until(b"# ")
    os.write(near, b"hostname; echo done\r")
    read_until(b"web\r\ndone\r\n# ")
    os.write(near, b"exit 5\r")
    assert process.wait(30) == 5
    os.close(near)


@BOTH
def test_copy(kubectl: Kubectl, tmp_path: Path, websockets: str) -> None:
    """Files and directories are copied in both directions."""
    mode = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    content = os.urandom(200_000)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "file").write_bytes(content)
    kubectl("cp", str(folder / "file"), "web:/tmp/copied", **mode)
    kubectl("cp", "web:/tmp/copied", str(tmp_path / "back"), **mode)
    assert (tmp_path / "back").read_bytes() == content
    kubectl("cp", str(folder), f"web:/tmp/folder-{websockets}", **mode)
    assert kubectl("exec", "web", "--", "ls", f"/tmp/folder-{websockets}") == "file\n"


@BOTH
def test_port_forward(kubectl: Kubectl, websockets: str) -> None:
    """A forwarded port has the configured answer."""
    with forwarded(kubectl, 80, websockets) as port:
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/path", timeout=30) as response:
                assert (response.read(), response.headers["X-A"]) == (b"hello", "b")


@contextmanager
def forwarded(kubectl: Kubectl, port: int, websockets: str) -> Iterator[int]:
    """Forward a port of the pod web in this context, and return the local port."""
    process = subprocess.Popen(
        [*kubectl.command, "port-forward", "pod/web", f":{port}"],
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.environment | {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets},
    )
    try:
        assert process.stdout is not None
        found = re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert found is not None
        yield int(found[1])
    finally:
        process.kill()
        process.wait()


@BOTH
def test_echo(kubectl: Kubectl, websockets: str) -> None:
    """An echo port sends back what it receives, on several connections, and a response port its text."""
    with forwarded(kubectl, 81, websockets) as port:
        connections = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(2)]
        data = os.urandom(150_000)
        for number, connection in enumerate(connections):
            with connection, connection.makefile("rb") as received:
                sender = threading.Thread(target=connection.sendall, args=[data[number:]])
                sender.start()
                assert received.read(len(data) - number) == data[number:]
                sender.join()
    with (
        forwarded(kubectl, 83, websockets) as port,
        socket.create_connection(("127.0.0.1", port), timeout=30) as connection,
        connection.makefile("rb") as received,
    ):
        assert received.read() == b"220 ready\r\n"


@BOTH
def test_forward(kubectl: Kubectl, websockets: str) -> None:
    """A port that forwards reaches the server of the test."""
    with forwarded(kubectl, 85, websockets) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/a?b", timeout=30) as response:
            assert response.read() == b"GET /a?b "
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/post", data=b"text", timeout=30) as response:
            assert response.read() == b"POST /post text"


def test_service_proxy(server: SubprocessServer, kubectl: Kubectl) -> None:
    """Requests to a service are proxied to the ports of its pod, by number and by name."""
    ports = [{"name": "http", "port": 8080, "targetPort": 80}, {"name": "forward", "port": 8085, "targetPort": 85}]
    spec = {"selector": {"run": "web"}, "ports": ports}
    server.load([{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}])
    server.wait_for(
        "endpointslices", where=lambda found: found["endpoints"], label_selector="kubernetes.io/service-name=web"
    )
    services = "/api/v1/namespaces/default/services"
    assert kubectl("get", "--raw", f"{services}/web:8080/proxy/x") == "hello"
    assert kubectl("get", "--raw", f"{services}/web:forward/proxy/path?q=1") == "GET /path?q=1 "
    code, answer = server.request("POST", f"{services}/http:web:forward/proxy/post", b"text")
    assert (code, answer) == (200, "POST /post text")
    assert kubectl("get", "--raw", "/api/v1/namespaces/default/pods/web:85/proxy/y") == "GET /y "


def test_proxy(kubectl: Kubectl) -> None:
    """Requests are proxied to pods, services and kubelets."""
    assert kubectl("get", "--raw", "/api/v1/namespaces/default/pods/web:80/proxy/x") == "hello"
    assert kubectl("get", "--raw", "/api/v1/nodes/pretend-node-0/proxy/healthz") == "ok"
    refused = kubectl.run("get", "--raw", "/api/v1/namespaces/default/pods/web:82/proxy/x")
    assert "connect: connection refused" in refused.stderr


def test_python_client(server: SubprocessServer, kubectl: Kubectl) -> None:
    """The stream of the Python client, which Ansible uses, works."""
    client = pytest.importorskip("kubernetes.client")
    from kubernetes import config
    from kubernetes.stream import stream

    with config.new_client_from_config(str(server.kubeconfig)) as api:
        call = client.CoreV1Api(api).connect_get_namespaced_pod_exec
        arguments: dict[str, Any] = {"stderr": True, "stdout": True, "stdin": False, "tty": False}
        assert stream(call, "web", "default", command=["cat", "/etc/version"], **arguments) == "1\n"
        session = stream(call, "web", "default", command=["sh", "-c", "exit 3"], _preload_content=False, **arguments)
        session.run_forever(timeout=30)
        assert (session.read_stdout(), session.read_stderr(), session.returncode) == ("out", "err", 3)


def test_lost_node(kubectl: Kubectl) -> None:
    """The kubelet and the pods of a lost node are unreachable, until the node returns."""
    kubectl("annotate", "node", "pretend-node-0", "kubetwist.dev/lost=true")
    try:
        for command in (["logs", "web"], ["exec", "web", "--", "true"]):
            assert "connect: no route to host" in kubectl.run(*command).stderr
        for path in ("namespaces/default/pods/web:80/proxy/x", "nodes/pretend-node-0/proxy/healthz"):
            assert "connect: no route to host" in kubectl.run("get", "--raw", f"/api/v1/{path}").stderr
    finally:
        kubectl("annotate", "node", "pretend-node-0", "kubetwist.dev/lost-")
    assert kubectl("get", "--raw", "/api/v1/nodes/pretend-node-0/proxy/healthz") == "ok"
    kubectl("exec", "web", "--", "true")
