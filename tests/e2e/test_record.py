"""Tests for recording a cluster, here another server, and for replaying it, in projects as users have them."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kubetwist.testing import SubprocessServer
from kubetwist.testing._loading import load_objects

from .conftest import KUBECTL

_PYTEST = """
import importlib.metadata, sys
import pytest
found = importlib.metadata.entry_points(group="pytest11", name="kubetwist")
sys.exit(pytest.main([*sys.argv[1:], *([] if found else ["-p", "kubetwist.testing.pytest_plugin"])]))
"""
PAGE = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[2] / "docs") / "testing-record.md"
TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJzb21lYm9keSJ9.bm8tc2lnbmF0dXJl"

#: What the cluster has before the tests.
OBJECTS = f"""
apiVersion: v1
kind: Namespace
metadata: {{name: shop}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.example.com}}
spec:
  group: example.com
  names: {{kind: Widget, plural: widgets}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
---
apiVersion: example.com/v1
kind: Widget
metadata: {{name: red, namespace: shop}}
spec: {{size: 3}}
status: {{ready: true}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: robot, namespace: shop}}
---
apiVersion: v1
kind: Secret
metadata: {{name: credentials, namespace: shop}}
stringData: {{password: hunter2}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: shop}}
data: {{level: debug, login: "token {TOKEN}"}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop}}
spec:
  serviceAccountName: robot
  containers: [{{name: main, image: nginx}}]
status: {{phase: Running}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{ports: [{{port: 80}}], selector: {{app: web}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {{name: never}}
webhooks:
- name: never.example.com
  clientConfig: {{url: "https://127.0.0.1:1/"}}
  rules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [endpoints]}}]
  sideEffects: None
  admissionReviewVersions: [v1]
"""

TESTS = """
import json, os, subprocess
import pytest

SHOP = "/api/v1/namespaces/shop"
WIDGETS = "/apis/example.com/v1/namespaces/shop/widgets"
PATCH = {"content_type": "application/merge-patch+json"}


def test_reads(recorded_cluster):
    assert os.environ["KUBECONFIG"] == str(recorded_cluster.kubeconfig)
    code, widgets = recorded_cluster.request("GET", WIDGETS)
    assert [one["metadata"]["name"] for one in widgets["items"]] == ["red"]
    assert widgets["items"][0]["status"] == {"ready": True}
    assert recorded_cluster.request("GET", f"{SHOP}/pods/web")[1]["status"]["phase"] == "Running"
    code, service = recorded_cluster.request("GET", f"{SHOP}/services/web")
    assert service["spec"]["clusterIP"]
    assert "password" in recorded_cluster.request("GET", f"{SHOP}/secrets/credentials")[1]["data"]
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    assert recorded_cluster.request("GET", path)[0] == 200


def test_writes(recorded_cluster):
    # Not read before it is changed.
    settings = f"{SHOP}/configmaps/settings"
    code, changed = recorded_cluster.request("PATCH", settings, {"data": {"level": "info"}}, **PATCH)
    assert (code, changed["data"]["level"]) == (200, "info")
    assert recorded_cluster.request("POST", f"{SHOP}/configmaps", {"metadata": {"name": "settings"}})[0] == 409
    assert recorded_cluster.request("POST", f"{SHOP}/configmaps", {"metadata": {"name": "new"}})[0] == 201
    code, listed = recorded_cluster.request("GET", f"{SHOP}/configmaps")
    assert {"new", "settings"} <= {one["metadata"]["name"] for one in listed["items"]}
    assert recorded_cluster.request("DELETE", f"{SHOP}/configmaps/new")[0] == 200
    assert recorded_cluster.request("DELETE", WIDGETS + "/red")[0] == 200
    assert recorded_cluster.request("GET", WIDGETS + "/red")[0] == 404
    assert recorded_cluster.request("POST", WIDGETS, {
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "red"}, "spec": {"size": 3},
    })[0] == 201
    assert recorded_cluster.request("PATCH", WIDGETS + "/red/status", {"status": {"ready": True}}, **PATCH)[0] == 200
    assert recorded_cluster.request("PATCH", settings, {"data": {"level": "debug"}}, **PATCH)[0] == 200
"""
KUBECTL_TEST = """
def test_kubectl(recorded_cluster):
    def kubectl(*arguments):
        done = subprocess.run([os.environ["TEST_KUBECTL"], "-n", "shop", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "web" in kubectl("get", "services", "--no-headers")
    assert "deleted" in kubectl("delete", "pod", "web", "--now", "--wait=false", "--dry-run=server")
    assert "labeled" in kubectl("label", "configmap", "settings", "tier=front")
    assert "unlabeled" in kubectl("label", "configmap", "settings", "tier-")
"""


def run(folder: Path, *arguments: str, failed: bool = False) -> str:
    """Run pytest in C{folder}, outside of the project; return the output."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    environment.pop("KUBECONFIG", None)
    environment |= {"TEST_KUBECTL": str(KUBECTL), "HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", _PYTEST, "-q", "-p", "no:cacheprovider", "-p", "no:twisted", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert bool(done.returncode) is failed, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The folder of a project."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nkubetwist_record = cassette.yaml\naddopts = --strict-markers\n")
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


@pytest.fixture(scope="module")
def cluster() -> Iterator[SubprocessServer]:
    """A cluster, whose addresses another server would refuse."""
    with SubprocessServer("--service-cluster-ip-range=10.96.0.0/16") as server:
        load_objects(server.connection, OBJECTS)
        yield server


def exec_kubeconfig(folder: Path, server: SubprocessServer) -> Path:
    """Write a kubeconfig with two contexts, in which a command returns the token."""
    login = folder / "login"
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
    credential["status"] = {"token": server.token}  # type: ignore[assignment] # JSON
    login.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(credential)}\nEND\n")
    login.chmod(stat.S_IRWXU)
    config = yaml.safe_load(server.kubeconfig.read_text())
    command = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./login", "interactiveMode": "Never"}
    config["users"] = [{"name": "robot", "user": {"exec": command}}]
    config["contexts"] = [{"name": "shop", "context": {**config["contexts"][0]["context"], "user": "robot"}}]
    config["current-context"] = "none"
    path = folder / "exec.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


def test_record_and_replay(project: Path, cluster: SubprocessServer) -> None:
    """Tests pass against the cluster, and then with what was recorded; the cassette has no secrets."""
    if KUBECTL:
        with (project / "test_shop.py").open("a") as file:
            file.write(KUBECTL_TEST)
    tests = 3 if KUBECTL else 2
    kubeconfig = exec_kubeconfig(project, cluster)
    options = f"--kubetwist-kubeconfig={kubeconfig}", "--kubetwist-context=shop"
    assert "there is no cassette.yaml" in run(project, failed=True)
    output = run(project, "--kubetwist-record=once", *options)
    assert f"{tests} passed" in output
    assert "kubetwist: cassette.yaml: 8 objects recorded" in output
    assert "lacks admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration never" in output
    text = (project / "cassette.yaml").read_text()
    for hidden in ("hunter2", "aHVudGVyMg", TOKEN, cluster.token, "10.96."):
        assert hidden not in text
    document = yaml.safe_load(text)
    assert document["writes"][0] == "PATCH /api/v1/namespaces/shop/configmaps/settings: 200"
    names = [(one["kind"], one["metadata"]["name"]) for one in document["items"]]
    assert names == [
        ("Namespace", "shop"),
        ("CustomResourceDefinition", "widgets.example.com"),
        ("ConfigMap", "settings"),
        ("Pod", "web"),
        ("Secret", "credentials"),
        ("Service", "web"),
        ("ServiceAccount", "robot"),
        ("Widget", "red"),
    ]
    (kubeconfig).unlink()
    assert f"{tests} passed" in run(project)
    # An existing cassette is used, and the cluster is not needed.
    assert f"{tests} passed" in run(project, "--kubetwist-record=once", *options)
    assert (project / "cassette.yaml").read_text() == text
    assert "the cluster cannot be recorded: no kubeconfig" in run(
        project, "--kubetwist-record=all", *options, failed=True
    )


def test_same_cassette(project: Path, cluster: SubprocessServer) -> None:
    """Recording again gives the same cassette; a failed test leaves the cassette as it was."""
    options = f"--kubetwist-kubeconfig={cluster.kubeconfig}", "--kubetwist-record=all"
    run(project, *options)
    text = (project / "cassette.yaml").read_text()
    run(project, *options)
    assert (project / "cassette.yaml").read_text() == text
    with (project / "test_shop.py").open("a") as file:
        file.write("\n\ndef test_failed(recorded_cluster):\n    assert not recorded_cluster.url\n")
    assert "cassette.yaml was not written" in run(project, *options, failed=True)
    assert (project / "cassette.yaml").read_text() == text


def test_hooks_and_markers(project: Path, cluster: SubprocessServer) -> None:
    """Own rules mask and omit objects; a marker names another cassette, with the module and the test."""
    (project / "conftest.py").write_text(
        """
def pytest_kubetwist_mask(obj):
    if obj["kind"] == "Namespace":
        obj["metadata"]["labels"]["masked"] = "yes"
    return obj["metadata"]["name"] != "settings"
"""
    )
    (project / "test_shop.py").write_text(
        """
import pytest


@pytest.mark.kubetwist_record("cassettes/{module}-{test}.yaml")
@pytest.mark.parametrize("name", ["a b"])
def test_list(recorded_cluster, name):
    assert recorded_cluster.request("GET", "/api/v1/namespaces/shop/configmaps")[0] == 200
"""
    )
    run(project, f"--kubetwist-kubeconfig={cluster.kubeconfig}", "--kubetwist-record=once")
    document = yaml.safe_load((project / "cassettes" / "test_shop-test_list-a-b.yaml").read_text())
    assert [one["metadata"]["name"] for one in document["items"]] == ["shop"]
    assert document["items"][0]["metadata"]["labels"]["masked"] == "yes"


def test_limit(project: Path, cluster: SubprocessServer) -> None:
    """More objects than the limit are an error, and there is no cassette."""
    with (project / "pytest.ini").open("a") as ini:
        ini.write("kubetwist_record_limit = 1\n")
    (project / "test_shop.py").write_text(
        """
def test_list(recorded_cluster):
    for number in range(2):
        path = f"/api/v1/namespaces/shop/configmaps/large-{number}"
        assert recorded_cluster.request("GET", path)[0] == 200
"""
    )
    for number in range(2):
        body = {"metadata": {"name": f"large-{number}"}, "data": {"k": "x" * 600_000}}
        assert cluster.request("POST", "/api/v1/namespaces/shop/configmaps", body)[0] == 201
    try:
        output = run(project, f"--kubetwist-kubeconfig={cluster.kubeconfig}", "--kubetwist-record=once", failed=True)
    finally:
        for number in range(2):
            cluster.request("DELETE", f"/api/v1/namespaces/shop/configmaps/large-{number}")
    assert "the recorded objects exceed 1 MiB at v1 ConfigMap shop/large-1" in output
    assert not (project / "cassette.yaml").exists()


def test_page(tmp_path: Path, cluster: SubprocessServer) -> None:
    """The commands and files of the page work."""
    blocks = re.findall(r"```(?:python|ini)\n# (\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert [name for name, _ in blocks] == ["pytest.ini", "test_shop.py", "test_marker.py", "conftest.py"]
    for name, text in blocks:
        (tmp_path / name).write_text(text)
    commands = re.findall(r"^pytest(.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert len(commands) == 2
    path = "/api/v1/namespaces/kube-system/configmaps"
    for name, labels in (("shop", {}), ("other", {"private": "yes"})):
        body = {"metadata": {"name": name, "labels": labels}, "data": {"license": "secret", "k": "v"}}
        assert cluster.request("POST", path, body)[0] == 201
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["contexts"][0]["name"] = "staging"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(config))
    run(tmp_path, *commands[0].split(), f"--kubetwist-kubeconfig={tmp_path / 'kubeconfig'}")
    run(tmp_path, *commands[1].split())
    document = yaml.safe_load((tmp_path / "cassette.yaml").read_text())
    found = {one["metadata"]["name"]: one.get("data") for one in document["items"] if one["kind"] == "ConfigMap"}
    assert found["shop"] == {"k": "v"}
    assert "other" not in found
    assert (tmp_path / "cassettes" / "test_marker-test_nodes.yaml").exists()
