"""Tests for logs that kubectl and a browser read through the server."""

from __future__ import annotations

from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from tests.fakekubelet import KubeletProcess

from ..conftest import Kubectl
from .conftest import PATIENCE, connections

pytestmark = pytest.mark.kubectl


def test_logs(kubectl: Kubectl, kubelet: KubeletProcess, pod: str) -> None:
    """kubectl logs prints the requested part of the container's log."""
    kubelet.log(kubectl.namespace, pod, "main").write_text("one\ntwo\nthree\n")
    assert kubectl("logs", pod) == "one\ntwo\nthree\n"
    assert kubectl("logs", pod, "--tail=1", "--timestamps") == "2026-01-02T03:04:05.000000006Z three\n"
    assert kubectl("logs", pod, "--limit-bytes=5") == "one\nt"
    missing = kubectl.run("logs", pod, "--previous")
    assert 'previous terminated container "main" in pod "pod" not found' in missing.stderr
    kubelet.log(kubectl.namespace, pod, "main.previous").write_text("earlier\n")
    assert kubectl("logs", pod, "-p") == "earlier\n"


def test_log_that_is_not_there(kubectl: Kubectl, pod: str) -> None:
    """Errors of a kubelet are reported as in kube-apiserver."""
    none = kubectl.run("logs", pod)
    assert "(NotFound): the server could not find the requested resource ( pods/log pod)" in none.stderr


def test_logs_that_are_followed(kubectl: Kubectl, kubelet: KubeletProcess, pod: str) -> None:
    """kubectl logs -f prints each line as it is written."""
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
    """A log can be followed over a WebSocket, which closes at the end of the log or with its client."""
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
