"""Tests for the reports of failed tests, with projects in separate folders as users run them."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from .pages import run_pytest

FAILING = """
import pytest

MAPS = "/api/v1/namespaces/default/configmaps"


def make(kube_api, kind, name, **more):
    path = f"/api/v1/namespaces/default/{kind.lower()}s"
    assert kube_api.request("POST", path, {"metadata": {"name": name}, **more})[0] == 201


def test_before(kube_api):
    make(kube_api, "ConfigMap", "before")


@pytest.fixture
def api(kube_api):
    return kube_api.connection


def test_failing(api, kube_api):
    make(kube_api, "ConfigMap", "mine", data={"k": "v"})
    make(kube_api, "Secret", "hidden", data={"p": "aHVudGVyMg=="})
    involved = {"kind": "ConfigMap", "name": "mine", "namespace": "default"}
    event = {"metadata": {"name": "e"}, "involvedObject": involved, "reason": "Seen", "message": "an event was seen"}
    assert kube_api.request("POST", "/api/v1/namespaces/default/events", event)[0] == 201
    assert api.request("GET", MAPS + "/missing")[0] == 200


def test_without_server():
    assert False
"""


def run(folder: Path, setting: str, *, pytest_twisted: bool = False, options: tuple[str, ...] = ()) -> str:
    """Run pytest in a folder; return its output. The tests must fail."""
    (folder / "pytest.ini").write_text(f"[pytest]\n{setting}\n")
    return run_pytest(folder, *options, failed=True, pytest_twisted=pytest_twisted)


def sections(output: str) -> list[str]:
    """Return the titles of the sections of reports."""
    lines = [line.strip("- ") for line in output.splitlines() if line.startswith("---")]
    return [line for line in lines if line.startswith("kubetwist")]


@pytest.mark.parametrize("where", ["thread", "child", "process"])
def test_failing(tmp_path: Path, where: str) -> None:
    """The report of a failed test has the namespace's events and objects, the requests, and the log of a process."""
    (tmp_path / "test_mine.py").write_text(FAILING)
    output = run(tmp_path, f"kubetwist_server = {where}")
    assert "2 failed, 1 passed" in output
    expected = ["kubetwist events in namespace default", "kubetwist objects in namespace default"]
    titles = sections(output)
    assert titles[:2] == expected
    assert "configmap/mine  an event was seen" in output
    assert "  k: v" in output
    assert "  p: (masked)" in output
    report = output[output.index("kubetwist events") : output.index("test_without_server")]
    assert "aHVudGVyMg==" not in report
    if where == "process":
        # The server has started during the first test, so its log may have no further lines.
        assert titles[2:-1] in ([], ["kubetwist server log"])
    assert titles[-1].endswith("requests")
    assert "  kubetwist-test-admin  get     404  " in report
    # Requests of earlier tests are not shown.
    assert report.count("  create  201  ") == 3


@pytest.mark.parametrize(("mode", "count"), [("off", 0), ("always", 2)])
def test_modes(tmp_path: Path, mode: str, count: int) -> None:
    """No test has a report, or all tests with a server have one."""
    (tmp_path / "test_mine.py").write_text(FAILING)
    output = run(tmp_path, f"kubetwist_report = {mode}\nkubetwist_server = thread", options=("-rA",))
    assert len([title for title in sections(output) if "objects" in title]) == count


def test_unknown_mode(tmp_path: Path) -> None:
    """An unknown mode is an error of usage."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nkubetwist_report = maybe\n")
    output = run_pytest(tmp_path, failed=True)
    assert "ERROR: kubetwist_report is 'maybe', must be one of auto, off, always" in output


NAMESPACE = """
import pytest
from kubetwist.testing import SubprocessServer


@pytest.fixture
def kube_namespace(kube_api):
    kube_api.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}])
    return "mine"


def test_failing(kube_namespace, kube_api):
    kube_api.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "elsewhere"}}])
    kube_api.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here"}}], "mine")
    assert False


@pytest.fixture
def broken(kube_api):
    kube_api.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-fixture"}}])
    raise ValueError


def test_setup(broken):
    pass


@pytest.fixture
def killed():
    with SubprocessServer("--in-memory", "--controllers=") as server:
        yield server


def test_killed(killed):
    killed.kill()
    assert False
"""


def test_namespace(tmp_path: Path) -> None:
    """The namespace is the one of kube_namespace; failed fixtures and servers of other fixtures have reports too."""
    (tmp_path / "test_mine.py").write_text(NAMESPACE)
    output = run(tmp_path, "kubetwist_server = thread")
    assert re.search(r"2 failed, .*1 error", output)
    setup, failing, killed = re.split("_ (?:test_failing|test_killed) _", output)
    assert "configmap/from-fixture" in setup
    assert "configmap/here" in failing
    assert "configmap/elsewhere" not in failing
    assert "kubetwist objects" in killed
    assert "the server did not answer within" in killed
    assert "kubetwist server log" in killed


TWISTED = """
import pytest_twisted
import treq


@pytest_twisted.ensureDeferred
async def test_failing(kube_api_twisted):
    client = kube_api_twisted.connection.treq()
    body = {"metadata": {"name": "mine"}}
    response = await client.post("/api/v1/namespaces/default/configmaps", json=body)
    assert response.code == 200
"""


def test_pytest_twisted(tmp_path: Path) -> None:
    """A server on the reactor of pytest-twisted has a report."""
    if importlib.util.find_spec("pytest_twisted") is None or importlib.util.find_spec("treq") is None:
        pytest.skip("pytest-twisted or treq is not installed")
    (tmp_path / "test_mine.py").write_text(TWISTED)
    output = run(tmp_path, "", pytest_twisted=True)
    assert "configmap/mine" in output
    assert "create  201" in output
