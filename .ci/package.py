"""
Build the sdist and the wheel, and check them.

The sdist has everything that is tracked and needed to build and to test; the wheel that is built from it equals the
wheel that is built from the tree; C{twine check --strict} passes; the wheel has the command, the manual pages and the
plugins; C{towncrier} can make the change log of the version.

Usage: package.py FOLDER, into which sdist and wheel are copied; a temporary one without it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: Tracked files that an sdist does not need: settings of the repository itself.
OMITTED = (".github/", ".gitignore", ".pre-commit-config.yaml", ".proselintrc.json", "newsfragments/")
#: Files of the wheel beside the modules; C{{version}} is the version.
WHEEL_FILES = (
    "twisted/plugins/kubetwist_plugin.py",
    "kubetwist/py.typed",
    "kubetwist/ui/static/index.html",
    "kubetwist-{version}.data/data/share/man/man1/kubetwist.1",
    "kubetwist-{version}.data/data/share/man/man1/kubetwist-serve.1",
    "kubetwist-{version}.dist-info/entry_points.txt",
)


def tracked_files() -> list[str]:
    """Return the paths of the files that git tracks."""
    output = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [path for path in output.decode().split("\0") if path and (ROOT / path).is_file()]


def build(source: Path, target: Path, kind: str) -> Path:
    """
    Build a distribution.

    @param source: The folder with F{pyproject.toml}.
    @param target: The folder for the distribution.
    @param kind: C{"sdist"} or C{"wheel"}.
    """
    target.mkdir(parents=True)
    command = [sys.executable, "-m", "build", f"--{kind}", "--outdir", str(target), str(source)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"package: {kind} failed:\n{done.stdout}")
    [built] = target.iterdir()
    return built


def content(path: Path) -> dict[str, bytes]:
    """Return the files in a wheel."""
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def differences(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Return the names of files that are not in both wheels with the same content."""
    return sorted(name for name in {*one, *other} if one.get(name) != other.get(name))


def missing_in_sdist(names: set[str], tracked: list[str]) -> list[str]:
    """Return the tracked files that an sdist needs and does not have."""
    return [path for path in tracked if not path.startswith(OMITTED) and path not in names]


def check(folder: Path) -> list[str]:
    """
    Build and check everything.

    @param folder: An empty folder.
    @return: The mistakes.
    """
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    tree, tracked = folder / "tree", tracked_files()
    for path in tracked:
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, tree / path)
    mistakes = []
    draft = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", version],
        cwd=tree,
        capture_output=True,
        text=True,
    )
    if draft.returncode or f"## {version} " not in draft.stdout:
        mistakes.append(f"towncrier cannot make the change log: {draft.stderr.strip()}")
    sdist = build(tree, folder / "sdist", "sdist")
    shutil.rmtree(tree / "kubetwist.egg-info", ignore_errors=True)
    of_tree = content(build(tree, folder / "fromtree", "wheel"))
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    [unpacked] = (folder / "unpacked").iterdir()
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    mistakes += [f"not in the sdist: {path}" for path in missing_in_sdist(names, tracked)]
    wheel = build(unpacked, folder / "wheel", "wheel")
    of_sdist = content(wheel)
    mistakes += [f"differs in the wheels of sdist and tree: {name}" for name in differences(of_sdist, of_tree)]
    expected = (name.format(version=version) for name in WHEEL_FILES)
    mistakes += [f"not in the wheel: {name}" for name in expected if name not in of_sdist]
    twine = [sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel)]
    if subprocess.run(twine).returncode:
        mistakes.append("twine check failed")
    print(f"package: {sdist.name} {sdist.stat().st_size >> 10} KiB, {wheel.name} {wheel.stat().st_size >> 10} KiB")
    return mistakes


def main(arguments: list[str]) -> int:
    """Run the checks, and keep the distributions if a folder is given."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mistakes = check(folder)
        for mistake in mistakes:
            print(f"package: {mistake}")
        if arguments and not mistakes:
            target = Path(arguments[0])
            target.mkdir(parents=True, exist_ok=True)
            for kind in ("sdist", "wheel"):
                for path in (folder / kind).iterdir():
                    shutil.copy2(path, target / path.name)
        return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
