"""Tests for the examples in the documentation and for the pytest plugin, in a separate folder as users run them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubetwist.controllers.fakeimages import parse_images_file
from kubetwist.testing import SubprocessServer

from .conftest import KUBECTL
from .pages import DOCS, run_pytest

PAGES = ("testing.md", "testing-clients.md", "simulated-kubelet.md")
EXAMPLES: dict[str, str] = {}
for _page in PAGES:
    EXAMPLES |= re.findall(r"```python\n# (test_\w+\.py)\n(.*?)```", (DOCS / _page).read_text("utf-8"), re.DOTALL)
#: Those that need no other library.
OURS = {"node_loss", "powers", "probes", "releases", "service_accounts", "webhooks"}
LIBRARIES = {"kubernetes", "kubernetes_asyncio", "kr8s", "lightkube", "pykube"}
#: Those that need kubernetes.
WITH_KUBERNETES = {"incluster", "kubeconfig", "users"}
#: Those that need kubectl.
WITH_KUBECTL = {"simulated_kubelet"}
#: What the last command of a page's sessions shows.
SESSIONS = {
    "quickstart.md": r"^red +30$",
    "../README.md": r"^eyJ",
    "why.md": r"may not \"list\" the resource \"configmaps\"",
    "extension.md": r"rolebinding.rbac.authorization.k8s.io/fortunes-reader created",
}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(tmp_path: Path, name: str) -> None:
    """Each example of the pages passes unchanged."""
    library = name.removeprefix("test_").removesuffix(".py")
    if library in WITH_KUBERNETES:
        library = "kubernetes"
    if library in WITH_KUBECTL and not KUBECTL:
        pytest.skip("kubectl is not on PATH, nor named by KUBETWIST_TEST_KUBECTL")
    if library not in OURS | WITH_KUBECTL and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    (tmp_path / name).write_text(EXAMPLES[name])
    assert "passed" in run_pytest(tmp_path)


def test_there_are_examples() -> None:
    """The pages have an example for each client library and for each feature of test servers."""
    assert set(EXAMPLES) == {f"test_{name}.py" for name in OURS | LIBRARIES | WITH_KUBERNETES | WITH_KUBECTL}


def test_images() -> None:
    """The configuration of images is valid."""
    (text,) = re.findall(r"```yaml\n(images:.*?)```", (DOCS / "simulated-kubelet.md").read_text("utf-8"), re.DOTALL)
    assert set(parse_images_file(text.encode())) == {"nginx", "*"}


@pytest.fixture
def fresh() -> Iterator[SubprocessServer]:
    """A server without flags."""
    with SubprocessServer() as server:
        yield server


@pytest.mark.kubectl
@pytest.mark.parametrize("name", SESSIONS)
def test_session(fresh: SubprocessServer, tmp_path: Path, name: str) -> None:
    """
    The shell sessions of a page work line by line, and end with the documented output.

    Blocks marked C{shell} instead of C{sh} need more than a server without flags.
    """
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / name).read_text("utf-8"), re.DOTALL)
    script = "\n".join(block for block in blocks if re.search(r"^kubectl ", block, re.MULTILINE))
    (tmp_path / "kubetwist-data").mkdir()
    kubeconfig = shutil.copy(fresh.kubeconfig, tmp_path / "kubetwist-data" / "admin.kubeconfig")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(str(KUBECTL))
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env={"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(SESSIONS[name], done.stdout, re.MULTILINE), done.stdout


CLEAN = """
import os, threading


def write(kube_api, name):
    code, _ = kube_api.request("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    assert code == 201


def names(kube_api):
    _, listed = kube_api.request("GET", "/api/v1/namespaces/default/configmaps")
    return [one["metadata"]["name"] for one in listed["items"] if one["metadata"]["name"] != "kube-root-ca.crt"]


def test_first(kube_api_clean):
    kube_api_clean.inject(500, verb="list")
    kube_api_clean.freeze_time(5)
    write(kube_api_clean, "first")


def test_second(kube_api_clean, kube_api):
    assert kube_api is kube_api_clean
    assert names(kube_api) == []
    write(kube_api, "second")


def test_thread(kube_api_clean, kubeconfig):
    assert os.environ["KUBECONFIG"] == str(kubeconfig) == str(kube_api_clean.kubeconfig)
    threads = [threading.Thread(target=write, args=[kube_api_clean, name]) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(kube_api_clean) == ["a", "b", "c"]
    kube_api_clean.reset()
    assert names(kube_api_clean) == []


def test_accounts(kube_api):
    code, _ = kube_api.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")
    assert code == 200


def test_arguments(kube_api):
    assert kube_api.request("GET", "/version")[1]["minor"] == "30"
"""


@pytest.mark.parametrize("workers", [0, 2])
def test_clean(tmp_path: Path, workers: int) -> None:
    """kube_api_clean has no objects of other tests, in one process and with pytest-xdist."""
    (tmp_path / "test_mine.py").write_text(CLEAN)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n\n@pytest.fixture(scope='session')\ndef kube_api_arguments():\n"
        "    return ['--kubernetes-version=1.30']\n"
    )
    if workers and importlib.util.find_spec("xdist") is None:
        pytest.skip("pytest-xdist is not installed")
    assert "5 passed" in run_pytest(tmp_path, *(["-n", str(workers)] if workers else []))


CHILD = """
import os
import pytest
from kubetwist.testing.manifests import LoadError


def test_powers(kube_api_clean):
    path = "/api/v1/namespaces/default/configmaps"
    before = kube_api_clean.snapshot()
    with kube_api_clean.record_requests() as log, kube_api_clean.inject(429, verb="list", times=1) as fault:
        assert kube_api_clean.request("GET", path)[0] == 429
        assert kube_api_clean.request("GET", path)[0] == 200
        assert fault.hits == 1
        assert [sent.code for sent in log.matching(resource="configmaps")] == [429, 200]
        with pytest.raises(AssertionError, match="0 requests"):
            log.assert_requested(resource="pods")
    kube_api_clean.freeze_time(5)
    (made,) = kube_api_clean.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}])
    assert made["metadata"]["creationTimestamp"] == "1970-01-01T00:00:05Z"
    assert kube_api_clean.now == 5
    kube_api_clean.restore(before)
    assert kube_api_clean.request("GET", f"{path}/mine")[0] == 404
    with pytest.raises(LoadError, match="no Nothing"):
        kube_api_clean.load("{apiVersion: v1, kind: Nothing}")
    with pytest.raises((AttributeError, TypeError)):
        kube_api_clean.inject(500, where=lambda sent: True)


def test_clean(kube_api_clean):
    kube_api_clean.load([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}])
    kube_api_clean.reset()
    assert kube_api_clean.request("GET", "/api/v1/namespaces/default/configmaps/mine")[0] == 404
"""


@pytest.mark.parametrize("where", ["child", "thread"])
def test_child(tmp_path: Path, where: str) -> None:
    """A server in a child process supports everything that a server in a thread does."""
    text = CHILD if where == "child" else CHILD.replace("pytest.raises((AttributeError, TypeError))", "NOTHING")
    (tmp_path / "test_mine.py").write_text(f"import contextlib\nNOTHING = contextlib.nullcontext()\n{text}")
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nkubetwist_server = {where}\n")
    assert "2 passed" in run_pytest(tmp_path)


ASYNCIO = """
import asyncio, threading
import kr8s.asyncio
from kr8s.asyncio.objects import ConfigMap


def test_asyncio(kube_api_clean):
    async def run():
        api = await kr8s.asyncio.api(kubeconfig=str(kube_api_clean.kubeconfig))
        made = await ConfigMap({"metadata": {"name": "mine"}}, api=api)
        await made.create()
        await asyncio.to_thread(kube_api_clean.reset)
        assert not await made.exists()

    asyncio.run(run())
"""


def test_asyncio(tmp_path: Path) -> None:
    """A suite with its event loop uses the same server."""
    pytest.importorskip("kr8s")
    (tmp_path / "test_mine.py").write_text(ASYNCIO)
    assert "1 passed" in run_pytest(tmp_path)
