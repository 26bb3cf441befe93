"""Run checks concurrently, each with a timeout."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from time import monotonic

from attrs import frozen

from .findings import Finding, error, warning


@frozen
class Check:
    """
    A check.

    @ivar name: The part that it checks, the first segment of the identifiers of its findings.
    @ivar run: Returns the findings. It may block, and runs in a thread.
    """

    name: str
    run: Callable[[], Iterable[Finding]]


def run_checks(checks: Sequence[Check], timeout: float) -> list[Finding]:
    """
    Run checks concurrently, and return their findings in the order of the checks.

    A check that does not end in time, or that fails, is a finding itself. Its thread is not stopped: a thread that
    waits for a dead file server cannot be ended, and does not keep the process from exiting.

    @param timeout: Seconds for all checks together.
    """
    results: queue.SimpleQueue[tuple[int, list[Finding]]] = queue.SimpleQueue()

    def run(number: int, check: Check) -> None:
        try:
            results.put((number, list(check.run())))
        except Exception as problem:
            message = f"the check failed: {type(problem).__name__}: {problem}"
            results.put((number, [error(f"{check.name}/failed", message, "report this as a bug of kubetwist")]))

    for number, check in enumerate(checks):
        threading.Thread(target=run, args=(number, check), daemon=True, name=check.name).start()
    deadline = monotonic() + timeout
    found: dict[int, list[Finding]] = {}
    while len(found) < len(checks):
        try:
            number, findings = results.get(timeout=max(deadline - monotonic(), 0.0))
        except queue.Empty:
            break
        found[number] = findings
    return [
        finding for number, check in enumerate(checks) for finding in found.get(number, [_timed_out(check, timeout)])
    ]


def _timed_out(check: Check, timeout: float) -> Finding:
    return warning(
        f"{check.name}/timeout",
        f"the check did not end within {timeout:g} s",
        "look for a disk, a file server, a name server or another server that does not answer; --timeout allows more",
    )
