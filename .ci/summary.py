#!/usr/bin/env python3
"""
Print the results of a run in short: environments, totals, and the tests that failed, each with its exception.

Usage: .ci/summary.py FOLDER, which has the output of tox in `checks.log`, `e2e.log`, `suites.log`, `openapi.log` and
`parity.log`, and the output of .ci/pythons in `pythons.log`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

_CHECKS = (
    r" +[a-z0-9]+: (OK|FAIL|SKIP)|✖ \S|\S+: error TS|Ran [0-9]+ tests|(PASSED|FAILED) \(|=+ .*(passed|failed)"
    r"|instructions: .*(TOO MANY|--update|without a limit|not counted|figures failed)"
)
#: The lines that are printed as they are, by file.
KEPT = {
    "checks.log": _CHECKS,
    "e2e.log": _CHECKS,
    "suites.log": _CHECKS,
    "openapi.log": r"openapi: ",
    "pythons.log": r"pythons: ",
    "parity.log": (
        r"parity: ([0-9]|at or|below|corpus|[a-z0-9]+: [a-z]+ (code|shape|exact)|no |the comparison|[a-z0-9]+ not )"
        r"|area |[a-z]+ +[0-9]+ .*%"
    ),
}
MAX_LENGTH = 240
#: What tox prints before the output of a command.
_ENVIRONMENT = re.compile(r"([a-z0-9]+): commands(?:_pre|_post)?\[\d+\]> ")
_PYTEST = re.compile(r"(?:FAILED|ERROR) \S+\.py\b")
#: Trial separates the blocks of its report by these; the last one ends with a line of the other character.
_SEPARATORS = ("=" * 79, "-" * 79)


def failures_of_trial(block: list[str]) -> Iterator[str]:
    """
    Yield the failed tests of one block of trial's report, with the exception they have in common.

    @param block: The lines between two separators: a title, a traceback, an empty line, and the ids of tests.
    """
    if not block or block[0] not in ("[FAIL]", "[ERROR]"):
        return
    title, *lines = block
    ids: list[str] = []
    while lines and re.fullmatch(r"[\w.<>\[\]-]+", lines[-1]):
        ids.insert(0, lines.pop())
    # The exception is the first line after the frames that is not indented. Its message may have further lines.
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    after = lines[frames[-1] + 1 :] if frames else lines
    exception = next((line for line in after if line and not line.startswith((" ", "Traceback"))), "")
    for one in ids or ["(no test)"]:
        yield f"{title} {one}: {exception}"


def summarize(kept: str, lines: list[str]) -> Iterator[str]:
    """
    Yield the lines of a summary, in the order of the output.

    @param kept: A regular expression; lines that begin with a match are part of the summary.
    @param lines: What tox has printed.
    """
    environment = ""
    block: list[str] | None = None
    for line in lines:
        if match := _ENVIRONMENT.match(line):
            environment = match.group(1)
        if line in _SEPARATORS:
            for failure in failures_of_trial(block or []):
                yield f"  {environment}: {failure}"[:MAX_LENGTH]
            block = []
        elif block is not None:
            block.append(line)
        if _PYTEST.match(line):
            yield f"  {environment}: {line}"[:MAX_LENGTH]
        elif re.match(kept, line):
            yield line


def main() -> int:
    """Print the summaries of the files; return the exit code."""
    folder = Path(sys.argv[1])
    for name, kept in KEPT.items():
        path = folder / name
        if path.exists():
            for line in summarize(kept, path.read_text(errors="replace").splitlines()):
                print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
