"""
Tests for C{--hardened} with workers: what clients see of it over HTTPS and with kubectl, and what is in the files.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
import ssl
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetwist.testing import SubprocessServer

from ..conftest import Kubectl
from .commands import console, kubetwist, start_server

#: The flag permits privileged pods where policies do; the profile must refuse them nevertheless.
FLAGS = ("--hardened", "--workers=2", "--controllers=*,+workloads", "--allow-privileged")
SECRET = "a value that is not in the store"
ENCRYPTED = "/readyz/poststarthook/kubetwist/encrypt-stored-secrets"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SubprocessServer]:
    """A server with two fronts over SQLite."""
    with start_server(tmp_path_factory.mktemp("hardened") / "data", *FLAGS) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def admin(server: SubprocessServer, tmp_path: Path) -> Kubectl:
    """kubectl with the file that the server writes for its operator, in another namespace."""
    kubectl = Kubectl(server.data_dir / "admin.kubeconfig", "team", tmp_path)
    kubectl.run("create", "namespace", "team")
    return kubectl


def connect(server: SubprocessServer, context: ssl.SSLContext) -> http.client.HTTPSConnection:
    """Return a new connection."""
    connection = http.client.HTTPSConnection("127.0.0.1", server.connection.port, context=context, timeout=60)
    connection.connect()
    return connection


def ask(server: SubprocessServer, path: str, **headers: str) -> tuple[int, Any]:
    """Return the status and the body of a GET on a new connection, which one of the fronts accepts."""
    connection = connect(server, server.connection.ssl_context())
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    content = response.read().decode()
    connection.close()
    return response.status, content


def pod(name: str, **security: Any) -> str:
    """Return the manifest of a pod."""
    container = {"name": "c", "image": "nginx", "securityContext": security}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
    return json.dumps(manifest)


@pytest.mark.kubectl
def test_administrator(admin: Kubectl) -> None:
    """The operator's kubeconfig may do everything, as without the flag, and workloads get their pods."""
    assert admin("auth", "can-i", "*", "*", "--all-namespaces") == "yes\n"
    assert admin("auth", "whoami", "-o", "jsonpath={.status.userInfo.username}") == "kubernetes-admin"
    admin("create", "deployment", "web", "--image=nginx", "--replicas=2")
    admin("wait", "deployment/web", "--for=create", "--timeout=60s")
    deadline = time.monotonic() + 60
    while len(admin("get", "pods", "--selector=app=web", "-o", "name").splitlines()) < 2:
        assert time.monotonic() < deadline, admin("get", "events")
        time.sleep(0.1)


def test_anonymous(server: SubprocessServer) -> None:
    """Without credentials all fronts answer health checks, and refuse everything else."""
    for _ in range(8):
        for path in ("/livez", "/readyz", "/healthz"):
            assert ask(server, path) == (200, "ok")
        for path in ("/", "/version", "/api", "/livez/ping", "/openapi/v3", "/metrics", "/api/v1/namespaces"):
            assert ask(server, path)[0] == 401, path
    assert ask(server, "/version", Authorization=f"Bearer {server.connection.token}")[0] == 200


def test_versions_of_tls(server: SubprocessServer) -> None:
    """A client without TLS 1.3 cannot connect."""
    for _ in range(8):
        context = server.connection.ssl_context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version"):
            connect(server, context)
        connection = connect(server, server.connection.ssl_context())
        assert connection.sock.version() == "TLSv1.3"
        connection.close()


@pytest.mark.kubectl
def test_pods(admin: Kubectl) -> None:
    """The baseline policy refuses a privileged pod, also in a new namespace, unless a label permits it."""
    refused = admin.run("create", "-f", "-", stdin=pod("root", privileged=True))
    assert refused.returncode == 1
    assert 'violates PodSecurity "baseline:latest": privileged' in refused.stderr
    admin("create", "-f", "-", stdin=pod("plain"))
    _, check, label = console("hardening.md")
    assert check[0] == "kubetwist" and label[:2] == ["kubectl", "label"]
    admin(*label[1:])
    admin("create", "--namespace=kube-system", "-f", "-", stdin=pod("network", privileged=True))


@pytest.mark.kubectl
def test_external_addresses(admin: Kubectl) -> None:
    """A Service cannot have external IPs, when it is created and later."""
    service: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "outside"},
        "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]},
    }
    refused = admin.run("create", "-f", "-", stdin=json.dumps(service))
    assert refused.returncode == 1 and "Use of external IPs is denied by admission control" in refused.stderr
    del service["spec"]["externalIPs"]
    admin("create", "-f", "-", stdin=json.dumps(service))
    patch = '{"spec": {"externalIPs": ["192.0.2.1"]}}'
    assert "is denied by admission control" in admin.run("patch", "service", "outside", "-p", patch).stderr


@pytest.mark.kubectl
def test_owners(server: SubprocessServer, admin: Kubectl, tmp_path: Path) -> None:
    """Who may create and change objects, but not delete them, cannot give them another owner."""
    admin("create", "serviceaccount", "writer")
    admin("create", "role", "writer", "--verb=get,create,update,patch", "--resource=configmaps")
    admin("create", "rolebinding", "writer", "--role=writer", "--serviceaccount=team:writer")
    admin("create", "configmap", "owner")
    admin("create", "configmap", "owned")
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner"}
    owner["uid"] = admin("get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}")
    patch = json.dumps({"metadata": {"ownerReferences": [owner]}})
    token = admin("create", "token", "writer").strip()
    config = yaml.safe_load((server.data_dir / "admin.kubeconfig").read_text())
    config["users"][0]["user"] = {"token": token}
    (tmp_path / "writer").write_text(yaml.safe_dump(config))
    writer = Kubectl(tmp_path / "writer", "team", tmp_path)
    writer("patch", "configmap", "owned", "-p", '{"data": {"a": "b"}}')
    refused = writer.run("patch", "configmap", "owned", "-p", patch)
    assert refused.returncode == 1 and "cannot set an ownerRef" in refused.stderr
    admin("patch", "configmap", "owned", "-p", patch)


def test_audit(server: SubprocessServer) -> None:
    """Requests to both fronts are in the audit log of the data directory, without bodies; health checks are not."""
    assert ask(server, "/livez") == (200, "ok")
    body = {"metadata": {"name": "audited"}, "stringData": {"password": SECRET}}
    assert server.request("POST", "/api/v1/namespaces/default/secrets", body)[0] == 201
    names = [f"front-{number}" for number in range(8)]
    for name in names:
        token = f"Bearer {server.connection.token}"
        assert ask(server, f"/api/v1/namespaces/default/configmaps/{name}", Authorization=token)[0] == 404
    log = server.data_dir / "hardened" / "audit.log"
    deadline = time.monotonic() + 60
    while True:
        lines = log.read_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        if {*names, "audited"} <= {event.get("objectRef", {}).get("name") for event in events}:
            break
        assert time.monotonic() < deadline, lines[-5:]
        time.sleep(0.05)
    assert {event["level"] for event in events} == {"Metadata"}
    assert not any("requestObject" in event or "responseObject" in event for event in events)
    assert not {"/livez", "/readyz", "/healthz"}.intersection(event["requestURI"] for event in events)
    (created,) = [event for event in events if event.get("objectRef", {}).get("name") == "audited"]
    assert (created["verb"], created["objectRef"]["resource"], created["responseStatus"]["code"]) == (
        "create",
        "secrets",
        201,
    )
    assert log.stat().st_mode & 0o077 == 0


def test_secrets_at_rest(tmp_path: Path) -> None:
    """
    No file of the data directory has the value of a Secret after a crash, and both fronts read it.

    A Secret that is older than the flag is encrypted when the server is ready.
    """
    secrets = "/api/v1/namespaces/default/secrets"
    data = tmp_path / "data"

    def value(name: str) -> str:
        return b64encode(f"{SECRET}: {name}".encode()).decode()

    def create(server: SubprocessServer, name: str) -> None:
        assert server.request("POST", secrets, {"metadata": {"name": name}, "data": {"p": value(name)}})[0] == 201

    def files_with(name: str) -> list[Path]:
        forms = (value(name).encode(), f"{SECRET}: {name}".encode())
        files = [path for path in data.rglob("*") if path.is_file()]
        return [path for path in files if any(form in path.read_bytes() for form in forms)]

    with start_server(data, "--controllers=") as server:
        create(server, "old")
    assert files_with("old")
    with start_server(data, "--controllers=", "--hardened", "--workers=2") as server:
        assert server.request("GET", ENCRYPTED) == (200, "ok")
        create(server, "new")
        token = f"Bearer {server.connection.token}"
        for _ in range(8):
            for name in ("old", "new"):
                status, text = ask(server, f"{secrets}/{name}", Authorization=token)
                assert (status, json.loads(text)["data"]) == (200, {"p": value(name)})
        server.kill()
    assert not files_with("new")
    with closing(sqlite3.connect(data / "store.sqlite")) as store:
        query = "SELECT value FROM log WHERE key = ? ORDER BY rowid DESC LIMIT 1"
        for name in ("old", "new"):
            (stored,) = store.execute(query, (f"/registry/secrets/default/{name}",)).fetchone()
            assert bytes(stored).startswith(b"k8s:enc:secretbox:v1:key1:")
    key = data / "hardened" / "encryption.yaml"
    assert key.stat().st_mode & 0o077 == 0
    (configured,) = yaml.safe_load(key.read_text())["resources"]
    assert [next(iter(one)) for one in configured["providers"]] == ["secretbox", "identity"]


def test_checks() -> None:
    """
    The command of the page prints the checks that need other flags; with these flags no check fails.

    A server with the flags of the page is what the other tests start.
    """
    serve, check, _ = console("hardening.md")
    assert serve == ["twist", "kubeapi", "--hardened"]
    done = kubetwist(*check[1:])
    assert (done.returncode, done.stderr) == (1, "")
    results = [line.split()[:2] for line in done.stdout.splitlines()[:-1]]
    assert [number for number, result in results if result == "fail"] == ["1.2.5", "1.2.30"]
    remaining = ("--kubelet-certificate-authority=ca.crt", "--service-account-extend-token-expiration=false")
    done = kubetwist("hardening", *FLAGS, *remaining)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("31 passed, 0 failed")
