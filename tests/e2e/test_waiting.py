"""Tests for F{docs/testing-waiting.md}, and for waits with servers in other processes."""

from __future__ import annotations

import importlib.util
import re
import threading
from pathlib import Path

import pytest

from kubetwist.testing import ChildKubeAPI, SubprocessServer, WaitTimeout

from .pages import DOCS, run_pytest

PAGE = DOCS / "testing-waiting.md"
EXAMPLES = dict(re.findall(r"```python\n# (test_\w+\.py)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(tmp_path: Path, name: str) -> None:
    """Each example of the page passes unchanged."""
    if "pytest_twisted" in EXAMPLES[name] and importlib.util.find_spec("pytest_twisted") is None:
        pytest.skip("pytest_twisted is not installed")
    (tmp_path / name).write_text(EXAMPLES[name])
    assert "passed" in run_pytest(tmp_path, pytest_twisted="pytest_twisted" in EXAMPLES[name])


def test_restart() -> None:
    """A wait continues when the server was killed and started again."""
    with SubprocessServer("--controllers=") as server:

        def restart() -> None:
            server.kill()
            server.start()
            assert server.request("POST", MAPS, {"metadata": {"name": "mine"}})[0] == 201

        thread = threading.Timer(0.2, restart)
        thread.start()
        try:
            assert server.wait_for("configmaps/mine", timeout=60)["kind"] == "ConfigMap"
        finally:
            thread.join()


def test_child() -> None:
    """Functions of a test are called in its process, also for a server in another one."""
    names = []
    with ChildKubeAPI(controllers="") as server:
        server.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}])

        def seen(obj: dict[str, object]) -> bool:
            names.append(obj["kind"])
            return True

        server.wait_for("cm/mine", where=seen)
        with pytest.raises(WaitTimeout):
            server.wait_for("cm/mine", absent=True, timeout=0.1)
    assert names == ["ConfigMap"]


@pytest.mark.parametrize("kind", [ChildKubeAPI, SubprocessServer])
def test_eventually(kind: type[ChildKubeAPI] | type[SubprocessServer]) -> None:
    """A function is evaluated after changes in a server in another process."""
    watching = [] if kind is ChildKubeAPI else ["configmaps"]
    with kind("--controllers=") as server:
        evaluated = threading.Event()

        def check() -> bool:
            evaluated.set()
            return server.request("GET", f"{MAPS}/mine")[0] == 200

        def write() -> None:
            evaluated.wait(30)
            server.request("POST", MAPS, {"metadata": {"name": "mine"}})

        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert server.eventually(check, watching=watching, timeout=60)
        finally:
            thread.join()
        with pytest.raises(WaitTimeout, match="it returned False"):
            server.eventually(lambda: False, watching=["configmaps"], timeout=0.1)
        if not watching:
            return
        with pytest.raises(ValueError, match="watching="):
            server.eventually(check)
