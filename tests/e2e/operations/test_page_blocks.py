"""The commands of pages for operators that no other test runs, with paths, addresses and durations of a test."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import etcd_skip_reason

from ..conftest import KUBECTL
from ..pages import DOCS
from .commands import console
from .files import PROJECT
from .tlsetcd import tls_etcd

#: The shells of the page about the installation, and how they read a script without the files of a user.
SHELLS = {"bash": ["bash", "--noprofile", "--norc", "-e", "-c"], "zsh": ["zsh", "-f", "-e", "-c"]}
needs_etcd = pytest.mark.skipif(bool(etcd_skip_reason()), reason=etcd_skip_reason() or "etcd is there")


def blocks(page: str, language: str = "sh") -> list[str]:
    """Return the blocks of a page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)


def environment(folder: Path) -> dict[str, str]:
    """Return variables with which C{kubetwist} and C{python} on PATH are the tested ones."""
    programs = folder / "bin"
    if not programs.exists():
        programs.mkdir()
        for name, arguments in (("kubetwist", "-m kubetwist "), ("python", "")):
            (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n')
            (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    python_path = os.pathsep.join(path or os.getcwd() for path in sys.path)
    return {**os.environ, "PATH": path, "PYTHONPATH": python_path, "HOME": str(folder)}


def succeed(folder: Path, command: list[str], timeout: float = 300) -> str:
    """Return the output of a command that must succeed in a folder."""
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def served(flags: list[str], data: Path) -> Iterator[SubprocessServer]:
    """Run the server of a page, whose flags have paths and addresses of a test."""
    with SubprocessServer(*flags, data_dir=data, timeout=120) as server:
        assert server.request("GET", "/readyz") == (200, "ok")
        yield server
        assert "Traceback" not in server.output(), server.output()


@needs_etcd
@pytest.mark.parametrize("page", ["high-availability.md", "operations.md"])
def test_servers_over_etcd(tmp_path: Path, page: str) -> None:
    """The command for a server over three members of etcd starts it; another server sees its objects."""
    commands = [*console(page), *(shlex.split(one.replace("\\\n", "")) for one in blocks(page))]
    (command,) = [one for one in commands if one[:2] == ["twist", "kubeapi"]]
    with tls_etcd(tmp_path / "etcd", 3) as etcd:
        files = {"cafile": "ca.crt", "certfile": "tls.crt", "keyfile": "tls.key"}
        replaced = {
            "data-dir": "",
            "advertise-address": "127.0.0.1",
            "etcd-servers": ",".join(etcd.urls),
            **{f"etcd-{name}": str(etcd.folder / file) for name, file in files.items()},
        }
        names = [flag.partition("=")[0].removeprefix("--") for flag in command[2:]]
        assert set(replaced) <= set(names)
        flags = [
            f"--{name}={replaced[name]}" if name in replaced else flag
            for name, flag in zip(names, command[2:], strict=True)
            if name != "data-dir"
        ]
        data = tmp_path / "data"
        with served(flags, data) as server:
            body = {"metadata": {"name": "kept"}}
            assert server.request("POST", "/api/v1/namespaces/default/configmaps", body)[0] == 201
        # The second machine has a copy of the directory, as the pages describe.
        copied = tmp_path / "copied"
        shutil.copytree(data, copied, ignore=shutil.ignore_patterns("kubetwist.pid", "admin.kubeconfig"))
        with served(flags, copied) as server:
            assert server.request("GET", "/api/v1/namespaces/default/configmaps/kept")[0] == 200


def test_soak(tmp_path: Path) -> None:
    """The soak test of the page passes in seconds, and writes its files."""
    ((python, script, *flags),) = console("soak.md")
    assert python == "python" and flags[:2] == ["--hours", "2"]
    small = ["--hours", "0.001", "--secrets=40", "--namespaces=2", "--watchers=8", "--rate=50", "--sample=0.5"]
    succeed(tmp_path, [python, str(PROJECT / script), *flags[2:], *small])
    assert (tmp_path / "soak.csv").read_text().count("\n") > 1
    (evaluation,) = re.findall(r"`python (benchmarks/soakreport.py [^`]+)`", (DOCS / "soak.md").read_text("utf-8"))
    script, *arguments = shlex.split(evaluation)
    (tmp_path / "soak.svg").unlink()
    assert "requests" in succeed(tmp_path, [python, str(PROJECT / script), *arguments])
    assert (tmp_path / "soak.svg").read_text().startswith("<svg")


def test_installation(tmp_path: Path) -> None:
    """The command that the installation has starts a server in the working directory."""
    (environment_, serve) = blocks("install.md")[0].splitlines()
    assert environment_ == "python3 -m venv .venv && .venv/bin/pip install kubetwist"
    assert serve == ".venv/bin/kubetwist serve"
    environment(tmp_path)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(tmp_path / "bin")
    notify = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.bind(str(notify))
        ready.settimeout(120)
        process = subprocess.Popen(
            [*serve.split(), "--secure-port=0"],
            cwd=tmp_path,
            env=environment(tmp_path) | {"NOTIFY_SOCKET": str(notify)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while b"READY=1" not in ready.recv(4096).splitlines():
                pass
            assert (tmp_path / "kubetwist-data" / "admin.kubeconfig").exists()
            assert succeed(tmp_path, ["kubetwist", "health"]) == "ok\n"
        finally:
            process.terminate()
        assert process.wait(120) == 0


@pytest.mark.parametrize("shell", SHELLS)
def test_completion(tmp_path: Path, shell: str) -> None:
    """The line for the configuration of a shell makes it complete the command."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    lines = [line.partition("#")[0].strip() for line in blocks("install.md")[1].splitlines()]
    (line,) = [one for one in lines if f"completion {shell})" in one]
    prelude, shown = ("", "complete -p kubetwist")
    if shell == "zsh":
        prelude, shown = ("autoload -Uz compinit; compinit -u\n", 'echo "$_comps[kubetwist]"')
    assert "kubetwist" in succeed(tmp_path, [*SHELLS[shell], f"{prelude}{line}\n{shown}"])


def test_completion_file(tmp_path: Path) -> None:
    """The line for fish writes a script, which fish can parse if it is installed."""
    (line,) = [one for one in blocks("install.md")[1].splitlines() if "fish" in one]
    path = tmp_path / ".config" / "fish" / "completions" / "kubetwist.fish"
    path.parent.mkdir(parents=True)
    succeed(tmp_path, ["bash", "-e", "-c", line])
    assert "complete" in path.read_text()
    if shutil.which("fish"):
        succeed(tmp_path, ["fish", "--no-execute", str(path)])


def test_manual_page(tmp_path: Path) -> None:
    """The command of the page shows the manual page that the wheel installs, or the one of the source."""
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    (line,) = blocks("install.md")[2].splitlines()
    installed = Path(sys.prefix) / "share" / "man"
    pages = tmp_path / ".venv" / "share" / "man" / "man1"
    pages.mkdir(parents=True)
    source = installed / "man1" if (installed / "man1" / "kubetwist-serve.1").exists() else PROJECT / "man"
    for page in source.glob("kubetwist*.1"):
        shutil.copy(page, pages)
    text = succeed(tmp_path, ["bash", "-e", "-c", f"MANPAGER=cat MANWIDTH=100 {line}"])
    assert "KUBETWIST-SERVE(1)" in text and "--secure-port" in text


def test_debug_socket(tmp_path: Path) -> None:
    """The command of the page gets the stacks of the storage process; each worker has a socket of its number."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    (command,) = [shlex.split(one) for one in blocks("operations.md") if one.startswith("curl ")]
    place = "/run/kubetwist/debug.sock"
    assert command[1:3] == ["--unix-socket", place]
    # The path of a socket has at most about a hundred bytes.
    with tempfile.TemporaryDirectory(prefix="debug-") as folder:
        path = Path(folder) / "debug.sock"
        flags = [f"--debug-socket-path={path}", "--workers=2", "--profiling=false"]
        with served(flags, tmp_path / "data"):
            outputs = [
                succeed(tmp_path, ["curl", "--silent", "--fail", "--unix-socket", f"{path}{suffix}", *command[3:]])
                for suffix in ("", ".1", ".2")
            ]
            assert all("MainThread" in output for output in outputs)
            assert len(set(outputs)) == 3
        assert not list(Path(folder).iterdir())


@pytest.mark.kubectl
def test_encryption(tmp_path: Path) -> None:
    """The configuration of the page encrypts with a new key, and the command of the page encrypts older Secrets."""
    text = blocks("encryption.md", "yaml")[0]
    (generate,) = re.findall(r"# (head -c 32 .*)", text)
    key = succeed(tmp_path, ["bash", "-e", "-c", generate]).strip()
    (tmp_path / "encryption.yaml").write_text(text.replace("PUT-THE-OUTPUT-HERE", key))
    (script,) = blocks("encryption.md", "console")
    serve, rewrite = (line.removeprefix("$ ") for line in script.splitlines())
    assert shlex.split(serve) == ["twist", "kubeapi", "--encryption-provider-config=encryption.yaml"]
    data, path = tmp_path / "data", "/api/v1/namespaces/default/secrets"

    def stored() -> bytes:
        query = "SELECT value FROM log WHERE key = ? ORDER BY rowid DESC LIMIT 1"
        with closing(sqlite3.connect(data / "store.sqlite")) as store:
            (value,) = store.execute(query, ("/registry/secrets/default/old",)).fetchone()
        return bytes(value)

    with served([], data) as server:
        assert server.request("POST", path, {"metadata": {"name": "old"}, "stringData": {"a": "b"}})[0] == 201
    assert not stored().startswith(b"k8s:enc:")
    with served([f"--encryption-provider-config={tmp_path}/encryption.yaml"], data) as server:
        (tmp_path / ".kube").mkdir()
        shutil.copy(server.kubeconfig, tmp_path / ".kube" / "config")
        environment(tmp_path)
        (tmp_path / "bin" / "kubectl").symlink_to(str(KUBECTL))
        assert "secret/old replaced" in succeed(tmp_path, ["bash", "-e", "-o", "pipefail", "-c", rewrite])
        assert server.request("GET", f"{path}/old")[1]["data"] == {"a": "Yg=="}
    assert stored().startswith(b"k8s:enc:aesgcm:v1:key1:")
