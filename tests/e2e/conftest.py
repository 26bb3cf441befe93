"""Fixtures: the real server in a separate process, and kubectl with its kubeconfig."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubetwist.testing import SubprocessServer

from .browser import Page, signed_in, start_browser

KUBECTL = os.environ.get("KUBETWIST_TEST_KUBECTL") or shutil.which("kubectl")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests whose requirements this machine lacks, with the reason."""
    if item.get_closest_marker("kubectl") and not KUBECTL:
        pytest.skip("kubectl is not on PATH, nor named by KUBETWIST_TEST_KUBECTL")


@pytest.fixture(scope="session")
def server() -> Iterator[SubprocessServer]:
    """One server for all tests; each test uses a separate namespace."""
    # Without kube-root-ca.crt in every namespace, so that a test finds there what it has made.
    controllers = "--controllers=*,-root-ca-certificate-publisher-controller"
    with SubprocessServer("--authorization-mode=AlwaysAllow", controllers) as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture
def namespace(server: SubprocessServer, request: pytest.FixtureRequest) -> str:
    """
    A new namespace, named after the test, in which pods can be created immediately, without a default service account.
    """
    base = request.node.name.lower().replace("_", "-").partition("[")[0][:40].strip("-")
    code, created = server.request(
        "POST",
        "/api/v1/namespaces",
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": f"{base}-"}},
    )
    assert code == 201, created
    name: str = created["metadata"]["name"]
    account = {"metadata": {"name": "default"}}
    code, created = server.request("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    assert code in (201, 409), created
    return name


class Kubectl:
    """Runs kubectl with the admin's kubeconfig in one namespace."""

    def __init__(self, kubeconfig: Path, namespace: str, home: Path) -> None:
        self.command = [str(KUBECTL), "--kubeconfig", str(kubeconfig), "--namespace", namespace]
        self.environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}
        self.namespace = namespace

    def run(self, *arguments: str, stdin: str | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run to the end, with any exit code."""
        return subprocess.run(
            [*self.command, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=self.environment | environment,
        )

    def __call__(self, *arguments: str, stdin: str | None = None, **environment: str) -> str:
        """Return the output of kubectl, which must succeed."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def object(self, *arguments: str) -> Any:
        """Return the decoded output of C{get -o yaml}."""
        return yaml.safe_load(self("get", *arguments, "-o", "yaml"))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start it in the background."""
        return subprocess.Popen(
            [*self.command, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self.environment,
        )


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home directory for kubectl and its discovery cache."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
def kubectl(server: SubprocessServer, namespace: str, home: Path) -> Kubectl:
    """kubectl in the test's namespace."""
    return Kubectl(server.kubeconfig, namespace, home)


@pytest.fixture(scope="session")
def long() -> bool:
    """Whether to run the long form of a test."""
    return bool(os.environ.get("KUBETWIST_TEST_LONG"))


@pytest.fixture
def start_server() -> Iterator[Callable[..., SubprocessServer]]:
    """Start servers of one test, with its flags."""
    servers: list[SubprocessServer] = []

    def start(*arguments: str, timeout: float = 30) -> SubprocessServer:
        server = SubprocessServer("--authorization-mode=AlwaysAllow", *arguments, timeout=timeout)
        servers.append(server)
        server.__enter__()
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture(scope="session")
def page_server() -> Iterator[SubprocessServer]:
    """One server for all tests of the web page, with default authorization."""
    with SubprocessServer("--in-memory") as server:
        yield server
        assert "Traceback" not in server.output(), server.output()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for all tests, which are skipped without Chromium."""
    browser = start_browser()
    yield browser
    browser.quit()


@pytest.fixture
def page(browser: Any, page_server: SubprocessServer) -> Page:
    """The page, signed in as an administrator."""
    return signed_in(browser, page_server)
