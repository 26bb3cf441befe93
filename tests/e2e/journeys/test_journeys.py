"""
The paths of newcomers, one after the other in one environment.

The environment is installed from the wheel in C{KUBETWIST_TEST_WHEEL}, or from one that is built from the sources.
Without an index of packages, the journeys that install something are skipped; start and token use the Python of the
tests. Nothing is compiled in advance, which takes half of the time of C{pip install}; F{benchmarks/journeys.py}
installs as newcomers do, and F{.ci/starts.py} checks the size of an installation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import first_plugin, first_test, first_token, install, start
from .steps import Steps, has_index, new_environment


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path | None:
    """Return the Python of a new environment; None without an index."""
    python = new_environment(tmp_path_factory.mktemp("environment"))
    return python if has_index(python) else None


@pytest.fixture(scope="session")
def installed(environment: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """Return the Python of the environment after the first journey, which installs kubetwist."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_NO_COMPILE", "1")
        if environment is not None:
            install.walk(Steps(tmp_path_factory.mktemp("install"), environment))
        yield environment


@pytest.fixture
def python(installed: Path | None) -> Path:
    """Return the Python of the environment with kubetwist."""
    if installed is None:
        pytest.skip("pip finds no index of packages")
    return installed


def test_install(python: Path) -> None:
    """The wheel brings the notice of the data in it, and does not require the package that the data are from."""
    folder = python.parents[1]
    (notice,) = folder.glob("lib/*/site-packages/kubetwist-*/licenses/NOTICE")
    assert "Kubernetes" in notice.read_text()
    assert not list(folder.glob("lib/*/site-packages/kubernetes_validate"))


def test_start(installed: Path | None, tmp_path: Path) -> None:
    """A server starts in an empty directory, and again in the same one."""
    start.walk(Steps(tmp_path, installed or Path(sys.executable)))


def test_first_token(installed: Path | None, tmp_path: Path) -> None:
    """A token of a new service account authenticates a client with the rights of the account."""
    first_token.walk(Steps(tmp_path, installed or Path(sys.executable)))


def test_first_token_by_requests(installed: Path | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token can be created without kubectl."""
    monkeypatch.setattr(first_token, "kubectl", lambda: None)
    first_token.walk(Steps(tmp_path, installed or Path(sys.executable)))


def test_first_plugin(python: Path, tmp_path: Path) -> None:
    """The plugin of the template changes and denies requests to an installed server."""
    first_plugin.walk(Steps(tmp_path, python))


def test_first_test(python: Path, tmp_path: Path) -> None:
    """The test of the README passes where kubetwist, pytest and kubernetes are installed."""
    first_test.walk(Steps(tmp_path, python))
