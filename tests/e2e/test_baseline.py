"""Tests for the baseline of C{kube_api} and for C{kube_namespace}, in separate pytest runs, as users run them."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kubetwist.testing import ChildKubeAPI, SubprocessServer
from kubetwist.testing.manifests import LoadError

from .pages import DOCS, run_pytest

PAGE = DOCS / "testing-baseline.md"
BLOCKS = re.findall(r"```(?:ini|yaml|python)\n# (\S+)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
CRD = next(text for name, text in BLOCKS if name.startswith("config/crd/"))
MODES = ["thread", "child", "process"]

OBJECTS = """
apiVersion: example.org/v1
kind: Greeting
metadata: {name: hello, namespace: team}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team}
spec: {containers: [{name: web, image: web}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: team}
"""


def write(folder: Path, files: dict[str, str]) -> None:
    """Write files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_page(tmp_path: Path) -> None:
    """The project on the page passes unchanged."""
    write(tmp_path, dict(BLOCKS))
    assert "4 passed" in run_pytest(tmp_path)


PROJECT = {
    "pytest.ini": "[pytest]\nkubetwist_load = crds 'objects/*.yaml'\n",
    "crds/crd.yaml": CRD,
    "objects/team.yaml": OBJECTS,
    "conftest.py": """
import pytest

prepared = []


@pytest.fixture(scope="session")
def kube_api_baseline():
    def prepare(server):
        prepared.append(server.request("GET", "/version")[1]["minor"])
        code, _ = server.request("POST", "/api/v1/namespaces/team/configmaps", {"metadata": {"name": "prepared"}})
        assert code == 201

    return prepare
""",
    "test_mine.py": """
import pytest
from conftest import prepared

TEAM = "/api/v1/namespaces/team"


def check(kube_api):
    for path in (
        "/apis/example.org/v1/namespaces/team/greetings/hello",
        f"{TEAM}/pods/web",
        f"{TEAM}/serviceaccounts/default",
        f"{TEAM}/configmaps/prepared",
        "/api/v1/namespaces/default/configmaps/further",
    ):
        assert kube_api.request("GET", path)[0] == 200, path
    assert len(prepared) == len(set(prepared))


def test_first(kube_api):
    check(kube_api)


@pytest.mark.kubernetes_version("1.33")
def test_other(kube_api):
    check(kube_api)


@pytest.mark.kubernetes_version("1.36")
def test_again(kube_api):
    check(kube_api)
""",
    "test_reset.py": """
import pytest
from test_mine import TEAM, check


@pytest.mark.parametrize("number", range(3))
def test_reset(kube_api_clean, number):
    check(kube_api_clean)
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/greetings.example.org"
    for path in (f"{TEAM}/configmaps/prepared", TEAM, definition):
        assert kube_api_clean.request("DELETE", path)[0] == 200
""",
    "further/further.json": json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "further"}}),
}


@pytest.mark.parametrize("mode", MODES)
def test_baseline(tmp_path: Path, mode: str) -> None:
    """Each server is loaded and prepared once, also with several releases; a reset returns to this state."""
    write(tmp_path, PROJECT)
    if mode == "process":
        (tmp_path / "test_reset.py").unlink()
    output = run_pytest(tmp_path, "-o", f"kubetwist_server={mode}", "--kubetwist-load=further")
    assert ("3 passed" if mode == "process" else "6 passed") in output


def test_workers(tmp_path: Path) -> None:
    """Each worker of pytest-xdist loads the baseline; options are relative to the current directory."""
    if importlib.util.find_spec("xdist") is None:
        pytest.skip("pytest-xdist is not installed")
    one_release = re.sub("@pytest.mark.kubernetes_version.*\n", "", PROJECT["test_mine.py"])
    write(tmp_path, {**PROJECT, "test_mine.py": one_release})
    (tmp_path / "here").mkdir()
    assert "6 passed" in run_pytest(tmp_path / "here", "--kubetwist-load=../further", "-n2", "..")


@pytest.mark.parametrize(
    ("load", "message"),
    [
        ("missing", "missing: No such file or directory"),
        ("https://example.org/crd.yaml", "https://example.org/crd.yaml: URLs are not loaded; download the file"),
        ("wrong.yaml", "wrong.yaml, document 2: ConfigMap Wrong: 422: "),
    ],
)
def test_errors(tmp_path: Path, load: str, message: str) -> None:
    """A test whose server cannot be loaded fails with the message of the load, without a traceback."""
    config_map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
    write(tmp_path, {"wrong.yaml": f"{config_map % 'right'}---\n{config_map % 'Wrong'}"})
    write(tmp_path, {"test_mine.py": "def test_mine(kube_api):\n    pass\n", "pytest.ini": "[pytest]\n"})
    output = run_pytest(tmp_path, f"--kubetwist-load={load}", failed=True)
    assert re.search(f"^(E +)?{re.escape(message)}", output, re.MULTILINE), output
    assert "Traceback" not in output and "During handling" not in output, output
    assert "pytest_plugin.py" not in output, output


def test_no_function(tmp_path: Path) -> None:
    """A kube_api_baseline that is no function is an error."""
    fixture = 'import pytest\n\n\n@pytest.fixture(scope="session")\ndef kube_api_baseline():\n    return 1\n'
    write(tmp_path, {"conftest.py": fixture, "test_mine.py": "def test_mine(kube_api):\n    pass\n"})
    assert "kube_api_baseline must return a function" in run_pytest(tmp_path, failed=True)


@pytest.mark.parametrize("kind", [ChildKubeAPI, SubprocessServer])
def test_servers(tmp_path: Path, kind: Any) -> None:
    """Servers load paths and objects; a server that cannot load does not start."""
    write(tmp_path, {"crds/crd.yaml": CRD, "team.yaml": OBJECTS})
    greeting = {"apiVersion": "example.org/v1", "kind": "Greeting", "metadata": {"name": "bye", "namespace": "team"}}
    path = "/apis/example.org/v1/namespaces/team/greetings"
    with kind(load=[greeting, str(tmp_path / "crds"), tmp_path / "team.yaml"]) as server:
        _, listed = server.request("GET", path)
        assert [one["metadata"]["name"] for one in listed["items"]] == ["bye", "hello"]
        (loaded,) = server.load([{**greeting, "metadata": {"name": "third", "namespace": "team"}}])
        assert loaded["metadata"]["uid"]
        if kind is SubprocessServer:
            server.stop()
            server.start()
            assert len(server.request("GET", path)[1]["items"]) == 3
        else:
            server.reset()
            assert len(server.request("GET", path)[1]["items"]) == 2
    server = kind(load=[tmp_path / "missing.yaml"])
    with pytest.raises(LoadError, match=r"missing\.yaml: No such file"):
        server.__enter__()


@pytest.mark.kubectl
def test_kustomize(tmp_path: Path) -> None:
    """A Kustomize directory is loaded as it is built."""
    kustomization = "namespace: team\nnamePrefix: my-\nresources: [team.yaml, map.yaml]\n"
    write(
        tmp_path,
        {
            "kustomization.yaml": kustomization,
            "team.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n",
            "map.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n",
        },
    )
    if not (shutil.which("kustomize") or shutil.which("kubectl")):
        pytest.skip("neither kustomize nor kubectl is on PATH")
    with ChildKubeAPI(load=tmp_path) as server:
        assert server.request("GET", "/api/v1/namespaces/team/configmaps/my-map")[0] == 200


NAMESPACES = """
import pytest


@pytest.mark.parametrize("number", range(2))
def test_Objects(kube_api, kube_namespace, number):
    path = f"/api/v1/namespaces/{kube_namespace}"
    code, namespace = kube_api.request("GET", path)
    assert code == 200 and kube_namespace.startswith(f"test-objects-{number}-")
    assert namespace["metadata"]["labels"]["kubetwist.dev/test"] == f"test_Objects-{number}"
    assert kube_api.request("GET", f"{path}/serviceaccounts/default")[0] == 200
    assert kube_api.request("GET", f"{path}/configmaps/kube-root-ca.crt")[0] == 200
    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    assert kube_api.request("POST", f"{path}/pods", pod)[0] == 201


def test_deleted(kube_api, kube_namespace):
    _, listed = kube_api.request("GET", "/api/v1/namespaces?labelSelector=kubetwist.dev/test")
    present = [one["metadata"]["name"] for one in listed["items"] if "deletionTimestamp" not in one["metadata"]]
    assert kube_namespace in present and not any(name.startswith("test-objects-") for name in present)
    kube_api.request("DELETE", f"/api/v1/namespaces/{kube_namespace}")


def test_finalizer(kube_api, kube_namespace):
    held = {"metadata": {"name": "held", "finalizers": ["example.org/hold"]}}
    assert kube_api.request("POST", f"/api/v1/namespaces/{kube_namespace}/configmaps", held)[0] == 201
"""
CLEAN_NAMESPACES = """
def test_clean(kube_namespace, kube_api_clean):
    assert kube_api_clean.request("GET", f"/api/v1/namespaces/{kube_namespace}")[0] == 200
    kube_api_clean.inject(500)


def test_after(kube_namespace, kube_api_clean):
    assert kube_api_clean.request("GET", f"/api/v1/namespaces/{kube_namespace}")[0] == 200
"""


@pytest.mark.parametrize("mode", MODES)
def test_namespaces(tmp_path: Path, mode: str) -> None:
    """Each test has its namespace with objects of controllers; finalizers do not delay the run, but are reported."""
    write(tmp_path, {"test_mine.py": NAMESPACES})
    output = run_pytest(tmp_path, "-o", f"kubetwist_server={mode}")
    assert "4 passed" in output
    # The warning is in one line, with the reasons of the namespace's conditions.
    warning = r"NamespaceRemains: namespace test-finalizer-\w{5} of test_mine.py::test_finalizer is not deleted: .*hold"
    assert len(re.findall(warning, output)) == 1, output


@pytest.mark.parametrize("mode", ["thread", "child"])
def test_clean_namespaces(tmp_path: Path, mode: str) -> None:
    """With kube_api_clean, the namespace is created after the reset, in any order of arguments; faults are removed."""
    write(tmp_path, {"test_mine.py": CLEAN_NAMESPACES})
    assert "2 passed" in run_pytest(tmp_path, "-o", f"kubetwist_server={mode}")


def test_without_controllers(tmp_path: Path) -> None:
    """A namespace of a server without controllers is empty; a test does not wait for objects that nothing creates."""
    text = """
def test_mine(kube_api, kube_namespace):
    _, listed = kube_api.request("GET", f"/api/v1/namespaces/{kube_namespace}/serviceaccounts")
    assert listed["items"] == []
"""
    write(tmp_path, {"test_mine.py": text, "pytest.ini": "[pytest]\nkubetwist_arguments = --controllers=\n"})
    run_pytest(tmp_path, "-W", "ignore::pytest.PytestWarning")


def test_shared(tmp_path: Path) -> None:
    """A server that the workers of pytest-xdist share is loaded and prepared once; each test has its namespace."""
    if importlib.util.find_spec("xdist") is None:
        pytest.skip("pytest-xdist is not installed")
    one_release = re.sub("@pytest.mark.kubernetes_version.*\n", "", PROJECT["test_mine.py"])
    files = {
        **PROJECT,
        "test_mine.py": one_release,
        "test_namespaces.py": NAMESPACES.partition("def test_deleted")[0],
    }
    del files["test_reset.py"]
    files["pytest.ini"] += "kubetwist_xdist = shared\n"
    write(tmp_path, files)
    assert "5 passed" in run_pytest(tmp_path, "--kubetwist-load=further", "-n2")
