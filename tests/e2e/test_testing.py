"""Tests for C{kubetwist.testing} in separate programs and pytest runs, as users run it."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubetwist.testing import ServerNotReady, SubprocessServer

from .pages import run_pytest


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in C{folder}, outside of the project, with the installed packages."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def test_thread(tmp_path: Path) -> None:
    """KubeAPI serves a program without Twisted code, start after start, and does not prevent its end without a stop."""
    program = """
from kubetwist.testing import KubeAPI

with KubeAPI() as first:
    print(first.request("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})[0])
    second = KubeAPI().start()
    assert second.url != first.url
    print(second.request("GET", "/api/v1/namespaces/mine")[0])
"""
    done = run(tmp_path, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "201\n404\n", "")


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_fixture(tmp_path: Path, kind: str) -> None:
    """kube_api is available when kubetwist is installed, and both kinds of servers pass the same test."""
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nkubetwist_server = {kind}\nkubetwist_arguments = --kubernetes-version=1.30\n"
    )
    (tmp_path / "test_mine.py").write_text(
        """
def test_mine(kube_api):
    code, version = kube_api.request("GET", "/version")
    assert (code, version["minor"]) == (200, "30")
    assert kube_api.kubeconfig.exists()
"""
    )
    assert "1 passed" in run_pytest(tmp_path)


#: Tests with servers of several releases.
_RELEASES = """
import pytest


def minor(server):
    return server.request("GET", "/version")[1]["minor"]


def test_all(kube_api, kubernetes_version):
    assert "1." + minor(kube_api) == kubernetes_version


@pytest.mark.kubernetes_version("1.35")
class TestMarked:
    def test_class(self, kube_api_clean):
        assert minor(kube_api_clean) == "35"

    @pytest.mark.kubernetes_version("1.33", "v1.34.2")
    def test_closest(self, kube_api, kubernetes_version):
        assert (minor(kube_api), kubernetes_version) in (("33", "1.33"), ("34", "1.34"))


@pytest.mark.parametrize("kubernetes_version", ["1.32"], indirect=True)
def test_parameter(kube_api):
    assert minor(kube_api) == "32"


def test_without_server():
    pass
"""


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_releases(tmp_path: Path, kind: str) -> None:
    """Tests run once for each release that the closest marker, the parameter or the setting names."""
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\nkubetwist_server = {kind}\nkubetwist_versions = 1.33 1.36\naddopts = --strict-markers\n"
    )
    (tmp_path / "test_releases.py").write_text(
        _RELEASES if kind == "thread" else _RELEASES.replace("kube_api_clean", "kube_api")
    )
    output = run_pytest(tmp_path, "-vv")
    assert "7 passed" in output
    passed = {line.split()[0].rpartition("::")[2] for line in output.splitlines() if "PASSED" in line}
    assert passed == {
        "test_all[1.33]",
        "test_all[1.36]",
        "test_class[1.35]",
        "test_closest[1.33]",
        "test_closest[1.34]",
        "test_parameter[1.32]",
        "test_without_server",
    }


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('("1.12")', "--kubernetes-version must be one of 1.25"),
        ("", "test_unknown.py::test_unknown: the marker kubernetes_version names no release"),
    ],
)
def test_unknown_release(tmp_path: Path, marker: str, message: str) -> None:
    """A release that is not served, and a marker without one, are errors of the collection."""
    (tmp_path / "test_unknown.py").write_text(f"""
import pytest


@pytest.mark.kubernetes_version{marker}
def test_unknown(kube_api):
    pass
""")
    assert message in run_pytest(tmp_path, failed=True)


#: A test module with trial tests before and after a test that uses the fixture.
_MIXED = """
from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase


class FirstTests(TestCase):
    def test_reactor(self):
        return deferLater(reactor, 0, lambda: None)


def test_server(kube_api):
    assert kube_api.request("GET", "/readyz") == (200, "ok")


class SecondTests(TestCase):
    def test_reactor(self):
        return deferLater(reactor, 0, lambda: None)
"""


def test_fixture_beside_trial_tests(tmp_path: Path) -> None:
    """kube_api runs in a child process if trial tests run in the same process."""
    (tmp_path / "test_mixed.py").write_text(_MIXED)
    assert "3 passed" in run_pytest(tmp_path)


def test_fixture_thread_beside_trial_tests(tmp_path: Path) -> None:
    """kubetwist_server = thread is a usage error if trial tests run the reactor of the same process."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nkubetwist_server = thread\n")
    (tmp_path / "test_mixed.py").write_text(_MIXED)
    output = run_pytest(tmp_path, failed=True)
    assert "ERROR: kubetwist_server = thread and trial tests (test_mixed.py::FirstTests::test_reactor)" in output


def test_thread_disturbed_by_trial(tmp_path: Path) -> None:
    """A program ends even if trial's clean-up removed the delayed calls of its reactor thread."""
    program = """
from kubetwist.testing import KubeAPI
from twisted.internet import reactor
from twisted.internet.threads import blockingCallFromThread

with KubeAPI() as server:
    print(server.request("GET", "/readyz"))
blockingCallFromThread(reactor, lambda: [call.cancel() for call in reactor.getDelayedCalls()] and None)
"""
    done = run(tmp_path, "-c", program)
    assert (done.returncode, done.stdout) == (0, "(200, 'ok')\n"), done.stderr


def test_default_kubeconfig_of_clients(tmp_path: Path) -> None:
    """The fixture kubeconfig is the default of clients that were imported before it was set up."""
    (tmp_path / "test_clients.py").write_text(
        """
import asyncio

import kubernetes
import kubernetes_asyncio


def test_kubernetes(kubeconfig):
    kubernetes.config.load_kube_config()
    assert kubernetes.client.CoreV1Api().list_namespace().items


def test_kubernetes_asyncio(kubeconfig):
    async def namespaces():
        await kubernetes_asyncio.config.load_kube_config()
        async with kubernetes_asyncio.client.ApiClient() as api:
            return await kubernetes_asyncio.client.CoreV1Api(api).list_namespace()

    assert asyncio.run(namespaces()).items
"""
    )
    (tmp_path / "test_kopf.py").write_text(
        """
import kopf
import kubernetes
from kopf.testing import KopfRunner


@kopf.on.startup()
def configure(settings, **_):
    settings.posting.enabled = False


@kopf.on.create("configmaps")
def created(patch, **_):
    patch.metadata.labels["seen"] = "yes"


def test_operator(kubeconfig, kube_api):
    import time
    path = "/api/v1/namespaces/default/configmaps"
    with KopfRunner(["run", "--namespace=default", __file__]):
        kube_api.request("POST", path, {"metadata": {"name": "one"}})
        for _ in range(300):
            labels = kube_api.request("GET", path + "/one")[1]["metadata"].get("labels")
            if labels:
                break
            time.sleep(0.1)
    assert labels == {"seen": "yes"}
"""
    )
    assert "3 passed" in run_pytest(tmp_path)


def test_stop() -> None:
    """A server in a separate process with an open watch stops with exit code 0."""
    with SubprocessServer() as server:
        assert server.request("GET", "/readyz") == (200, "ok")
        watch = http.client.HTTPSConnection(
            "127.0.0.1", server.connection.port, context=server.connection.ssl_context(), timeout=30
        )
        watch.request("GET", "/api/v1/pods?watch=1", headers={"Authorization": f"Bearer {server.token}"})
        response = watch.getresponse()
        assert response.status == 200
        assert server.stop() == 0
        assert response.read() == b""
        watch.close()


def test_not_ready() -> None:
    """A server that cannot start reports the reason."""
    with pytest.raises(ServerNotReady, match="no-such-flag"):
        SubprocessServer("--no-such-flag").start()
