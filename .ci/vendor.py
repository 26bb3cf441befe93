#!/usr/bin/env python3
"""
Write the scripts and styles of other projects into F{kubetwist/ui/static/vendor/}, as F{.ci/vendor.toml} lists them.

The packages are downloaded by C{npm pack}, in exactly the listed versions, and refused if their integrity differs.
Files are copied unchanged, with their licences; F{README.txt} lists the packages. A bundle is one file that esbuild
makes of several packages, from an entry file in F{.ci/bundles/}. Files that are not listed are removed, except
declarations for the type checker (C{*.d.mts}), which are ours.

Usage: .ci/vendor.py [--check | --compare]. npm and node must be on PATH. With an option, nothing is written: the exit
code is 1 if a file is missing, unlisted, or differs. C{--compare} downloads the packages; C{--check} needs no network:
it compares the files, the table and the entry files with the digests in F{.ci/vendor.sha256}, which are recorded when
the files are written.

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
ENTRIES = ROOT / ".ci" / "bundles"
#: The digests, in the format of sha256sum, by path in the source.
DIGESTS = TABLE.with_suffix(".sha256")
#: What esbuild is called with, besides the entry file.
BUNDLE_OPTIONS = ("--bundle", "--format=esm", "--minify", "--target=es2022", "--legal-comments=none", "--charset=utf8")
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


def unpack(package: dict[str, Any], modules: Path, archives: Path) -> dict[str, bytes]:
    """
    Download a package, and write its files to where node finds them.

    @param package: Its entry in the table.
    @param modules: A folder C{node_modules}.
    @param archives: A folder for the archive.
    @return: The content of all its files, by path.
    @raise BadPackageError: The integrity differs.
    """
    content = download(package, archives)
    for name, data in content.items():
        path = modules / package["name"] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return content


def licences(contents: dict[str, dict[str, bytes]]) -> bytes:
    """
    Return the licences of packages in one text, each once.

    @param contents: The files of the packages, by the names of the packages.
    @raise BadPackageError: A package has no licence.
    """
    by_text: dict[str, list[str]] = {}
    for name, content in sorted(contents.items()):
        if "LICENSE" not in content:
            raise BadPackageError(f"{name} has no LICENSE")
        by_text.setdefault(content["LICENSE"].decode().strip(), []).append(name)
    return "\n\n".join(f"{', '.join(names)}:\n\n{text}" for text, names in by_text.items()).encode() + b"\n"


def make_bundle(bundle: dict[str, Any], bundler: dict[str, Any], folder: Path) -> dict[str, bytes]:
    """
    Make a bundle.

    @param bundle: Its entry in the table.
    @param bundler: The package of esbuild, in the form that node runs on each platform.
    @param folder: An empty folder.
    @return: The bundle and its licences, by path in F{vendor/}.
    @raise BadPackageError: A package is not the listed one, or has no licence.
    """
    name = bundle["name"]
    modules, tools = folder / "node_modules", folder / "tools"
    contents = {package["name"]: unpack(package, modules, folder) for package in bundle["packages"]}
    unpack(bundler, tools, folder)
    entry = folder / f"{name}.js"
    entry.write_bytes((ENTRIES / entry.name).read_bytes())
    command = ["node", str(tools / bundler["name"] / "bin" / "esbuild"), entry.name, *BUNDLE_OPTIONS]
    made = subprocess.run(command, check=True, stdout=subprocess.PIPE, cwd=folder).stdout
    return {f"{name}/{name}.mjs": made, f"{name}/LICENSE.txt": licences(contents)}


def readme(packages: list[dict[str, Any]], bundles: list[dict[str, Any]]) -> bytes:
    """Return the text of F{README.txt}."""
    lines = ["Files and bundles of other projects. `.ci/vendor.py` of the source writes them.", ""]
    for package in packages:
        names = ", ".join(package["files"].values())
        text = f"{package['name']} {package['version']} ({package['licence']}): {package['use']}. {names}"
        lines += textwrap.wrap(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    for bundle in bundles:
        names = ", ".join(f"{package['name']} {package['version']}" for package in bundle["packages"])
        text = f"{bundle['name']}/{bundle['name']}.mjs ({bundle['licence']}): {bundle['use']}. A bundle of {names}"
        lines += textwrap.wrap(text, 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return "\n".join([*lines, ""]).encode()


def wanted_files() -> dict[str, bytes]:
    """
    Return the content of all files, by path in F{vendor/}.

    @raise BadPackageError: A package is not the listed one, or lacks a listed file.
    """
    table = tomllib.loads(TABLE.read_text("utf-8"))
    packages, bundles = table["package"], table["bundle"]
    wanted = {"README.txt": readme(packages, bundles)}
    for bundle in bundles:
        with tempfile.TemporaryDirectory() as folder:
            wanted |= make_bundle(bundle, table["bundler"], Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        for package in packages:
            content = download(package, Path(folder))
            for source, target in package["files"].items():
                if source not in content:
                    raise BadPackageError(f"{package['name']} {package['version']} has no {source}")
                wanted[target] = content[source]
    return wanted


def written_files() -> dict[str, bytes]:
    """Return the content of the files in F{vendor/} that this command writes, by path in it."""
    return {
        path.relative_to(VENDOR).as_posix(): path.read_bytes()
        for path in VENDOR.rglob("*")
        if path.is_file() and not path.name.endswith(DECLARATIONS)
    }


def differences(wanted: dict[str, bytes], present: dict[str, bytes]) -> dict[str, str]:
    """Return how files differ from the wanted ones, by path: missing, differs, unlisted."""
    found = dict.fromkeys(wanted.keys() - present.keys(), "missing")
    found.update((path, "unlisted") for path in present.keys() - wanted.keys())
    found.update((path, "differs") for path in wanted.keys() & present.keys() if wanted[path] != present[path])
    return found


def digests() -> dict[str, bytes]:
    """Return the SHA-256 digests of the written files, and of what they are made from, by path in the source."""
    sources = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in (TABLE, *ENTRIES.iterdir())}
    folder = VENDOR.relative_to(ROOT).as_posix()
    files = sources | {f"{folder}/{path}": content for path, content in written_files().items()}
    return {path: hashlib.sha256(content).hexdigest().encode() for path, content in sorted(files.items())}


def recorded_digests() -> dict[str, bytes]:
    """Return the recorded digests by path in the source."""
    lines = DIGESTS.read_bytes().splitlines()
    return {path.decode(): digest for digest, path in (line.split(b"  ", 1) for line in lines)}


def write(wanted: dict[str, bytes], changes: dict[str, str]) -> None:
    """Write the files that differ, and record the digests."""
    for path, how in changes.items():
        target = VENDOR / path
        if how == "unlisted":
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(wanted[path])
    DIGESTS.write_bytes(b"".join(b"%b  %b\n" % (digest, path.encode()) for path, digest in digests().items()))


def main(arguments: list[str]) -> int:
    """Write or compare the files."""
    if arguments not in ([], ["--check"], ["--compare"]):
        sys.exit(__doc__)
    if arguments == ["--check"]:
        found = differences(recorded_digests(), digests())
    else:
        try:
            wanted = wanted_files()
        except BadPackageError as error:
            sys.exit(f"vendor: {error}")
        found = differences(wanted, written_files())
    for path, how in sorted(found.items()):
        print(f"vendor: {path}: {how}")
    if not arguments:
        write(wanted, found)
    elif found:
        print("vendor: run .ci/vendor.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
