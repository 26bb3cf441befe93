"""Write a directory with C{kube-apiserver}, C{etcd} and C{kubectl}, as C{$KUBEBUILDER_ASSETS} names it."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

#: The second line of each program, by which it is recognized.
MARK: Final = "# Written by twist kubeapi-envtest."

_ETCD: Final = """#!/bin/sh
{mark}
exec {python} -I -S {program} "$@"
"""

_KUBE_APISERVER: Final = """#!/bin/sh
{mark}
exec {python} -P -m kubetwist.testing.envtest._kubeapiserver {flags}"$@"
"""

_KUBECTL: Final = """#!/bin/sh
{mark}
# Runs the first kubectl on $PATH that is another program.
IFS=:
for folder in $PATH; do
    program=${{folder:-.}}/kubectl
    if [ -f "$program" ] && [ -x "$program" ]; then
        {{ read -r first; read -r second; }} <"$program" 2>/dev/null
        [ "$second" = '{mark}' ] || exec "$program" "$@"
    fi
done
echo 'kubectl: not found on $PATH; install kubectl, which kubetwist does not contain' >&2
exit 127
"""


class AssetsError(Exception):
    """The directory cannot be written; the text is one line."""


def scripts(flags: Sequence[str]) -> Mapping[str, str]:
    """
    Return the contents of the programs by their names.

    @param flags: Flags of C{twist kubeapi} that the flags of the test framework can override.
    """
    python = shlex.quote(sys.executable)
    program = shlex.quote(str(Path(__file__).with_name("_etcd.py")))
    quoted = "".join(f"{shlex.quote(flag)} " for flag in flags)
    return {
        "etcd": _ETCD.format(mark=MARK, python=python, program=program),
        "kube-apiserver": _KUBE_APISERVER.format(mark=MARK, python=python, flags=quoted),
        "kubectl": _KUBECTL.format(mark=MARK),
    }


def write_assets(folder: Path, flags: Sequence[str] = ()) -> Path:
    """
    Write the programs; the programs of an earlier call are replaced.

    Processes can do this at the same time, and while the programs run.

    @param flags: As for L{scripts}.
    @return: The absolute path of the directory.
    @raise AssetsError: It cannot be written, or has programs of other origin.
    """
    folder = folder.absolute()
    contents = scripts(flags)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in contents:
            _check_replaceable(folder / name)
        for name, content in contents.items():
            _write(folder / name, content)
    except OSError as error:
        raise AssetsError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    return folder


def _check_replaceable(path: Path) -> None:
    """
    @raise AssetsError: There is a file that L{write_assets} has not written.
    """
    if not os.path.lexists(path):
        return
    with path.open("rb") as file:
        lines = file.read(1024).splitlines()
    if lines[1:2] != [MARK.encode()]:
        raise AssetsError(f"{path} exists, and was not written by this command: choose another directory")


def _write(path: Path, content: str) -> None:
    """Write a program: it is complete when it has its name."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)
        os.chmod(temporary, 0o755)  # noqa: S103 # as installed programs
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
