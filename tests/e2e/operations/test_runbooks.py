"""Runs the commands of the runbooks with a server, or with an etcd."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubetwist.testing import SubprocessServer
from kubetwist.testing.etcd import EtcdServer, etcd_skip_reason

from ..conftest import KUBECTL
from ..pages import DOCS

#: The member of etcd in the page.
MEMBER = "https://10.0.0.1:2379"
#: The folder of the backups in the page.
BACKUPS = "/var/backups/kubetwist"
TIMEOUT = 120


def blocks() -> list[tuple[str, str]]:
    """Return the commands of each section, with its name."""
    found = []
    for section in (DOCS / "runbooks.md").read_text("utf-8").split("\n## ")[1:]:
        name = section.partition("\n")[0]
        found += [
            (name, line) for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) for line in block.splitlines()
        ]
    return found


ALL = blocks()


def run(command: str, folder: Path, **variables: str) -> None:
    """Run a command in a shell; it must succeed, and so must each command of a pipe."""
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    # head ends before the program that writes to it.
    assert done.returncode in ((0, 141) if "head" in command else (0,)), f"{command}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    """The kubeconfig of a server with objects that the commands list."""
    with SubprocessServer("--storage-backend=sqlite", timeout=TIMEOUT) as server:
        yield server.data_dir / "admin.kubeconfig"


@pytest.mark.kubectl
@pytest.mark.parametrize(("alert", "command"), [one for one in ALL if not one[1].startswith("etcdctl")])
def test_commands(alert: str, command: str, kubeconfig: Path, tmp_path: Path) -> None:
    """The commands for a server succeed with an administrator's kubeconfig."""
    program = tmp_path / "kubectl"
    program.symlink_to(Path(KUBECTL).resolve())
    if BACKUPS in command:
        run(f"{sys.executable} -m kubetwist backup --data-dir={kubeconfig.parent} --into={tmp_path}/backups", tmp_path)
        command = command.replace(BACKUPS, f"{tmp_path}/backups")
    run(command, tmp_path, KUBECONFIG=str(kubeconfig), PATH=f"{tmp_path}:{os.environ['PATH']}", HOME=str(tmp_path))


@pytest.mark.skipif(bool(etcd_skip_reason()) or not shutil.which("etcdctl"), reason="etcd or etcdctl is not installed")
def test_etcd(tmp_path: Path) -> None:
    """The commands for etcd succeed."""
    commands = [command for _, command in ALL if command.startswith("etcdctl")]
    assert commands
    with EtcdServer() as etcd:
        for command in commands:
            assert MEMBER in command
            run(command.replace(MEMBER, etcd.urls[0]), tmp_path, ETCDCTL_API="3")
