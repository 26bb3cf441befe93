"""Runs the commands of operators, and the blocks of pages that have them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from kubetwist.testing import SubprocessServer

from ..pages import DOCS


def start_server(data: Path, *flags: str) -> SubprocessServer:
    """Return a server with SQLite, to be used in a C{with} statement; a busy machine may start it slowly."""
    return SubprocessServer("--storage-backend=sqlite", *flags, data_dir=data, timeout=180)


def command(*arguments: str) -> list[str]:
    """Return the command line of a subcommand of C{kubetwist}, such as C{"backup"}."""
    return [sys.executable, "-m", "kubetwist", *arguments]


def kubetwist(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300)


def succeed(*arguments: str) -> str:
    """Return the output of a command that must succeed."""
    done = kubetwist(*arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    return done.stdout


def fail(*arguments: str) -> str:
    """Return the last line of the error output of a command that must fail."""
    done = kubetwist(*arguments)
    assert done.returncode == 1, done.stderr + done.stdout
    assert "Traceback" not in done.stderr + done.stdout
    return done.stderr.splitlines()[-1]


def block(page: str, first: str, replaced: dict[str, str]) -> str:
    """
    Return the block of a page that begins with a text.

    @param replaced: Paths of the page, with those to use instead.
    """
    (script,) = [
        found
        for found in re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
        if found.startswith(first)
    ]
    for path, other in replaced.items():
        script = script.replace(path, other)
    return str(script)


def console(page: str) -> list[list[str]]:
    """Return the commands of a page's blocks that show a terminal, split into words."""
    blocks = re.findall(r"```console\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", "").splitlines()
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.startswith("$ ")]


def run_block(folder: Path, page: str, first: str, replaced: dict[str, str]) -> str:
    """Run a block of a page in a shell where C{kubetwist} is the tested one; return its output."""
    prelude = f'kubetwist() {{ "{sys.executable}" -m kubetwist "$@"; }}\n'
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", prelude + block(page, first, replaced)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
