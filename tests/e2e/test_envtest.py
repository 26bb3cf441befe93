"""Tests for the programs of C{twist kubeapi-envtest}, started and stopped as test frameworks do it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubetwist.cli.kubeapi import Options
from kubetwist.testing._httpsthread import HTTPSThread
from kubetwist.testing.etcd import etcd_skip_reason, find_etcd

from .controlplane import ControlPlane, Program, free_port

DOCS = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[2] / "docs")
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: baboons.bar.example.com}
spec:
  group: bar.example.com
  names: {kind: Baboon, plural: baboons, singular: baboon, listKind: BaboonList}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
CONFIG_MAP = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}})


def write_assets(folder: Path, *flags: str) -> Path:
    """Run the command; return the directory that it prints."""
    command = [sys.executable, "-m", "twisted", "kubeapi-envtest", str(folder), *flags]
    return Path(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory for $KUBEBUILDER_ASSETS."""
    return write_assets(tmp_path_factory.mktemp("assets") / "bin dir")


@pytest.fixture(scope="module")
def plane(assets: Path) -> Iterator[ControlPlane]:
    """A control plane that several tests use."""
    with ControlPlane(assets) as plane:
        yield plane


def eventually(check: Callable[[], Any], timeout: float = 30.0) -> Any:
    """Poll as envtest does, until the result is true; return it."""
    deadline = time.monotonic() + timeout
    while not (result := check()):
        assert time.monotonic() < deadline, "no result in time"
        time.sleep(0.05)
    return result


def test_programs(assets: Path) -> None:
    """The flags that envtest asks the help for, and the versions, are as for the real programs."""
    etcd, server = Program(assets / "etcd"), Program(assets / "kube-apiserver")
    assert etcd.has_flag("unsafe-no-fsync") and not etcd.has_flag("insecure-port")
    assert server.has_flag("etcd-servers") and not server.has_flag("insecure-port")

    def version(program: Program) -> str:
        return subprocess.run([program.path, "--version"], check=True, capture_output=True, text=True).stdout

    assert version(server).startswith("Kubernetes v1.36.")
    assert version(etcd).startswith("etcd Version: 3.")


@pytest.mark.kubectl
def test_users(plane: ControlPlane) -> None:
    """Users of the client authority that envtest makes are authenticated; the groups of the admin allow everything."""
    shown = plane.kubectl("get", "namespace", "default", "-o", "name")
    assert (shown.stdout, shown.stderr) == ("namespace/default\n", "")
    refused = plane.kubectl("get", "namespaces", user="alice")
    assert 'User "alice" cannot list resource "namespaces"' in refused.stderr
    # The keys of service accounts are those that envtest wrote.
    assert plane.kubectl("create", "token", "default").stdout.count(".") == 2


@pytest.mark.kubectl
def test_resources(plane: ControlPlane) -> None:
    """A definition is served soon after its creation, and namespaces are removed with their contents."""
    assert plane.kubectl("create", "-f", "-", stdin=CRD).returncode == 0
    served = "/apis/bar.example.com/v1beta1"
    eventually(lambda: "baboons" in plane.kubectl("get", "--raw", served).stdout)
    assert plane.kubectl("create", "namespace", "deleted").returncode == 0
    assert plane.kubectl("create", "-n", "deleted", "-f", "-", stdin=CONFIG_MAP).returncode == 0
    assert plane.kubectl("delete", "namespace", "deleted", "--timeout=30s").returncode == 0


@pytest.mark.kubectl
def test_webhook(plane: ControlPlane, webhook: HTTPSThread) -> None:
    """The URLs that envtest makes of services have two slashes before the path, which the server makes one."""
    client_config = {"url": f"{webhook.url}//deny", "caBundle": b64encode(webhook.ca).decode()}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}
    one = {"name": "deny.example.com", "clientConfig": client_config, "rules": [rule], "sideEffects": "None"}
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "deny"},
        "webhooks": [{**one, "admissionReviewVersions": ["v1"]}],
    }
    assert plane.kubectl("create", "-f", "-", stdin=json.dumps(body)).returncode == 0
    try:
        refused = plane.kubectl("create", "secret", "generic", "mine")
    finally:
        plane.kubectl("delete", "validatingwebhookconfiguration", "deny")
    assert 'admission webhook "deny.example.com" denied the request: not today' in refused.stderr


@pytest.fixture
def webhook() -> Iterator[HTTPSThread]:
    """A webhook that denies what is sent to C{/deny}, as the manager of a suite serves it."""

    def deny(path: str, body: Any) -> tuple[int, Any]:
        response = {"uid": body["request"]["uid"], "allowed": False, "status": {"message": "not today"}}
        code = 200 if path == "/deny" else 404
        return code, {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

    server = HTTPSThread(deny).start()
    yield server
    server.stop()


@pytest.mark.kubectl
def test_restart(assets: Path) -> None:
    """Objects are in etcd, not in the API server: they are there after its restart, and after a kill."""
    with ControlPlane(assets) as plane:
        assert plane.kubectl("create", "-f", "-", stdin=CONFIG_MAP).returncode == 0
        assert plane.api_server.stop() == 0
        plane.start_api_server()
        assert plane.kubectl("get", "configmap", "mine").returncode == 0
        plane.api_server.kill()
        plane.start_api_server()
        assert plane.kubectl("get", "configmap", "mine").returncode == 0


@pytest.mark.kubectl
def test_parallel(assets: Path) -> None:
    """Control planes of several test packages run at the same time, and share no objects."""

    def suite(name: str) -> str:
        with ControlPlane(assets) as plane:
            assert plane.kubectl("create", "namespace", name).returncode == 0
            names = plane.kubectl("get", "namespaces", "-o", "name").stdout
            # A watch is open when the control plane stops.
            watching = subprocess.Popen(
                [assets / "kubectl", f"--kubeconfig={plane.kubeconfig()}", "get", "namespaces", "-w", "-o", "name"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert watching.stdout is not None and watching.stdout.readline()
            assert plane.stop() == (0, 0)
            watching.kill()
            watching.communicate()
            assert not any(folder.exists() for folder in plane.folders)
            return names

    names = ["one", "two", "three"]
    with ThreadPoolExecutor() as pool:
        for name, found in zip(names, pool.map(suite, names), strict=True):
            assert f"namespace/{name}\n" in found
            assert not any(f"namespace/{other}\n" in found for other in names if other != name)


@pytest.mark.kubectl
def test_flags(tmp_path: Path) -> None:
    """The directory has the release and the controllers; a suite overrides them by its flags."""
    assets = write_assets(tmp_path / "a", "--kubernetes-version=1.33", "--controllers=")
    with ControlPlane(assets) as plane:
        assert '"minor": "33"' in plane.kubectl("get", "--raw", "/version").stdout
        assert plane.kubectl("create", "namespace", "stays").returncode == 0
        assert plane.kubectl("delete", "namespace", "stays", "--wait=false").returncode == 0
        assert plane.kubectl("get", "namespace", "stays").stdout.split()[4] == "Terminating"
        assert plane.kubectl("get", "serviceaccounts").stdout == ""
    with ControlPlane(assets, flags={"kubernetes-version": "1.35", "controllers": "namespace-controller"}) as plane:
        assert '"minor": "35"' in plane.kubectl("get", "--raw", "/version").stdout
        assert plane.kubectl("create", "namespace", "goes").returncode == 0
        assert plane.kubectl("delete", "namespace", "goes", "--timeout=30s").returncode == 0


@pytest.mark.kubectl
@pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason())
def test_real_etcd(assets: Path) -> None:
    """With TEST_ASSET_ETCD the objects are in a real etcd."""
    with ControlPlane(assets, etcd=Path(find_etcd())) as plane:
        assert plane.kubectl("create", "-f", "-", stdin=CONFIG_MAP).returncode == 0
        etcd_data = next(folder for folder in plane.folders if (folder / "member").is_dir())
        assert not (etcd_data / "kubetwist").exists()
        assert not list(plane.cert_dir.rglob("store.sqlite"))


def test_kubectl_missing(assets: Path) -> None:
    """kubectl is the one on PATH; without one, there is an error."""
    done = subprocess.run([assets / "kubectl", "version"], capture_output=True, text=True, env={"PATH": str(assets)})
    assert done.returncode == 127
    assert "kubectl: not found on $PATH" in done.stderr


def test_refused(assets: Path, tmp_path: Path) -> None:
    """Wrong command lines end at once, with one line and another exit code than 0."""
    done = subprocess.run([assets / "kube-apiserver", "--secure-port=0"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "kube-apiserver: --etcd-servers must be specified; see kube-apiserver --help\n",
    )
    done = subprocess.run([assets / "kube-apiserver", "--insecure-port=0"], capture_output=True, text=True)
    assert done.returncode == 1 and "unknown flag: --insecure-port" in done.stderr
    done = subprocess.run([assets / "etcd", "--listen-client-urls=https://localhost:1"], capture_output=True, text=True)
    assert done.returncode == 2 and "want http://HOST:PORT" in done.stderr
    (tmp_path / "etcd").write_bytes(b"\x7fELF\n\n")
    command = [sys.executable, "-m", "twisted", "kubeapi-envtest", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "was not written by this command" in done.stderr
    assert (tmp_path / "etcd").read_bytes() == b"\x7fELF\n\n"


@pytest.mark.kubectl
def test_fabric8(assets: Path, tmp_path: Path) -> None:
    """The command lines of fabric8's kube-api-test: self-signed RSA certificates in a directory of several servers."""
    names = [x509.DNSName("kubernetes"), x509.IPAddress(ip_address("127.0.0.1"))]
    _write_pair(tmp_path / "apiserver", "CN=example.org", x509.SubjectAlternativeName(names))
    _write_pair(tmp_path / "client", "CN=kubeapitest,O=system:masters")
    etcd, server = Program(assets / "etcd"), Program(assets / "kube-apiserver")
    data, wal = tmp_path / "etcddata", tmp_path / "etcdwal"
    port, peers, secure = free_port(), free_port(), free_port()
    arguments = [
        *("-data-dir", str(data), "-wal-dir", str(wal)),
        *("--listen-client-urls", f"http://0.0.0.0:{port}", "--advertise-client-urls", f"http://0.0.0.0:{port}"),
        *("--initial-cluster", f"default=http://localhost:{peers}"),
        *("--initial-advertise-peer-urls", f"http://localhost:{peers}"),
        *("--listen-peer-urls", f"http://localhost:{peers}"),
    ]
    key = f"{tmp_path}/apiserver.key"
    try:
        etcd.start(arguments, f"http://127.0.0.1:{port}/health")
        arguments = [
            *("--cert-dir", str(tmp_path), "--secure-port", str(secure), "--etcd-servers", f"http://0.0.0.0:{port}"),
            *("--authorization-mode", "RBAC", "--service-account-issuer", "https://localhost"),
            *("--service-account-signing-key-file", key, "--service-account-signing-key-file", key),
            *("--service-account-key-file", key, "--service-account-issuer", f"{tmp_path}/apiserver.crt"),
            *("--disable-admission-plugins", "ServiceAccount", "--client-ca-file", f"{tmp_path}/client.crt"),
            *("--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged"),
        ]
        server.start(arguments, f"https://127.0.0.1:{secure}/readyz")
        command = [
            *(assets / "kubectl", f"--client-certificate={tmp_path}/client.crt", f"--client-key={tmp_path}/client.key"),
            *(f"--certificate-authority={tmp_path}/apiserver.crt", f"--server=https://127.0.0.1:{secure}"),
            *("--request-timeout=5s", "get", "ns", "default"),
        ]
        environment = os.environ | {"KUBECONFIG": f"{tmp_path}/.kubeconfig"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert (data / "kubetwist" / "store.sqlite").exists()
    finally:
        # It does not stop them gracefully.
        server.kill()
        etcd.kill()
    shutil.rmtree(data)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{one}.{end}" for one in ("apiserver", "client") for end in ("crt", "key")
    }


def _write_pair(path: Path, name: str, *extensions: x509.ExtensionType) -> None:
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name.from_rfc4514_string(name)
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(int(now.timestamp() * 1000))
        .not_valid_before(now - timedelta(seconds=5))
        .not_valid_after(now + timedelta(days=365))
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    path.with_suffix(".crt").write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    path.with_suffix(".key").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )


#: `go` and `twist` for the commands of the page: a suite is what the programs of the directory are needed for.
FAKE_GO = """#!/bin/sh
"$KUBEBUILDER_ASSETS/kube-apiserver" --version && "$KUBEBUILDER_ASSETS/etcd" --version && echo "$0 $@"
"""
TWIST = """#!/bin/sh
exec '{python}' -m twisted "$@"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Callable[..., str]:
    """Run a command in a project, with C{twist}, and a C{go} that shows the assets; return its output."""
    (tmp_path / "bin").mkdir()
    for name, content in (("go", FAKE_GO), ("twist", TWIST.format(python=sys.executable))):
        (tmp_path / "bin" / name).write_text(content)
        (tmp_path / "bin" / name).chmod(0o755)

    def run(*command: str, **environment: str) -> str:
        path = f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"
        base = {name: value for name, value in os.environ.items() if name != "KUBEBUILDER_ASSETS"}
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=base | {"PATH": path, "HOME": str(tmp_path)} | environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def blocks(language: str) -> list[str]:
    """Return the blocks of the page."""
    page = (DOCS / "from-envtest.md").read_text("utf-8")
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_page_commands(shell: Callable[..., str], tmp_path: Path) -> None:
    """The commands of the page work."""
    suite, java = blocks("sh")
    output = shell("bash", "-euo", "pipefail", "-c", suite)
    assert "Kubernetes v1.36." in output and output.endswith("/go test ./...\n")
    shell("bash", "-euo", "pipefail", "-c", java)
    folder = tmp_path / ".kubeapitest" / "k8s" / "1.36.2-linux-amd64"
    assert sorted(path.name for path in folder.iterdir()) == ["etcd", "kube-apiserver", "kubectl"]


def test_page_makefile(shell: Callable[..., str], tmp_path: Path) -> None:
    """The target of the page works in a Makefile with the other targets of kubebuilder."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    (makefile,) = blocks("makefile")
    rest = "manifests generate fmt vet:\n"
    (tmp_path / "Makefile").write_text(f"LOCALBIN = $(shell pwd)/bin\n{makefile}\n{rest}")
    output = shell("make", "test")
    assert "Kubernetes v1.36." in output and "go test ./... -coverprofile cover.out" in output
    assert (tmp_path / "bin" / "kubetwist" / "kubectl").exists()


def test_page_workflow(shell: Callable[..., str], tmp_path: Path) -> None:
    """The steps of the page pass the directory to the tests; the steps that install are not run."""
    (text,) = blocks("yaml")
    steps = [step["run"] for step in yaml.safe_load(text)["steps"] if "run" in step]
    assert steps[0] == "pip install kubetwist"
    variables = {"GITHUB_ENV": f"{tmp_path}/github-env", "RUNNER_TEMP": f"{tmp_path}/temp"}
    shell("bash", "-e", "-c", steps[1], **variables)
    name, _, value = (tmp_path / "github-env").read_text().strip().partition("=")
    assert "Kubernetes v1.36." in shell("bash", "-e", "-c", steps[2], **{name: value})


def test_page_flags() -> None:
    """The flags that the page sets in Go exist."""
    page = (DOCS / "from-envtest.md").read_text("utf-8")
    names = re.findall(r'Set\("([a-z-]+)", "([^"]*)"\)', page)
    assert [name for name, _ in names] == ["kubernetes-version", "controllers", "fake-nodes"]
    Options().read([f"--{name}={value}" for name, value in names])


def test_ends_with_signal(assets: Path, tmp_path: Path) -> None:
    """The stand-in for etcd ends with code 0 on both signals, and reports a port that is in use."""
    for number in (signal.SIGTERM, signal.SIGINT):
        etcd = Program(assets / "etcd")
        url = f"http://127.0.0.1:{free_port()}"
        etcd.start([f"--listen-client-urls={url}", f"--data-dir={tmp_path}"], f"{url}/health")
        other = subprocess.run(
            [assets / "etcd", f"--listen-client-urls={url}", f"--data-dir={tmp_path}"], capture_output=True, text=True
        )
        assert other.returncode == 1
        assert other.stderr == f"etcd: cannot use {url}: Address already in use\n"
        assert etcd._process is not None
        etcd._process.send_signal(number)
        assert etcd._process.wait(20) == 0
        etcd.kill()
