"""The examples in pages of the documentation: blocks whose first line is a comment with the name of a file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(os.environ.get("KUBETWIST_TEST_DOCS") or Path(__file__).parents[2] / "docs")
_BLOCK = re.compile(r"^```\w+\n# (\S+\.\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
#: Runs pytest with the plugin, also from a checkout, where there is no entry point to find it by.
_PYTEST = """
import importlib.metadata, sys
import pytest
found = importlib.metadata.entry_points(group="pytest11", name="kubetwist")
sys.exit(pytest.main([*sys.argv[1:], *([] if found else ["-p", "kubetwist.testing.pytest_plugin"])]))
"""


def files_of(page: str) -> dict[str, str]:
    """Return the files in a page by name."""
    return dict(_BLOCK.findall((DOCS / page).read_text("utf-8")))


def write_files(folder: Path, page: str, *names: str) -> None:
    """Write files of a page into a folder; all of them if there are no names."""
    files = files_of(page)
    for name in names or files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name])


def run_python(folder: Path, *arguments: str, failed: bool = False) -> str:
    """Run Python in a folder, outside of the project; return its output."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS", "KUBECONFIG"):
        environment.pop(name, None)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=180
    )
    assert bool(done.returncode) is failed, done.stdout + done.stderr
    return done.stdout + done.stderr


def run_pytest(folder: Path, *arguments: str, failed: bool = False, pytest_twisted: bool = False) -> str:
    """Run pytest in a folder; return its output."""
    plugins = [] if pytest_twisted else ["-p", "no:twisted"]
    return run_python(folder, "-c", _PYTEST, "-q", "-p", "no:cacheprovider", *plugins, *arguments, failed=failed)
