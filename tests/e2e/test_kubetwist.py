"""Tests for the command C{kubetwist} with a running server."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubetwist.client.kubeconfig import read_kubeconfig
from kubetwist.testing import SubprocessServer
from tests.e2e.test_backup import make

NAMES = "/api/v1/namespaces/default/configmaps"


def kubetwist(*arguments: str, code: int = 0, folder: Path | None = None) -> tuple[str, str]:
    """Run the command, which must end with an exit code; return what it writes to stdout and stderr."""
    line = [sys.executable, "-m", "kubetwist", *arguments]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a token file with one user."""
    path = tmp_path_factory.mktemp("tokens") / "tokens.csv"
    kubetwist("token", "user", "alice", f"--file={path}")
    return path


@pytest.fixture(scope="module")
def rbac_server(tokens: Path) -> Iterator[SubprocessServer]:
    """Return a server with RBAC and a token file."""
    with SubprocessServer("--authorization-mode=RBAC", token_auth_file=tokens) as server:
        yield server


def review(server: SubprocessServer, token: str, audiences: list[str]) -> dict[str, object]:
    """Return the status of a TokenReview."""
    body = {"spec": {"token": token, "audiences": audiences}}
    code, reviewed = server.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body)
    assert code == 201, reviewed
    status: dict[str, object] = reviewed["status"]
    return status


def test_token_of_service_account(rbac_server: SubprocessServer) -> None:
    """The printed token is valid for its audience, and its lifetime is the requested one."""
    kubeconfig = f"--kubeconfig={rbac_server.kubeconfig}"
    out, _ = kubetwist("token", "create", "default", "--audience=vault", "--duration=20m", "-o", "json", kubeconfig)
    status = json.loads(out)["status"]
    assert status["token"]
    out, _ = kubetwist("token", "create", "default", "-n", "kube-system", "--audience=vault", kubeconfig)
    reviewed = review(rbac_server, out.strip(), ["vault"])
    assert reviewed["authenticated"] is True
    assert reviewed["user"]["username"] == "system:serviceaccount:kube-system:default"
    assert (
        json.loads(kubetwist("token", "create", "default", "-o", "json", "--duration=10m", kubeconfig)[0])["spec"][
            "expirationSeconds"
        ]
        == 600
    )


def test_token_errors(rbac_server: SubprocessServer, tmp_path: Path) -> None:
    """Errors are one line: of the server, of the kubeconfig, of the connection."""
    kubeconfig = f"--kubeconfig={rbac_server.kubeconfig}"
    _, err = kubetwist("token", "create", "missing", kubeconfig, code=1)
    assert err == 'kubetwist token: serviceaccounts "missing" not found\n'
    _, err = kubetwist("token", "create", "default", f"--kubeconfig={tmp_path}/none", code=1)
    assert err == f"kubetwist token: cannot read {tmp_path}/none: No such file or directory\n"
    text = rbac_server.kubeconfig.read_text().replace(
        read_kubeconfig(rbac_server.kubeconfig).url, "https://127.0.0.1:1"
    )
    (rbac_server.kubeconfig.parent / "closed.kubeconfig").write_text(text)
    closed = rbac_server.kubeconfig.parent / "closed.kubeconfig"
    _, err = kubetwist("token", "create", "default", f"--kubeconfig={closed}", code=1)
    assert err.startswith("kubetwist token: ") and "connection refused" in err.lower() and err.count("\n") == 1


def test_token_of_user(rbac_server: SubprocessServer, tokens: Path) -> None:
    """A running server accepts a token that is added to its token file."""
    token = kubetwist("token", "user", "bob", "--group=dev", f"--file={tokens}")[0].strip()
    deadline = time.monotonic() + 60
    while True:
        status = review(rbac_server, token, [])
        if status.get("authenticated"):
            break
        assert time.monotonic() < deadline, status
        time.sleep(0.2)
    assert status["user"]["username"] == "bob"
    assert "dev" in status["user"]["groups"]


def test_why(rbac_server: SubprocessServer) -> None:
    """The command prints the explanation, and its exit code is the decision."""
    kubeconfig = f"--kubeconfig={rbac_server.kubeconfig}"
    out, _ = kubetwist("why", "list", "configmaps", "-n", "default", "--user=bob", kubeconfig, code=1)
    assert out.startswith('User "bob"') and "may not" in out and "To allow it:" in out
    out, _ = kubetwist("why", "get", "/version", "--user=bob", "-o", "json", kubeconfig)
    assert json.loads(out)["decidedBy"] == "RBAC"
    out, _ = kubetwist("why", "delete", "nodes", "n1", kubeconfig)
    assert "Allowed by" in out or "allow" in out
    _, err = kubetwist("why", "list", "pods", "--label-selector=a=(", kubeconfig, code=1)
    assert err.startswith("kubetwist why: ") and err.count("\n") == 1


def test_serve_backup_restore(tmp_path: Path) -> None:
    """C{kubetwist serve} serves, and its data directory can be backed up and restored by the other commands."""
    data = tmp_path / "kubetwist-data"
    with subprocess.Popen(
        [sys.executable, "-m", "kubetwist", "serve", "--secure-port=0", "--storage-backend=sqlite"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if "serving on" in line:
                    break
            out, _ = kubetwist("token", "create", "default", "-n", "kube-system", folder=tmp_path)
            assert out.count(".") == 2
            out, _ = kubetwist("backup", "--to=saved", folder=tmp_path)
            assert "objects as of revision" in out
        finally:
            process.terminate()
            process.stdout.read()
            assert process.wait(60) == 0
    out, _ = kubetwist("restore", "--from=saved", "--data-dir=other", "--bump_revision=1000", folder=tmp_path)
    assert out.splitlines()[-1].startswith("restored ")
    with SubprocessServer("--storage-backend=sqlite", data_dir=tmp_path / "other") as server:
        make(server, "after")
    assert data.exists()


def test_serve_failed(tmp_path: Path) -> None:
    """A failed start prints its reason as the last line, with the name of the command."""
    (tmp_path / "file").write_text("")
    _, err = kubetwist("serve", "--secure-port=0", f"--data-dir={tmp_path}/file", code=1)
    assert err.splitlines()[-1].startswith("kubetwist serve: ")
