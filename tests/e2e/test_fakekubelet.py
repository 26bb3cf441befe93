"""Tests of the simulated kubelet with kubectl and the Python client: logs, commands, copies, ports."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
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
        "ports": {80: {"http": {"body": "hello", "headers": {"X-A": "b"}}}, 81: "echo"},
        "files": {"/etc/version": "1\n"},
    },
    "quiet": {},
    "done": {"logs": "finished"},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server with a simulated node."""
    path = tmp_path_factory.mktemp("images") / "images.yaml"
    path.write_text(json.dumps({"images": IMAGES}))
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
    process = subprocess.Popen(
        [*kubectl.command, "port-forward", "pod/web", ":80"],
        stdout=subprocess.PIPE,
        text=True,
        env=kubectl.environment | {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets},
    )
    try:
        assert process.stdout is not None
        port = re.match(r"Forwarding from 127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert port is not None
        for _ in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/path", timeout=30) as response:
                assert (response.read(), response.headers["X-A"]) == (b"hello", "b")
    finally:
        process.kill()
        process.wait()


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
