#!/usr/bin/env python3
"""
Write the scripts and styles of other projects into F{kubetwist/ui/static/vendor/}, as F{.ci/vendor.toml} lists them.

The packages are downloaded by C{npm pack}, in exactly the listed versions, and refused if their integrity differs.
Files are copied unchanged, with their licences; F{README.txt} lists the packages. Files that are not listed are
removed, except declarations for the type checker (C{*.d.mts}), which are ours.

Usage: .ci/vendor.py [--check]. npm must be on PATH. With C{--check}, nothing is written: the exit code is 1 if a file
is missing, unlisted, or differs.

To update a package, change its version and integrity in F{.ci/vendor.toml}, and run the command.
"""

from __future__ import annotations

import base64
import hashlib
import io
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENDOR = ROOT / "kubetwist" / "ui" / "static" / "vendor"
TABLE = Path(__file__).with_suffix(".toml")
#: Suffix of the files that this command neither writes nor removes.
DECLARATIONS = ".d.mts"


class BadPackageError(Exception):
    """A package is not the listed one."""


def download(package: dict[str, Any], folder: Path) -> dict[str, bytes]:
    """
    Download a package.

    @param package: Its entry in the table.
    @param folder: A folder for the archive.
    @return: The content of all its files, by path.
    @raise BadPackageError: The integrity differs.
    """
    wanted = f"{package['name']}@{package['version']}"
    command = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", str(folder), wanted]
    name = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split()[-1]
    archive = (folder / name).read_bytes()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if integrity != package["integrity"]:
        raise BadPackageError(f"{wanted} has the integrity {integrity} instead of {package['integrity']}")
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        # The first folder is always "package".
        return {
            member.name.partition("/")[2]: file.read()
            for member in tar
            if member.isfile() and (file := tar.extractfile(member)) is not None
        }


def readme(packages: list[dict[str, Any]]) -> bytes:
    """Return the text of F{README.txt}."""
    lines = ["Files of other projects, unchanged. `.ci/vendor.py` of the source writes them.", ""]
    for package in packages:
        names = ", ".join(package["files"].values())
        text = f"{package['name']} {package['version']} ({package['licence']}): {package['use']}. {names}"
        lines += textwrap.wrap(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, ""]).encode()


def wanted_files() -> dict[str, bytes]:
    """
    Return the content of all files, by path in F{vendor/}.

    @raise BadPackageError: A package is not the listed one, or lacks a listed file.
    """
    packages = tomllib.loads(TABLE.read_text("utf-8"))["package"]
    wanted = {"README.txt": readme(packages)}
    with tempfile.TemporaryDirectory() as folder:
        for package in packages:
            content = download(package, Path(folder))
            for source, target in package["files"].items():
                if source not in content:
                    raise BadPackageError(f"{package['name']} {package['version']} has no {source}")
                wanted[target] = content[source]
    return wanted


def differences(wanted: dict[str, bytes]) -> dict[str, str]:
    """Return how files in F{vendor/} differ from the wanted ones, by path: missing, differs, unlisted."""
    present = {
        path.relative_to(VENDOR).as_posix(): path.read_bytes()
        for path in VENDOR.rglob("*")
        if path.is_file() and not path.name.endswith(DECLARATIONS)
    }
    found = dict.fromkeys(wanted.keys() - present.keys(), "missing")
    found.update((path, "unlisted") for path in present.keys() - wanted.keys())
    found.update((path, "differs") for path in wanted.keys() & present.keys() if wanted[path] != present[path])
    return found


def main(arguments: list[str]) -> int:
    """Write or compare the files."""
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    try:
        wanted = wanted_files()
    except BadPackageError as error:
        sys.exit(f"vendor: {error}")
    found = differences(wanted)
    for path, how in sorted(found.items()):
        print(f"vendor: {path}: {how}")
        if arguments:
            continue
        target = VENDOR / path
        if how == "unlisted":
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wanted[path])
    if found and arguments:
        print("vendor: run .ci/vendor.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
