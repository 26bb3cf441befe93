"""Tests of pytest runs with all kinds of tests beside each other, in a separate process."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

#: A module with each kind of test, in an order in which each kind follows each other one.
MIXED = """
import asyncio

import pytest
import pytest_twisted
import treq
from twisted.internet import reactor
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from kubetwist.testing import KubeAPI
from kubetwist.testing.trial import KubeAPIMixin

PATH = "/api/v1/namespaces/default/configmaps"


def test_blocking(kube_api):
    assert kube_api.request("GET", "/readyz") == (200, "ok")


class FirstTests(KubeAPIMixin, TestCase):
    async def test_server(self):
        server = await self.startKubeAPI()
        code, _ = await deferToThread(server.request, "POST", PATH, {"metadata": {"name": "mine"}})
        self.assertEqual(code, 201)

    def test_reactor(self):
        return deferLater(reactor, 0)


@pytest.mark.asyncio
async def test_asyncio(kube_api_clean):
    code, _ = await asyncio.to_thread(kube_api_clean.request, "POST", PATH, {"metadata": {"name": "mine"}})
    assert code == 201


@pytest_twisted.ensureDeferred
async def test_twisted(kube_api_twisted):
    response = await kube_api_twisted.connection.treq().post(PATH, json={"metadata": {"name": "mine"}})
    assert response.code == 201


def test_clean(kube_api_clean):
    assert kube_api_clean.request("GET", PATH + "/mine")[0] == 404


@pytest_twisted.ensureDeferred
async def test_both(kube_api_twisted, kube_api_clean):
    await kube_api_twisted.connection.treq().post(PATH, json={"metadata": {"name": "mine"}})
    assert kube_api_clean.request("GET", PATH + "/mine")[0] == 404


@pytest.mark.asyncio
async def test_asyncio_again():
    await asyncio.sleep(0)


class SecondTests(TestCase):
    def test_failure(self):
        d = deferLater(reactor, 0, lambda: 1 / 0)
        return self.assertFailure(d, ZeroDivisionError)


def test_thread():
    with pytest.raises(RuntimeError, match="ChildKubeAPI"):
        KubeAPI().start()
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder outside of the project, with the installed packages."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    environment.pop("PYTEST_XDIST_WORKER", None)
    # Not installed but run from a checkout, there is no entry point to find the plugin by.
    installed = importlib.metadata.entry_points(group="pytest11", name="kubetwist")
    plugin = [] if installed else ["-p", "kubetwist.testing.pytest_plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_all_kinds(tmp_path: Path) -> None:
    """Blocking, asyncio, trial and Twisted tests pass in one process."""
    deselected = [] if importlib.util.find_spec("pytest_asyncio") else ["-k", "not asyncio"]
    (tmp_path / "test_mixed.py").write_text(MIXED)
    done = run(tmp_path, *deselected)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ("8 passed, 2 deselected" if deselected else "10 passed") in done.stdout


def test_without_pytest_twisted(tmp_path: Path) -> None:
    """Without pytest-twisted, kube_api_twisted fails with one sentence, and nothing imports the package."""
    (tmp_path / "test_mine.py").write_text(
        """
import sys


def test_twisted(kube_api_twisted):
    pass


def test_nothing_imported():
    assert "pytest_twisted" not in sys.modules
    assert "twisted.internet.reactor" not in sys.modules
"""
    )
    done = run(tmp_path, "-p", "no:twisted")
    assert "1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert "kube_api_twisted needs the pytest plugin pytest-twisted, which is missing or disabled" in done.stdout


def test_thread_mode(tmp_path: Path) -> None:
    """kubetwist_server = thread is a usage error while pytest-twisted is active."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nkubetwist_server = thread\n")
    (tmp_path / "test_mine.py").write_text("def test_mine(kube_api):\n    pass\n")
    done = run(tmp_path)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: kubetwist_server = thread and pytest-twisted cannot be used in one process" in done.stderr
