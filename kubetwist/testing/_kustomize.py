"""Build Kustomize directories with C{kustomize}, or C{kubectl} if the former is not on the path."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from typing import Final

from .manifests import MAX_BYTES, LoadError

#: Seconds that a build may take.
BUILD_TIMEOUT: Final = 60.0
#: The commands, in the order of preference, without the directory.
COMMANDS: Final = (("kustomize", "build"), ("kubectl", "kustomize"))
#: Maximum number of characters of an error of Kustomize.
_MAX_ERROR: Final = 2000


def build(folder: str) -> str:
    """
    Return the objects of a Kustomize directory as YAML. This function blocks.

    @raise LoadError: Neither program is on the path, or the build fails.
    """
    command = _command()
    if command is None:
        raise LoadError(
            f"{folder} is a Kustomize directory, and neither kustomize nor kubectl is on PATH; install one of them, or"
            " load the output of `kustomize build`"
        )
    shown = " ".join([*command, folder])
    # Files and not pipes: the size of the output is known before it is read.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            done = subprocess.run(
                [*command, folder], stdin=subprocess.DEVNULL, stdout=output, stderr=errors, timeout=BUILD_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            raise LoadError(f"{shown}: timeout after {BUILD_TIMEOUT:.0f} s") from None
        if done.returncode:
            errors.seek(0)
            message = errors.read(_MAX_ERROR).decode("utf-8", "replace").strip()
            raise LoadError(f"{shown}: {message or f'exit code {done.returncode}'}")
        if os.fstat(output.fileno()).st_size > MAX_BYTES:
            raise LoadError(f"{shown}: the output has more than {MAX_BYTES >> 20} MiB")
        output.seek(0)
        return output.read().decode("utf-8", "replace")


def _command() -> tuple[str, ...] | None:
    for name, *arguments in COMMANDS:
        program = shutil.which(name)
        if program is not None:
            return (program, *arguments)
    return None
