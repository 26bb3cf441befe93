"""Tests for forwarded ports, and proxies of nodes, pods and services."""

from __future__ import annotations

import http.server
import socket
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from tests.fakekubelet import KubeletProcess

from ..conftest import Kubectl
from .conftest import BOTH, PATIENCE, make_pod

pytestmark = pytest.mark.kubectl


class Page(http.server.BaseHTTPRequestHandler):
    """Handler that responds with the request line."""

    def do_GET(self) -> None:
        """Send the response."""
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
        """Log nothing."""


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Iterator[tuple[str, int]]:
    """A web server at a non-loopback address of this machine."""
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
    """kubectl port-forward forwards a local port to a port of the pod, for many concurrent connections."""
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
    """The node proxy forwards methods, paths and queries unchanged to the kubelet, and does not follow redirects."""
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
    """Services and pods can be reached through kubectl proxy at their proxy paths, without redirects to other hosts."""
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
