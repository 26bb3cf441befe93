"""Checks of the limits of a process: open files, memory, processors; and of versions and plugins."""

from __future__ import annotations

import os
import re
import resource
import sqlite3
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Final

from attrs import frozen

from ...http.connection.memorylimit import group_limit
from .findings import Finding, error, note, ok, warning

#: Open files that the server needs beside connections.
_OWN_FILES: Final = 64
_FEW_FILES: Final = 4096
_LEAST_FILES: Final = 256
#: Memory, in bytes: of a server without objects, and by byte of the store (docs/operations.md).
BASE_MEMORY: Final = 100 << 20
MEMORY_PER_BYTE: Final = 1.3
_OLDEST_SQLITE: Final = (3, 35, 0)
_OLDEST_PYTHON: Final = (3, 11)
#: A requirement of the metadata of a package (PEP 508), as this project writes it.
_REQUIREMENT: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?\s*(>=\s*(?P<least>[0-9.]+))?")


@frozen
class ProcessFacts:
    """
    Facts about the limits of a process.

    @ivar open_files: The limit to which a server raises its number of open files.
    @ivar wanted_connections: C{--max-connections-per-address}; 0 for a share of the limit.
    @ivar memory_limit: Bytes that the server may use; 0 for no limit.
    @ivar store_size: Bytes of the store; 0 without one.
    @ivar processors: Processors that the process may use.
    @ivar workers: C{--workers}.
    """

    open_files: int
    wanted_connections: int
    memory_limit: int
    store_size: int
    processors: int
    workers: int


def read_process(connections: int, memory_limit: int | None, store: Path | None, workers: int) -> ProcessFacts:
    """
    Read the facts.

    @param connections: C{--max-connections-per-address}.
    @param memory_limit: C{--memory-limit}; L{None} for the limit of the control group.
    @param store: The file of the store, which need not exist; L{None} for another backend.
    @param workers: C{--workers}.
    """
    size = 0
    if store is not None:
        for path in (store, store.with_name(store.name + "-wal")):
            if path.exists():
                size += path.stat().st_size
    limit = group_limit() if memory_limit is None else memory_limit
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = sys.maxsize if hard == resource.RLIM_INFINITY else hard
    return ProcessFacts(files, connections, limit, size, len(os.sched_getaffinity(0)), workers)


def judge_files(facts: ProcessFacts) -> Iterator[Finding]:
    """Judge the limit of open files."""
    limit = "no limit" if facts.open_files == sys.maxsize else f"a limit of {facts.open_files}"
    message = f"there is {limit} of open files (ulimit -Hn)"
    if facts.wanted_connections + _OWN_FILES > facts.open_files:
        yield error(
            "limits/files",
            f"{message}, fewer than --max-connections-per-address={facts.wanted_connections} needs",
            "raise the limit (LimitNOFILE= of systemd, ulimit -n), or lower the flag",
        )
    elif facts.open_files < _LEAST_FILES:
        yield error("limits/files", message, "raise the limit: the server needs a file for each connection")
    elif facts.open_files < _FEW_FILES:
        yield warning(
            "limits/files", message, "raise the limit (LimitNOFILE= of systemd, ulimit -n): one file per connection"
        )
    else:
        yield ok("limits/files", message)


def judge_memory(facts: ProcessFacts) -> Iterator[Finding]:
    """Judge the memory limit against the size of the store. With workers, each process has all objects."""
    processes = facts.workers + 1 if facts.workers else 1
    needed = processes * (BASE_MEMORY + int(facts.store_size * MEMORY_PER_BYTE))
    if not facts.memory_limit:
        yield note(
            "limits/memory",
            f"there is no memory limit; the objects need about {needed >> 20} MiB",
            "set --memory-limit or a limit of the control group, so that the server refuses requests in time",
        )
        return
    message = f"the memory limit is {facts.memory_limit >> 20} MiB, and the objects need about {needed >> 20} MiB"
    if needed > facts.memory_limit:
        yield error("limits/memory", message, "raise the limit, delete objects, or use fewer workers")
    elif needed > facts.memory_limit // 2:
        yield warning("limits/memory", message, "raise the limit: requests are refused when memory is short")
    else:
        yield ok("limits/memory", message)


def judge_processors(facts: ProcessFacts) -> Iterator[Finding]:
    """Judge the number of workers against the processors."""
    processes = facts.workers + 1 if facts.workers else 1
    message = f"{processes} processes on {facts.processors} processors"
    if facts.workers and processes > facts.processors:
        yield warning("limits/processors", message, f"use --workers={max(facts.processors - 1, 0)}, or auto")
    elif not facts.workers and facts.processors > 2:
        yield note(
            "limits/processors", message, "--workers=auto uses more of them (docs: operations, several processes)"
        )
    else:
        yield ok("limits/processors", message)


def installed_versions(package: str) -> dict[str, tuple[str, str]]:
    """
    Return the installed and the least version of each package that a package needs, by name.

    @param package: The package. Requirements of its extras are left out, and other conditions than C{>=} ignored.
    @return: C{(installed, least)}; C{installed} is C{""} for a missing package.
    """
    found = {}
    for text in requires(package) or ():
        match = _REQUIREMENT.match(text)
        if match is None or "extra ==" in text:
            continue
        try:
            installed = version(match["name"])
        except PackageNotFoundError:
            installed = ""
        found[match["name"]] = installed, match["least"] or "0"
    return found


def judge_versions(
    packages: dict[str, tuple[str, str]], python: tuple[int, ...], sqlite: tuple[int, ...], implementation: str
) -> Iterator[Finding]:
    """
    Judge versions.

    @param packages: As returned by L{installed_versions}.
    @param python: The version of Python.
    @param sqlite: The version of SQLite.
    @param implementation: The implementation of Python.
    """
    message = f"{implementation} {_dotted(python)}, SQLite {_dotted(sqlite)}"
    problems = [
        f"{name} {installed or 'is not installed'} ({least} is needed)"
        for name, (installed, least) in packages.items()
        if not installed or _numbers(installed) < _numbers(least)
    ]
    if python[:2] < _OLDEST_PYTHON:
        yield error("versions", message, f"use Python {_dotted(_OLDEST_PYTHON)} or newer")
    elif sqlite < _OLDEST_SQLITE:
        yield error("versions", message, f"use SQLite {_dotted(_OLDEST_SQLITE)} or newer")
    elif problems:
        yield error("versions", f"{message}: {', '.join(problems)}", "install kubetwist again, with its requirements")
    elif implementation != "CPython":
        yield note("versions", message, "only CPython is tested")
    else:
        yield ok("versions", f"{message}, and {len(packages)} packages in the required versions")


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release numbers of a version, without trailing zeros."""
    release = re.match(r"[0-9.]+", text)
    numbers = [int(one) for one in release[0].split(".") if one] if release else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def check_versions() -> Iterator[Finding]:
    """Check the versions of this process."""
    python = tuple(sys.version_info[:3])
    implementation = sys.implementation.name.replace("cpython", "CPython")
    yield from judge_versions(installed_versions("kubetwist"), python, sqlite3.sqlite_version_info, implementation)
