"""kubectl and the Python client through the server to a kubelet, which is a process of its own, as the server is."""

from __future__ import annotations

import fcntl
import http.server
import os
import pty
import select
import signal
import socket
import ssl
import struct
import termios
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubetwist.testing import SubprocessServer
from tests.fakekubelet import KubeletProcess

from .conftest import Kubectl

pytestmark = pytest.mark.kubectl

MERGE = "application/merge-patch+json"
#: Seconds that something may take that is done in a moment.
PATIENCE = 30.0
PIECE = 1 << 16
#: What a connection may hold besides its kernel buffers, and what a log of this many bytes may cost.
FLAT = 32 << 20
LARGE = 200 << 20
BOTH = pytest.mark.parametrize("websockets", ["true", "false"])


@pytest.fixture(scope="module")
def kubelet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeletProcess]:
    """A kubelet that is there for all tests, once the server runs."""
    kubelet = KubeletProcess(tmp_path_factory.mktemp("kubelet"))
    yield kubelet
    kubelet.kill()


@pytest.fixture(scope="module")
def server(kubelet: KubeletProcess) -> Iterator[SubprocessServer]:
    """A server that may call this machine, and trusts the authority of the kubelet's certificate alone."""
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
    """The authority that the server's certificate for kubelets comes from."""
    return (server.kubeconfig.parent / "pki" / "ca.crt").read_bytes()


def make_node(server: SubprocessServer, name: str, kubelet: KubeletProcess, *features: str) -> None:
    """A node whose kubelet this is."""
    code, _ = server.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    assert code in (201, 409)
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.port}},
        "declaredFeatures": list(features),
    }
    code, made = server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}, content_type=MERGE)
    assert code == 200, made


def make_pod(server: SubprocessServer, namespace: str, node: str = "node", address: str = "127.0.0.1") -> None:
    """A pod called pod, which runs on a node."""
    containers = [{"name": "main", "image": "none"}]
    obj = {"metadata": {"name": "pod"}, "spec": {"nodeName": node, "containers": containers}}
    code, made = server.request("POST", f"/api/v1/namespaces/{namespace}/pods", obj)
    assert code == 201, made
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}
    path = f"/api/v1/namespaces/{namespace}/pods/pod/status"
    code, made = server.request("PATCH", path, {"status": status}, content_type=MERGE)
    assert code == 200, made


@pytest.fixture
def pod(server: SubprocessServer, namespace: str) -> str:
    """The name of a pod that runs."""
    make_pod(server, namespace)
    return "pod"


def until(true: Callable[[], Any], what: str) -> Any:
    """Wait until something is."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what} did not happen")


# Logs.


def test_logs(kubectl: Kubectl, kubelet: KubeletProcess, pod: str) -> None:
    """kubectl logs shows what the container has written, as much of it as is asked for."""
    kubelet.log(kubectl.namespace, pod, "main").write_text("one\ntwo\nthree\n")
    assert kubectl("logs", pod) == "one\ntwo\nthree\n"
    assert kubectl("logs", pod, "--tail=1", "--timestamps") == "2026-01-02T03:04:05.000000006Z three\n"
    assert kubectl("logs", pod, "--limit-bytes=5") == "one\nt"
    gone = kubectl.run("logs", pod, "--previous")
    assert 'previous terminated container "main" in pod "pod" not found' in gone.stderr
    kubelet.log(kubectl.namespace, pod, "main.previous").write_text("earlier\n")
    assert kubectl("logs", pod, "-p") == "earlier\n"


def test_log_that_is_not_there(kubectl: Kubectl, pod: str) -> None:
    """What a kubelet says against it is told in the reference's words."""
    none = kubectl.run("logs", pod)
    assert "(NotFound): the server could not find the requested resource ( pods/log pod)" in none.stderr


def test_logs_that_are_followed(kubectl: Kubectl, kubelet: KubeletProcess, pod: str) -> None:
    """kubectl logs -f shows each line as it is written."""
    log = kubelet.log(kubectl.namespace, pod, "main")
    log.write_text("one\n")
    following = kubectl.start("logs", "-f", pod)
    assert following.stdout is not None
    try:
        assert following.stdout.readline() == "one\n"
        for line in ("two\n", "three\n"):
            with log.open("a") as file:
                file.write(line)
            assert following.stdout.readline() == line
    finally:
        following.kill()
        following.communicate()


def test_log_in_a_browser(server: SubprocessServer, kubelet: KubeletProcess, namespace: str, pod: str) -> None:
    """A log is followed over a WebSocket, too, which ends with it or with its client."""
    import websocket

    log = kubelet.log(namespace, pod, "main")
    log.write_text("one\n")
    url = f"{server.url.replace('https', 'wss')}/api/v1/namespaces/{namespace}/pods/{pod}/log"
    options: dict[str, Any] = {
        "header": [f"Authorization: Bearer {server.token}"],
        "sslopt": {"context": server.connection.ssl_context()},
        "timeout": PATIENCE,
    }
    following = websocket.create_connection(f"{url}?follow=true", **options)
    assert following.recv() == b"one\n"
    with log.open("a") as file:
        file.write("two\n")
    assert following.recv() == b"two\n"
    assert connections(server, kubelet.port) > 0
    following.close()
    encoded = websocket.create_connection(url, subprotocols=["base64.binary.k8s.io"], **options)
    assert encoded.recv() == "b25lCnR3bwo="
    assert encoded.recv_data(control_frame=True)[0] == websocket.ABNF.OPCODE_CLOSE
    encoded.close()
    with pytest.raises(websocket.WebSocketBadStatusException) as caught:
        websocket.create_connection(url, subprotocols=["morse"], **options)
    assert caught.value.status_code == 403


# Commands.


@BOTH
def test_exec(kubectl: Kubectl, pod: str, websockets: str) -> None:
    """kubectl exec runs a command: its output and errors come apart, and its exit code is kubectl's."""
    chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    done = kubectl.run("exec", pod, "--", "sh", "-c", "echo out; echo err >&2; exit 7", **chosen)
    assert (done.stdout, done.returncode) == ("out\n", 7)
    assert done.stderr == "err\ncommand terminated with exit code 7\n"
    assert kubectl("exec", "-i", pod, "--", "tr", "a-z", "A-Z", stdin="shout\n" * 5000, **chosen) == "SHOUT\n" * 5000
    assert len(kubectl("exec", pod, "--", "head", "-c", "5000000", "/dev/zero", **chosen)) == 5_000_000


def test_exec_by_a_kubelet_that_speaks_websocket(
    kubectl: Kubectl, server: SubprocessServer, kubelet: KubeletProcess, namespace: str
) -> None:
    """A node that declares it gets WebSockets as they come, and SPDY from those who speak that."""
    make_node(server, "modern", kubelet, "ExtendWebSocketsToKubelet")
    make_pod(server, namespace, "modern")
    before = len(kubelet.requests())
    for websockets in ("true", "false"):
        chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
        done = kubectl.run("exec", "-i", "pod", "--", "sh", "-c", "cat; exit 5", stdin="in", **chosen)
        assert (done.stdout, done.returncode) == ("in", 5)
    assert [one.partition(" ")[0] for one in kubelet.requests()[before:]] == ["GET", "POST"]


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, environment)
        self.seen = ""

    def resize(self, rows: int, columns: int) -> None:
        """Be of another size; whoever is in the foreground is told."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.fd, text.encode())

    def shows(self, text: str, seconds: float = PATIENCE) -> bool:
        """Whether it shows C{text}, now or soon."""
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
        """The exit code of the program."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """End it, if it still runs."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        os.close(self.fd)


@BOTH
def test_exec_on_a_terminal(kubectl: Kubectl, pod: str, websockets: str) -> None:
    """kubectl exec -it is a terminal, whose size follows that of ours."""
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
    """kubectl attach -i speaks with what runs in the container."""
    chosen = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": websockets}
    assert kubectl("attach", "-i", pod, stdin="hello\n", **chosen).splitlines()[-2:] == ["attached", "hello"]


@BOTH
def test_cp(kubectl: Kubectl, pod: str, tmp_path: Path, websockets: str) -> None:
    """kubectl cp brings files and directories to a container, and back."""
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
    """The official Python client runs commands, over a WebSocket of an older kind."""
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


# Ports and proxies.


class Page(http.server.BaseHTTPRequestHandler):
    """Says what it was asked for."""

    def do_GET(self) -> None:
        """Answer."""
        body = f"{self.path} via {self.headers.get('X-Forwarded-Uri')}".encode()
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "https://elsewhere.example/")
        elif self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/new/")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Nobody wants to know."""


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """A web server at an address of this machine that is not the loopback's."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # Nothing is sent.
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but that of itself")
        address = probe.getsockname()[0]
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Page) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield address, serving.server_port
        serving.shutdown()
        thread.join()


@BOTH
def test_port_forward(kubectl: Kubectl, pod: str, page: tuple[str, int], websockets: str) -> None:
    """kubectl port-forward leads from a port here to one of the pod, for many connections at once."""
    kubectl.environment = kubectl.environment | {"KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    forwarding = kubectl.start("port-forward", pod, f":{page[1]}")
    assert forwarding.stdout is not None
    try:
        line = forwarding.stdout.readline()
        assert line.startswith("Forwarding from 127.0.0.1:"), line
        port = int(line.split(":")[1].split()[0])
        for number in range(3):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/page{number}", timeout=PATIENCE) as answer:
                assert answer.read() == f"/page{number} via None".encode()
    finally:
        forwarding.kill()
        forwarding.communicate()


def test_node_proxy(kubectl: Kubectl, kubelet: KubeletProcess) -> None:
    """The kubelet is reached through its node, with methods, paths and queries as they are; never its redirects."""
    node = "/api/v1/nodes/node/proxy"
    assert kubectl("get", "--raw", f"{node}/healthz") == "ok"
    assert kubectl("get", "--raw", f"{node}/a/b%20c/?d=e&d=f") == "GET /a/b%20c/?d=e&d=f "
    assert kubectl("create", "--raw", f"{node}/a", "-f", "-", stdin="content") == "POST /a content"
    assert kubectl("delete", "--raw", f"{node}/a").startswith("DELETE /a")
    away = kubectl.run("get", "--raw", f"{node}/redirect")
    assert "the backend attempted to redirect this request, which is not permitted" in away.stderr
    dead = kubectl.run("get", "--raw", "/api/v1/nodes/node:1/proxy/")
    assert "(ServiceUnavailable): error trying to reach service: dial tcp 127.0.0.1:1: connect:" in dead.stderr


def test_service_behind_kubectl_proxy(
    kubectl: Kubectl, server: SubprocessServer, namespace: str, page: tuple[str, int]
) -> None:
    """Services and pods are reached as if they were below their paths here, as long as they do not lead elsewhere."""
    address, port = page
    make_pod(server, namespace, address=address)
    at = f"/api/v1/namespaces/{namespace}"
    service = {"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}}
    assert server.request("POST", f"{at}/services", service)[0] == 201
    reference = {"kind": "Pod", "name": "pod", "namespace": namespace}
    subset = {"addresses": [{"ip": address, "targetRef": reference}], "ports": [{"name": "http", "port": port}]}
    assert server.request("POST", f"{at}/endpoints", {"metadata": {"name": "web"}, "subsets": [subset]})[0] == 201
    proxy = kubectl.start("proxy", "--port=0")
    assert proxy.stdout is not None
    try:
        url = "http://" + proxy.stdout.readline().split()[-1]
        for name in ("services/web:http", "services/web:80", "services/http:web:http", f"pods/pod:{port}"):
            path = f"{at}/{name}/proxy"
            with urllib.request.urlopen(f"{url}{path}/some/page?q=1", timeout=PATIENCE) as answer:
                assert answer.read().decode() == f"/some/page?q=1 via {path}/some/page"
            with urllib.request.urlopen(f"{url}{path}", timeout=PATIENCE) as answer:
                assert (answer.url, answer.read().decode()) == (f"{url}{path}/", f"/ via {path}/")
            with urllib.request.urlopen(f"{url}{path}/moved", timeout=PATIENCE) as answer:
                assert (answer.url, answer.read().decode()) == (f"{url}{path}/new/", f"/new/ via {path}/new/")
            code, answer = server.request("GET", f"{path}/away")
            assert code == 502
            assert "the backend attempted to redirect this request" in str(answer)
    finally:
        proxy.kill()
        proxy.communicate()


# What goes wrong.


@pytest.fixture
def doomed(kubelet: KubeletProcess, server: SubprocessServer, namespace: str) -> Iterator[KubeletProcess]:
    """Another kubelet, which is about to die, with a pod."""
    other = KubeletProcess.beside(kubelet, namespace)
    other.start(clients(server))
    make_node(server, namespace, other)
    make_pod(server, namespace, namespace)
    yield other
    other.kill()


def connections(server: SubprocessServer, port: int) -> int:
    """How many connections the server has to a port of this machine."""
    sockets = set()
    for entry in Path(f"/proc/{server.pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except FileNotFoundError:
            continue
    inodes = {one.removeprefix("socket:[").removesuffix("]") for one in sockets if one.startswith("socket:")}
    lines = [line.split() for line in Path(f"/proc/{server.pid}/net/tcp").read_text().splitlines()[1:]]
    return sum(line[9] in inodes and int(line[2].rpartition(":")[2], 16) == port for line in lines)


def test_kubelet_that_dies_while_a_log_is_followed(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess
) -> None:
    """Whoever follows a log sees that it broke off."""
    doomed.log(kubectl.namespace, "pod", "main").write_text("one\n")
    following = kubectl.start("logs", "-f", "pod")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    assert connections(server, doomed.port) == 1
    doomed.kill()
    rest, _ = following.communicate(timeout=PATIENCE)
    assert following.returncode == 1
    assert "unexpected EOF" in rest
    until(lambda: connections(server, doomed.port) == 0, "the end of the connection")
    refused = kubectl.run("logs", "pod")
    assert f'Get "https://127.0.0.1:{doomed.port}/containerLogs/' in refused.stderr
    assert "connect: connection refused" in refused.stderr


@BOTH
def test_kubelet_that_dies_while_a_command_runs(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess, websockets: str
) -> None:
    """Whoever runs a command does not wait for its end, and nothing stays behind."""
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
    """With the client its connection to the kubelet goes."""
    doomed.log(kubectl.namespace, "pod", "main").write_text("one\n")
    following = kubectl.start("logs", "-f", "pod")
    assert following.stdout is not None
    assert following.stdout.readline() == "one\n"
    assert connections(server, doomed.port) == 1
    following.kill()
    following.communicate()
    until(lambda: connections(server, doomed.port) == 0, "the end of the connection")


@BOTH
def test_client_that_dies_while_a_command_runs(
    kubectl: Kubectl, server: SubprocessServer, doomed: KubeletProcess, websockets: str
) -> None:
    """With the client its connection to the kubelet goes."""
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
    """A server that is to stop does not wait for whoever follows a log or runs a command."""
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
    """The bytes that the server has in memory."""
    return int(Path(f"/proc/{server.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_slow_reader_of_a_large_log(
    server: SubprocessServer, kubelet: KubeletProcess, namespace: str, pod: str
) -> None:
    """A log of any length costs the server no memory, however slowly it is read, and arrives whole."""
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
    """CVE-2020-8562, CVE-2022-3294: unless a flag says so, no node, pod or name leads to this machine."""
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
