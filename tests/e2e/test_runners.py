"""Tests for the page about runners, each of which runs its examples, and for servers that xdist's workers share."""

from __future__ import annotations

from pathlib import Path

import pytest

from .pages import files_of, run_pytest, run_python, write_files

PAGE = "testing-runners.md"
_SHARED = "[pytest]\nkubetwist_xdist = shared\n"


def test_files() -> None:
    """The page has an example for each runner."""
    assert set(files_of(PAGE)) == {
        "test_shared.py",
        "test_asyncio.py",
        "test_anyio.py",
        "test_twisted.py",
        "test_unittest.py",
        "test_trial.py",
        "features/environment.py",
        "features/steps/configmaps.py",
        "features/configmaps.feature",
    }


def test_xdist_shared(tmp_path: Path) -> None:
    """All workers use one server, in which each test has a namespace."""
    pytest.importorskip("xdist")
    write_files(tmp_path, PAGE, "test_shared.py")
    (tmp_path / "pytest.ini").write_text(_SHARED)
    with (tmp_path / "test_shared.py").open("a") as file:
        file.write(
            """

@pytest.mark.parametrize("number", range(6))
def test_url(kube_api, worker_id, number, record_testsuite_property):
    with open("servers", "a") as servers:
        servers.write(f"{worker_id} {kube_api.url}\\n")
    # The controller has waited for the controllers of the server.
    assert kube_api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200
"""
        )
    assert "10 passed" in run_pytest(tmp_path, "-n", "2")
    lines = [line.split() for line in (tmp_path / "servers").read_text().splitlines()]
    assert {worker for worker, _ in lines} == {"gw0", "gw1"}
    assert len({url for _, url in lines}) == 1
    # Without workers, the setting has no effect.
    assert "passed" in run_pytest(tmp_path, "-k", "config_map")


def test_xdist_shared_refused(tmp_path: Path) -> None:
    """Fixtures and methods that would disturb other workers are errors with an explanation."""
    pytest.importorskip("xdist")
    (tmp_path / "pytest.ini").write_text(f"{_SHARED}kubetwist_record = cassette.yaml\n")
    (tmp_path / "cassette.yaml").write_text("{apiVersion: v1, kind: List, items: []}")
    (tmp_path / "test_refused.py").write_text(
        """
def test_clean(kube_api_clean):
    pass


def test_fault(kube_api):
    kube_api.inject(500)


def test_recorded(recorded_cluster):
    pass
"""
    )
    output = run_pytest(tmp_path, "-n", "1", failed=True)
    assert "kube_api_clean would undo the writes of other workers (kubetwist_xdist = shared)" in output
    assert "inject would disturb the tests of other workers" in output
    assert "recorded_cluster needs a server for itself: set kubetwist_xdist = worker" in output
    (tmp_path / "pytest.ini").write_text("[pytest]\nkubetwist_xdist = one\n")
    assert "kubetwist_xdist is 'one', must be worker or shared" in run_pytest(tmp_path, "-n", "1", failed=True)


def test_asyncio(tmp_path: Path) -> None:
    """The example for pytest-asyncio passes."""
    pytest.importorskip("pytest_asyncio")
    pytest.importorskip("kr8s")
    write_files(tmp_path, PAGE, "test_asyncio.py")
    assert "1 passed" in run_pytest(tmp_path)


def test_anyio(tmp_path: Path) -> None:
    """The example for anyio passes on all installed event loops."""
    pytest.importorskip("anyio")
    pytest.importorskip("httpx")
    write_files(tmp_path, PAGE, "test_anyio.py")
    assert "passed" in run_pytest(tmp_path, "-p", "no:asyncio")


def test_pytest_twisted(tmp_path: Path) -> None:
    """The example for pytest-twisted passes."""
    pytest.importorskip("pytest_twisted")
    write_files(tmp_path, PAGE, "test_twisted.py")
    assert "2 passed" in run_pytest(tmp_path, pytest_twisted=True)


@pytest.mark.parametrize("child", [False, True])
def test_unittest(tmp_path: Path, child: bool) -> None:
    """The example for unittest passes with unittest, also with a server in a child process, and with pytest."""
    write_files(tmp_path, PAGE, "test_unittest.py")
    path = tmp_path / "test_unittest.py"
    if child:
        text = path.read_text()
        path.write_text(text.replace("    kube_api_arguments", "    kube_api_child = True\n    kube_api_arguments"))
    output = run_python(tmp_path, "-m", "unittest", "test_unittest")
    assert "Ran 3 tests" in output
    assert "OK" in output
    if not child:
        assert "3 passed" in run_pytest(tmp_path)


def test_trial(tmp_path: Path) -> None:
    """The example for trial passes."""
    write_files(tmp_path, PAGE, "test_trial.py")
    output = run_python(tmp_path, "-m", "twisted.trial", "test_trial")
    assert "PASSED (successes=1)" in output


def test_behave(tmp_path: Path) -> None:
    """The example for behave passes."""
    pytest.importorskip("behave")
    write_files(tmp_path, PAGE, *(name for name in files_of(PAGE) if name.startswith("features/")))
    assert "2 scenarios passed" in run_python(tmp_path, "-m", "behave", "--no-color")


_GEVENT = """
from gevent import monkey

monkey.patch_all()

from kubetwist.testing import ChildKubeAPI, KubeAPI

try:
    KubeAPI().start()
except RuntimeError as error:
    print(error)
with ChildKubeAPI() as server:
    print(server.request("GET", "/readyz"))
"""


def test_gevent(tmp_path: Path) -> None:
    """With gevent's threads, a server in this process is an error, and one in a child process works."""
    pytest.importorskip("gevent")
    output = run_python(tmp_path, "-c", _GEVENT)
    assert "gevent has replaced the threads of this process" in output
    assert "(200, 'ok')" in output


_ASYNCIO_REACTOR = """
import asyncio

from twisted.internet import asyncioreactor

asyncioreactor.install(asyncio.new_event_loop())

from twisted.internet import reactor
from kubetwist.testing import KubeAPI


def main():
    try:
        KubeAPI().start()
    except RuntimeError as error:
        print(error)
    reactor.stop()


{run}
"""


def test_asyncio_reactor(tmp_path: Path) -> None:
    """Twisted's asyncio reactor runs in a thread; where it runs in the main thread, a server there is an error."""
    running = _ASYNCIO_REACTOR.replace("{run}", "reactor.callWhenRunning(main)\nreactor.run()")
    assert "this thread runs the reactor: use InProcessServer here, ChildKubeAPI" in run_python(tmp_path, "-c", running)
    thread = _ASYNCIO_REACTOR.replace("{run}", 'with KubeAPI() as server:\n    print(server.request("GET", "/readyz"))')
    assert "(200, 'ok')" in run_python(tmp_path, "-c", thread)
