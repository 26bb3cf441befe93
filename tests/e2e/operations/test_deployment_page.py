"""The commands of the page about the deployment, against this server."""

from __future__ import annotations

import http.client
import os
import ssl
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import etcd_skip_reason

from ..conftest import KUBECTL
from .commands import block
from .files import PROJECT
from .test_manifests import NAMESPACE, load_kustomization, server_flags
from .tlsetcd import tls_etcd

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


def copy_keys(folder: Path, pod: Any, *data: str) -> None:
    """
    Run the init container of a pod, which copies the keys from the Secret.

    @param data: Where the server of each replica has its data directory, below C{folder}.
    """
    (copy,) = pod["initContainers"][0]["args"]
    (folder / "secret").mkdir()
    for name in ("kubetwist.json", *(f"pki/{one}" for one in ("ca.crt", "ca.key", "sa.key", "sa.pub"))):
        (folder / "secret" / Path(name).name).symlink_to(folder / "keys" / name)
    for name in ("front-proxy-ca.crt", "front-proxy-ca.key"):
        (folder / "secret" / name).symlink_to(folder / "keys" / "pki" / name)
    for one in data:
        run(folder, copy.replace("/keys/", "secret/").replace("/var/lib/kubetwist/data", one))


def probe(server: SubprocessServer, container: Any, name: str) -> int:
    """Return the status of a probe, as the kubelet requests it: without credentials, and without verification."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    settings = container[f"{name}Probe"]
    get = settings["httpGet"]
    (port,) = container["ports"]
    assert (get["scheme"], get["port"], port["containerPort"]) == ("HTTPS", port["name"], 6443)
    connection = http.client.HTTPSConnection(
        "127.0.0.1", server.connection.port, context=context, timeout=settings["timeoutSeconds"]
    )
    connection.request("GET", get["path"])
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")
def test_servers_over_etcd(tmp_path: Path) -> None:
    """
    Two servers with the keys and the flags of the manifests run over one etcd, with client certificates.

    The probes succeed, an object of one server is there at the other one, and so is a token. A server that is stopped
    fails its readiness probe, not its liveness probe, until its port is closed.
    """
    make_keys(tmp_path)
    manifests: list[Any] = load_kustomization(PROJECT / "deploy" / "manifests" / "etcd")
    (deployment,) = [one for one in manifests if one["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    copy_keys(tmp_path, pod, "data-0", "data-1")
    first, *flags = server_flags(manifests)
    assert first == "--data-dir=/var/lib/kubetwist/data"
    with tls_etcd(tmp_path / "etcd") as etcd, ExitStack() as stack:
        members = [flag for flag in flags if flag.startswith("--etcd-servers=")]
        replaced = {
            "--secure-port=6443": "--secure-port=0",
            "--advertise-address=10.1.2.3": "--advertise-address=127.0.0.1",
            members[0]: f"--etcd-servers={','.join(etcd.urls)}",
        }
        assert replaced.keys() < set(flags)
        mapped = [replaced.get(flag, flag).replace("/etcd-client", str(etcd.folder)) for flag in flags]
        servers = [
            stack.enter_context(SubprocessServer(*mapped, data_dir=tmp_path / data, timeout=120))
            for data in ("data-0", "data-1")
        ]
        for server in servers:
            assert {probe(server, container, name) for name in ("startup", "liveness", "readiness")} == {200}
            assert server.request("GET", "/readyz") == (200, "ok")
        path = "/api/v1/namespaces/default/serviceaccounts"
        assert servers[0].request("POST", path, {"metadata": {"name": "robot"}})[0] == 201
        code, issued = servers[0].request("POST", f"{path}/robot/token", {"spec": {}})
        assert code == 201
        review = {"spec": {"token": issued["status"]["token"]}}
        code, reviewed = servers[1].request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
        assert (code, reviewed["status"].get("authenticated")) == (201, True)
        stopped = stack.enter_context(ThreadPoolExecutor()).submit(servers[0].stop)
        deadline = time.monotonic() + 60
        while (status := probe(servers[0], container, "readiness")) == 200:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert (status, probe(servers[0], container, "liveness")) == (500, 200)
        assert (stopped.result(), servers[1].stop()) == (0, 0)
        assert "Traceback" not in servers[0].output() + servers[1].output()
    for data in ("data-0", "data-1"):
        for name in ("ca.crt", "sa.key"):
            assert (tmp_path / data / "pki" / name).read_bytes() == (tmp_path / "keys" / "pki" / name).read_bytes()


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
