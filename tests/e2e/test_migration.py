"""Tests for migrations between SQLite and etcd, with the command-line tools."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

FLAGS = ("--controllers=", "--authorization-mode=AlwaysAllow")
WHERE = "/api/v1/namespaces/default"


def twist(command: str, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run a tool."""
    line = [sys.executable, "-m", "twisted", command, *flags]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def encryption(folder: Path) -> Path:
    """Write a configuration that encrypts Secrets."""
    keys = {"aesgcm": {"keys": [{"name": "key1", "secret": base64.b64encode(bytes(range(32))).decode()}]}}
    resources = [{"resources": ["secrets"], "providers": [keys, {"identity": {}}]}]
    path = folder / "encryption.json"
    kind = {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "EncryptionConfiguration"}
    path.write_text(json.dumps(kind | {"resources": resources}))
    return path


def stored(data: Path, key: str) -> bytes:
    """Return the content of the embedded store."""
    connection = sqlite3.connect(data / "store.sqlite")
    (value,) = connection.execute("SELECT value FROM log WHERE key = ? ORDER BY id DESC", (key,)).fetchone()
    connection.close()
    return bytes(value)


def everything(server: SubprocessServer) -> dict[str, Any]:
    """Return all objects that tests and the server create, without revisions."""
    found: dict[str, Any] = {}
    for path in (
        "/api/v1/configmaps",
        "/api/v1/secrets",
        "/api/v1/events",
        "/api/v1/namespaces",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ):
        code, listed = server.request("GET", path)
        assert code == 200
        for item in listed["items"]:
            del item["metadata"]["resourceVersion"]
            found[f"{path} {item['metadata'].get('namespace')}/{item['metadata']['name']}"] = item
    return found


def fill(server: SubprocessServer) -> None:
    """Create objects of several kinds."""
    for number in range(150):
        body = {"metadata": {"name": f"cm-{number}"}, "data": {"text": "é" * number}}
        assert server.request("POST", f"{WHERE}/configmaps", body)[0] == 201
    assert server.request("POST", f"{WHERE}/secrets", {"metadata": {"name": "s"}, "data": {"k": "dg=="}})[0] == 201
    involved = {"kind": "Pod", "namespace": "default", "name": "x"}
    event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Testing"}
    assert server.request("POST", f"{WHERE}/events", event)[0] == 201


@pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "")
def test_round_trip(tmp_path: Path) -> None:
    """
    A server over etcd has the objects of the one over SQLite, including uids, and so has the one after the migration
    back.

    Secrets are encrypted in all stores.
    """
    data, again = tmp_path / "data", tmp_path / "again"
    flags = (*FLAGS, f"--encryption-provider-config={encryption(tmp_path)}")
    with SubprocessServer(*flags, data_dir=data) as server:
        fill(server)
        before = everything(server)
        refused = twist("kubeapi-migrate", f"--from-data-dir={data}", f"--to-data-dir={again}")
        assert refused.returncode == 1
        assert refused.stderr.splitlines()[-1] == (
            f"twist kubeapi-migrate: the data directory {data} is in use by another server (process {server.pid})"
        )
    with EtcdServer() as etcd:
        servers = ",".join(etcd.urls)
        moved = twist("kubeapi-migrate", f"--from-data-dir={data}", f"--to-etcd-servers={servers}")
        assert moved.returncode == 0, moved.stderr
        assert "are equal in source and target" in moved.stdout
        twice = twist("kubeapi-migrate", f"--from-data-dir={data}", f"--to-etcd-servers={servers}")
        assert twice.returncode == 1 and "is not empty" in twice.stderr, twice.stderr
        with SubprocessServer(*flags, f"--etcd-servers={servers}", data_dir=data) as server:
            assert everything(server) == before
            created = {"metadata": {"name": "made-over-etcd"}}
            assert server.request("POST", f"{WHERE}/configmaps", created)[0] == 201
            before = everything(server)
        source = (f"--from-etcd-servers={servers}", "--from-etcd-transport=gateway")
        back = twist("kubeapi-migrate", *source, f"--to-data-dir={again}")
        assert back.returncode == 0, back.stderr
    shutil.copytree(data / "pki", again / "pki")
    assert stored(again, "/registry/secrets/default/s").startswith(b"k8s:enc:aesgcm:v1:key1:")
    with SubprocessServer(*flags, data_dir=again) as server:
        assert everything(server) == before
        assert not server.output().count("Traceback"), server.output()


def test_usage(tmp_path: Path) -> None:
    """Usage errors are reported in one line."""
    for flags, text in (
        ((), "no flag selects the source"),
        (("--from-data-dir=x",), "no flag selects the target"),
        (("--nope",), "unknown flag: --nope"),
        ((f"--from-data-dir={tmp_path}/x", f"--to-data-dir={tmp_path}/y"), "no store.sqlite in"),
        (("--from-storage-backend=nope", "--to-storage-backend=memory"), "--storage-backend must be one of"),
    ):
        done = twist("kubeapi-migrate", *flags)
        assert done.returncode > 0
        (line,) = [line for line in done.stderr.splitlines() if line.startswith("twist kubeapi-migrate: ")]
        assert text in line
        assert "Traceback" not in done.stderr + done.stdout
