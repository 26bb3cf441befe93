"""C{kubetwist.testing} as users meet it: in programs and pytest runs of their own."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubetwist.testing import ServerNotReady, SubprocessServer


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in C{folder}, away from the project, with the packages that we have."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


def test_thread(tmp_path: Path) -> None:
    """KubeAPI serves a program that knows nothing of Twisted, start after start, and lets it end without a stop."""
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
    """kube_api is there once kubetwist is installed, and both kinds of server pass the same test."""
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
    # Not installed but run from a checkout, there is no entry point to find the plugin by.
    done = run(tmp_path, "-c", _PYTEST, "-q", "-p", "no:cacheprovider", "-p", "no:twisted")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


_PYTEST = """
import importlib.metadata, sys
import pytest
found = importlib.metadata.entry_points(group="pytest11", name="kubetwist")
sys.exit(pytest.main([*sys.argv[1:], *([] if found else ["-p", "kubetwist.testing.pytest_plugin"])]))
"""


def test_stop() -> None:
    """A server in a process of its own ends with exit code 0 when asked to, with a watch open."""
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
    """A server that can not start says why."""
    with pytest.raises(ServerNotReady, match="no-such-flag"):
        SubprocessServer("--no-such-flag").start()
