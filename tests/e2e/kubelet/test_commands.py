"""Tests for commands that kubectl and the Python client run through the server."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from pathlib import Path

import pytest

from kubetwist.testing import SubprocessServer
from tests.fakekubelet import KubeletProcess

from ..conftest import Kubectl
from .conftest import BOTH, PATIENCE, make_node, make_pod, until

pytestmark = pytest.mark.kubectl


@BOTH
def test_exec(kubectl: Kubectl, pod: str, websockets: str) -> None:
    """kubectl exec runs a command with separate stdout and stderr, and returns its exit code."""
    chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    done = kubectl.run("exec", pod, "--", "sh", "-c", "echo out; echo err >&2; exit 7", **chosen)
    assert (done.stdout, done.returncode) == ("out\n", 7)
    assert done.stderr == "err\ncommand terminated with exit code 7\n"
    assert kubectl("exec", "-i", pod, "--", "tr", "a-z", "A-Z", stdin="shout\n" * 5000, **chosen) == "SHOUT\n" * 5000
    assert len(kubectl("exec", pod, "--", "head", "-c", "5000000", "/dev/zero", **chosen)) == 5_000_000


@BOTH
def test_kubelet_that_redirects(kubectl: Kubectl, kubelet: KubeletProcess, pod: str, websockets: str) -> None:
    """CVE-2018-1002102, CVE-2020-8559: a redirect of a kubelet is neither followed nor passed on to the client."""
    refused = kubectl.run("exec", pod, "--", "redirect", KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)
    assert refused.returncode == 1
    assert "redirect not allowed" in refused.stderr or "invalid upgrade response: status code 302" in refused.stderr
    assert "elsewhere" not in refused.stderr
    assert "/exec/" in kubelet.requests()[-1]


def test_exec_with_websocket_support(
    kubectl: Kubectl, server: SubprocessServer, kubelet: KubeletProcess, namespace: str
) -> None:
    """WebSockets are passed through to a node that declares support for them; SPDY clients still use SPDY."""
    make_node(server, "modern", kubelet, "ExtendWebSocketsToKubelet")
    make_pod(server, namespace, "modern")
    before = len(kubelet.requests())
    for websockets in ("true", "false"):
        chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
        done = kubectl.run("exec", "-i", "pod", "--", "sh", "-c", "cat; exit 5", stdin="in", **chosen)
        assert (done.stdout, done.returncode) == ("in", 5)
    assert [one.partition(" ")[0] for one in kubelet.requests()[before:]] == ["GET", "POST"]


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        self.seen = ""

    def resize(self, rows: int, columns: int) -> None:
        """Resize the terminal, which signals the foreground process."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.fd, text.encode())

    def shows(self, text: str, seconds: float = PATIENCE) -> bool:
        """Return whether C{text} appears within a timeout."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(end - time.monotonic(), 0))
            if not ready:
                return False
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            self.seen += data.decode("utf-8", "replace")
        self.seen = self.seen.partition(text)[2]
        return True

    def wait(self) -> int:
        """Return the exit code of the program."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """Kill the program if it still runs."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        os.close(self.fd)


@BOTH
def test_exec_on_a_terminal(kubectl: Kubectl, pod: str, websockets: str) -> None:
    """kubectl exec -it provides a terminal whose size follows the local one."""
    environment = kubectl.environment | {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets, "TERM": "xterm"}
    shell = "while read line; do [ $line = end ] && exit 4; stty size; done"
    terminal = Terminal([*kubectl.command, "exec", "-it", pod, "--", "sh", "-c", shell], environment)
    try:
        for rows, columns in ((40, 100), (50, 120)):
            terminal.resize(rows, columns)

            def asked(size: str = f"{rows} {columns}") -> bool:
                terminal.type("size\n")
                return terminal.shows(size, 0.2)

            until(asked, f"a terminal of {rows} by {columns}")
        terminal.type("end\n")
        assert terminal.shows("exit code 4")
        assert terminal.wait() == 4
    finally:
        terminal.close()


@BOTH
def test_attach(kubectl: Kubectl, pod: str, websockets: str) -> None:
    """kubectl attach -i connects to the running process of the container."""
    chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    assert kubectl("attach", "-i", pod, stdin="hello\n", **chosen).splitlines()[-2:] == ["attached", "hello"]


@BOTH
def test_cp(kubectl: Kubectl, pod: str, tmp_path: Path, websockets: str) -> None:
    """kubectl cp copies files and directories to a container and back."""
    chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    here, there, back = (tmp_path / name for name in ("here", "there", "back"))
    content = os.urandom(3_000_000)
    (here / "deep").mkdir(parents=True)
    (here / "deep" / "file").write_bytes(content)
    there.mkdir()
    kubectl("cp", str(here), f"{pod}:{there}", **chosen)
    assert (there / "here" / "deep" / "file").read_bytes() == content
    kubectl("cp", f"{pod}:{there / 'here'}", str(back), **chosen)
    assert (back / "deep" / "file").read_bytes() == content


def test_python_client(server: SubprocessServer, namespace: str, pod: str) -> None:
    """The official Python client runs commands over the older WebSocket protocol."""
    from kubernetes import client, config
    from kubernetes.stream import stream

    with config.new_client_from_config(str(server.kubeconfig)) as api:
        connect = client.CoreV1Api(api).connect_get_namespaced_pod_exec
        command = ["sh", "-c", "echo out; echo err >&2; read line; echo got $line; exit 3"]
        running = stream(
            connect, pod, namespace, command=command,
            stdin=True, stdout=True, stderr=True, tty=False, _preload_content=False,
        )  # fmt: skip
        running.write_stdin("this\n")
        running.run_forever(timeout=PATIENCE)
        assert (running.read_stdout(), running.read_stderr()) == ("out\ngot this\n", "err\n")
        assert running.returncode == 3
