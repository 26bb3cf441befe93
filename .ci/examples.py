"""
Test each package in a folder, and one that C{twist kubeapi-plugin} writes, installed from its wheel beside kubetwist.

Usage: C{examples.py FOLDER}, with the Python in which the packages are installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

GENERATED = "generated-plugins"
KINDS = "admission,authorizer,authenticator,controller,storage,converter"


def run(folder: Path, *command: str) -> None:
    """Run Python with arguments in a folder; exit if it fails."""
    print("$", *command, flush=True)
    if subprocess.run([sys.executable, *command], cwd=folder, check=False).returncode:
        sys.exit(1)


def packages_of(project: Path) -> list[str]:
    """Return the names of the packages of a project."""
    return sorted(path.parent.name for path in project.glob("*/__init__.py"))


def uses_pytest(project: Path) -> bool:
    """Return whether the tests of a project are for pytest; plugins are tested with trial."""
    metadata = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    tests: list[str] = metadata.get("optional-dependencies", {}).get("test", [])
    return any(requirement.startswith("pytest") for requirement in tests)


def main() -> None:
    """Build, install and test all packages."""
    (source,) = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as temporary:
        # The packages are built from copies: setuptools writes into the folder. Tests run in an empty folder, so that
        # they import what is installed.
        work, wheels, empty = (Path(temporary) / name for name in ("projects", "wheels", "empty"))
        shutil.copytree(source, work, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
        empty.mkdir()
        run(work, "-m", "twisted", "kubeapi-plugin", GENERATED, f"--kind={KINDS}")
        run(work / GENERATED, "-m", "ruff", "check", "--isolated", "--line-length=120", "--select=E,F,I,W,B,UP", ".")
        run(work / GENERATED, "-m", "ruff", "format", "--isolated", "--line-length=120", "--check", ".")
        projects = sorted(path.parent for path in work.glob("*/pyproject.toml"))
        for project in projects:
            # One after the other: an admission plugin that is installed is enabled in the servers of all tests.
            folder = wheels / project.name
            run(empty, "-m", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}", str(project))
            (wheel,) = folder.glob("*.whl")
            if uses_pytest(project):
                run(empty, "-m", "pip", "install", "--quiet", f"{wheel}[test]")
                run(empty, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--pyargs", *packages_of(project))
            else:
                run(empty, "-m", "pip", "install", "--quiet", str(wheel))
                run(empty, "-b", "-Wd", "-m", "twisted.trial", "--random=0", *packages_of(project))
            run(empty, "-m", "pip", "uninstall", "--quiet", "--yes", wheel.name.partition("-")[0])


if __name__ == "__main__":
    main()
