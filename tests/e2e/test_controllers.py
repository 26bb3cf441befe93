"""Tests for the controllers of a production server: enabled, disabled, and killed during their work."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kubetwist.testing import SubprocessServer

#: Seconds within which something has to come to pass.
PATIENCE = 60
ROLE = "/apis/rbac.authorization.k8s.io/v1/clusterroles"


def events(server: SubprocessServer, path: str) -> Iterator[Any]:
    """Yield the existing objects as ADDED events, and further events."""
    query = f"watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds={PATIENCE}"
    request = urllib.request.Request(f"{server.url}{path}?{query}&allowWatchBookmarks=true")
    request.add_header("Authorization", f"Bearer {server.token}")
    with urllib.request.urlopen(request, context=server.connection.ssl_context(), timeout=PATIENCE) as stream:
        for line in stream:
            yield json.loads(line)


def wait_for(server: SubprocessServer, path: str, enough: Callable[[Any], bool]) -> Any:
    """Return the first object that satisfies a condition."""
    for event in events(server, path):
        if event["type"] in ("ADDED", "MODIFIED") and enough(event["object"]):
            return event["object"]
    raise AssertionError(f"nothing like it came to {path}")


def wait_for_all(server: SubprocessServer, path: str, name: str, namespaces: set[str]) -> None:
    """Wait until each of the namespaces has an object with this name."""
    missing = set(namespaces)

    def one(obj: Any) -> bool:
        if obj["metadata"]["name"] == name:
            missing.discard(obj["metadata"]["namespace"])
        return not missing

    wait_for(server, path, one)


def test_on(start_server: Callable[..., SubprocessServer]) -> None:
    """
    By default namespaces get their service account and root certificate, roles are aggregated, and tokens in secrets
    are valid.
    """
    server = start_server()
    system = {"default", "kube-system", "kube-public", "kube-node-lease"}
    wait_for_all(server, "/api/v1/serviceaccounts", "default", system)
    wait_for_all(server, "/api/v1/configmaps", "kube-root-ca.crt", system)
    wait_for(server, ROLE, lambda role: role["metadata"]["name"] == "admin" and len(role.get("rules") or ()) > 20)
    annotations = {"kubernetes.io/service-account.name": "default"}
    secret = {"metadata": {"name": "mine", "annotations": annotations}, "type": "kubernetes.io/service-account-token"}
    assert server.request("POST", "/api/v1/namespaces/default/secrets", secret)[0] == 201
    filled = wait_for(server, "/api/v1/namespaces/default/secrets", lambda one: "token" in (one.get("data") or {}))
    token = b64decode(filled["data"]["token"]).decode()
    request = urllib.request.Request(f"{server.url}/apis/authentication.k8s.io/v1/selfsubjectreviews", b"{}")
    request.add_header("Authorization", f"Bearer {token}")
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, context=server.connection.ssl_context()) as answer:
        assert json.load(answer)["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
    assert server.stop() == 0
    assert "Traceback" not in server.output(), server.output()


def test_off(start_server: Callable[..., SubprocessServer]) -> None:
    """With an empty list of controllers no objects are created, as with kube-apiserver alone."""
    server = start_server("--controllers=")
    assert server.request("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})[0] == 201
    for path in ("/api/v1/serviceaccounts", "/api/v1/namespaces/mine/configmaps"):
        assert server.request("GET", path)[1]["items"] == []
    assert server.request("GET", f"{ROLE}/view")[1]["rules"] is None


def test_unknown(tmp_path: Path) -> None:
    """An unknown controller is a start error with kube-controller-manager's message."""
    command = [sys.executable, "-m", "twisted", "kubeapi", f"--data-dir={tmp_path}/data", "--secure-port=0"]
    done = subprocess.run([*command, "--controllers=*,-nosuch"], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0
    assert '"nosuch" is not in the list of known controllers' in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_kill(start_server: Callable[..., SubprocessServer], long: bool) -> None:
    """After kill -9 during their work, controllers complete it when the server is restarted."""
    server = start_server("--storage-backend=sqlite")
    expected: set[str] = set()
    for round_number in range(10 if long else 3):
        created: list[str] = []

        def make(round_number: int = round_number, created: list[str] = created) -> None:
            try:
                for number in range(200):
                    name = f"r{round_number}-{number}"
                    if server.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})[0] == 201:
                        created.append(name)
            except OSError:
                return

        writer = threading.Thread(target=make, daemon=True)
        writer.start()
        while len(created) < 20 * (round_number + 1) and writer.is_alive():
            writer.join(0.002)
        server.kill()
        writer.join(PATIENCE)
        expected.update(created)
        server.start()
        wait_for_all(server, "/api/v1/serviceaccounts", "default", expected)
        wait_for_all(server, "/api/v1/configmaps", "kube-root-ca.crt", expected)
    assert len(expected) >= 3 * 20
    assert "Traceback" not in server.output(), server.output()
