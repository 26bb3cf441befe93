"""
The manifests are valid, without warnings, and their pods are admitted to a namespace with the strictest rules.

They are checked by this server, with kubectl where it exists, and by a client in Python.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetwist.cli.kubeapi import Options
from kubetwist.testing import SubprocessServer

from ..conftest import Kubectl
from .files import DEPLOY

VARIANTS = {"sqlite": 1, "etcd": 3}
#: All levels of the strictest rules: violations are errors, warnings, and in the audit log.
NAMESPACE = {
    "metadata": {
        "name": "kubetwist",
        "labels": {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")},
    }
}
#: The resources of the kinds in the manifests and in the chart.
PATHS = {
    "ServiceAccount": "/api/v1/namespaces/{}/serviceaccounts",
    "Service": "/api/v1/namespaces/{}/services",
    "Pod": "/api/v1/namespaces/{}/pods",
    "StatefulSet": "/apis/apps/v1/namespaces/{}/statefulsets",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
}
#: Seconds that controllers have on a busy machine.
TIMEOUT = 60.0


@pytest.fixture(scope="module")
def controlled() -> Iterator[SubprocessServer]:
    """A server with all controllers, as of a cluster."""
    with SubprocessServer("--controllers=*,+workloads") as server:
        yield server


@contextmanager
def strict_namespace(server: SubprocessServer) -> Iterator[str]:
    """Create the namespace, and delete it with all objects."""
    name = NAMESPACE["metadata"]["name"]
    deadline = time.monotonic() + TIMEOUT
    # The one of the test before may be terminating.
    while server.request("POST", "/api/v1/namespaces", NAMESPACE)[0] != 201:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    try:
        yield str(name)
    finally:
        server.request("DELETE", f"/api/v1/namespaces/{name}")


def send(server: SubprocessServer, path: str, manifest: Any) -> tuple[int, Any, list[str]]:
    """
    Create an object, with strict field validation.

    @return: The status, the answer and the warnings.
    """
    connection = server.connection
    client = http.client.HTTPSConnection("127.0.0.1", connection.port, context=connection.ssl_context(), timeout=60)
    headers = {"Authorization": f"Bearer {connection.token}", "Content-Type": "application/json"}
    client.request("POST", path, json.dumps(manifest), headers)
    response = client.getresponse()
    answer = json.loads(response.read())
    warnings = response.headers.get_all("Warning") or []
    client.close()
    return response.status, answer, warnings


def check_manifests(server: SubprocessServer, manifests: list[Any], pods: int) -> None:
    """Check manifests by a dry run, create them, and wait for all pods; there are no warnings."""
    with strict_namespace(server) as namespace:
        for query in ("?fieldValidation=Strict&dryRun=All", "?fieldValidation=Strict"):
            for manifest in manifests:
                path = PATHS[manifest["kind"]].format(namespace)
                code, answer, warnings = send(server, path + query, manifest)
                assert (code, warnings) == (201, []), answer
        wait_for_pods(server, namespace, pods)


def wait_for_pods(server: SubprocessServer, namespace: str, count: int) -> None:
    """Wait until the controllers have created all pods."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        _, listed = server.request("GET", f"/api/v1/namespaces/{namespace}/pods")
        if len(listed["items"]) == count:
            return
        assert time.monotonic() < deadline, server.request("GET", f"/api/v1/namespaces/{namespace}/events")
        time.sleep(0.1)


def load_kustomization(folder: Path) -> list[Any]:
    """Return the objects of a folder whose kustomization only names files and folders."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    assert set(kustomization) == {"apiVersion", "kind", "resources"}, "other features need kustomize"
    loaded = []
    for name in kustomization["resources"]:
        path = folder / name
        loaded += load_kustomization(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    return loaded


def server_flags(manifests: list[Any]) -> list[str]:
    """Return the flags of the server in manifests, with the variables that the kubelet sets."""
    (workload,) = [one for one in manifests if one["kind"] in ("Deployment", "StatefulSet")]
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    values = {"POD_IP": "10.1.2.3", "POD_NAMESPACE": "kubetwist"}
    assert {one["name"] for one in container["env"]} == set(values)
    flags: list[str] = container["args"]
    for name, value in values.items():
        flags = [flag.replace(f"$({name})", value) for flag in flags]
    return flags


@pytest.mark.parametrize("variant", VARIANTS)
def test_flags(variant: str) -> None:
    """The flags are valid for the parser of the server."""
    flags = server_flags(load_kustomization(DEPLOY / "manifests" / variant))
    options = Options()
    options.parseOptions(flags)
    assert options["advertise-address"] == "10.1.2.3"
    assert options["external-hostname"] == "kubetwist.kubetwist.svc"


@pytest.mark.parametrize("variant", VARIANTS)
def test_manifests(controlled: SubprocessServer, variant: str) -> None:
    """The manifests are admitted without warnings, and so are the pods that controllers create."""
    check_manifests(controlled, load_kustomization(DEPLOY / "manifests" / variant), VARIANTS[variant])


@pytest.mark.kubectl
@pytest.mark.parametrize("variant", VARIANTS)
def test_kubectl(controlled: SubprocessServer, tmp_path: Path, variant: str) -> None:
    """kubectl applies the manifests by a dry run at the server, and without it, and prints no warnings."""
    folder = str(DEPLOY / "manifests" / variant)
    with strict_namespace(controlled) as namespace:
        kubectl = Kubectl(controlled.kubeconfig, namespace, tmp_path)
        for flags in (["--dry-run=server"], []):
            done = kubectl.run("apply", *flags, "--validate=strict", "-k", folder)
            assert (done.returncode, done.stderr) == (0, ""), done.stderr
            assert len(done.stdout.splitlines()) == len(load_kustomization(Path(folder)))
        wait_for_pods(controlled, namespace, VARIANTS[variant])
