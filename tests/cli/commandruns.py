"""Runs of C{kubetwist} in separate processes."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from twisted.internet.utils import getProcessOutputAndValue


class Ended(NamedTuple):
    """The end of a process."""

    code: int
    out: str
    err: str


async def run_kubetwist(*arguments: str, environment: dict[str, str] | None = None, path: str | None = None) -> Ended:
    """
    Run C{python -m kubetwist} until it ends.

    @param arguments: The arguments after the name of the program.
    @param environment: Variables in addition to the environment of this process.
    @param path: The working directory.
    """
    out, err, code = await getProcessOutputAndValue(
        sys.executable, ["-m", "kubetwist", *arguments], {**os.environ, **(environment or {})}, path
    )
    return Ended(code, out.decode(), err.decode())
