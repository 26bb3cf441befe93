"""The commands of the page about the deployment, against this server."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer

from ..conftest import KUBECTL
from .commands import block
from .files import PROJECT
from .test_manifests import NAMESPACE, load_kustomization, server_flags

PAGE = "deployment.md"


def run(folder: Path, script: str, *commands: str, **environment: str) -> str:
    """
    Run a script in a folder with C{deploy/} and the tested C{kubetwist}; return its output.

    @param commands: Lines before the script.
    @param environment: Variables beside the inherited ones.
    """
    programs = {"kubetwist": f'exec "{sys.executable}" -m kubetwist "$@"', "kubectl": f'exec "{KUBECTL}" "$@"'}
    (folder / "bin").mkdir(exist_ok=True)
    for name, line in programs.items():
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    if not (folder / "deploy").exists():
        (folder / "deploy").symlink_to(PROJECT / "deploy")
    path = f"{folder / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    python_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join([*commands, script])],
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTHONPATH": python_path, "HOME": str(folder)} | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Warning" not in done.stderr
    return done.stdout


def make_keys(folder: Path) -> None:
    """Create the keys as on the page."""
    assert run(folder, block(PAGE, "kubetwist serve", {})).endswith("ok\n")


def test_keys(tmp_path: Path) -> None:
    """A server starts with a copy of the keys, as the init container makes it, and issues its certificates."""
    make_keys(tmp_path)
    manifests: list[Any] = load_kustomization(PROJECT / "deploy" / "manifests" / "etcd")
    (deployment,) = [one for one in manifests if one["kind"] == "Deployment"]
    (copy,) = deployment["spec"]["template"]["spec"]["initContainers"][0]["args"]
    (tmp_path / "secret").mkdir()
    for name in ("kubetwist.json", *(f"pki/{one}" for one in ("ca.crt", "ca.key", "sa.key", "sa.pub"))):
        (tmp_path / "secret" / Path(name).name).symlink_to(tmp_path / "keys" / name)
    for name in ("front-proxy-ca.crt", "front-proxy-ca.key"):
        (tmp_path / "secret" / name).symlink_to(tmp_path / "keys" / "pki" / name)
    run(tmp_path, copy.replace("/keys/", "secret/").replace("/var/lib/kubetwist/", ""))
    assert server_flags(manifests)[0] == "--data-dir=/var/lib/kubetwist/data"
    with SubprocessServer("--in-memory", data_dir=tmp_path / "data") as server:
        assert server.request("GET", "/readyz") == (200, "ok")
    for name in ("ca.crt", "sa.key"):
        assert (tmp_path / "data" / "pki" / name).read_bytes() == (tmp_path / "keys" / "pki" / name).read_bytes()


@pytest.mark.kubectl
def test_kubectl(tmp_path: Path) -> None:
    """The commands for kubectl succeed in a restricted namespace."""
    make_keys(tmp_path)
    with SubprocessServer("--controllers=*,+workloads") as server:
        assert server.request("POST", "/api/v1/namespaces", NAMESPACE)[0] == 201
        environment = {"KUBECONFIG": str(server.kubeconfig)}
        prelude = "kubectl config set-context --current --namespace=kubetwist >/dev/null"
        applied = run(tmp_path, block(PAGE, "kubectl apply", {}), prelude, **environment)
        assert "statefulset.apps/kubetwist created" in applied
        files = "touch ca.crt tls.crt tls.key"
        applied = run(tmp_path, block(PAGE, "kubectl create secret", {}), files, **environment)
        assert "secret/kubetwist-keys created" in applied
        assert "deployment.apps/kubetwist created" in applied
