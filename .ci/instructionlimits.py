#!/usr/bin/env python3
"""
Count the instructions of requests (`benchmarks/instructions.py`); fail above the limits in `.ci/instructions.csv`.

Usage: .ci/instructionlimits.py [--update]

A count that is more than 5 % above its limit fails (the event to one watcher: 10 %, because it is the difference of two
counts that are 25 times as large). One that is more than that below asks for a lower limit. `--update`
writes the counts of this run as the limits of this build of Python, with which they belong together. For another build,
limits are scaled by the loop that is counted for calibration, and a count may be 15 % above.
"""

from __future__ import annotations

import argparse
import csv
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMITS = HERE / "instructions.csv"
SCRIPT = HERE.parent / "benchmarks" / "instructions.py"
TOLERANCE = 0.05
#: After the scaling, the counts of two builds of a minor version differed by up to 5 %.
TOLERANCE_OTHER_BUILD = 0.15
#: Figures that vary more between two runs, with what they may be above and below.
VARYING = {"event1": 0.1}
CALIBRATION = "calibration"

#: Thousands of instructions by figure.
Counts = dict[str, float]


def this_build() -> str:
    """Return the version of Python and its compiler."""
    return f"{platform.python_version()} {platform.python_compiler()}"


def read_limits(text: str) -> dict[str, Counts]:
    """Return the limits by build, from lines of build, figure and thousands of instructions."""
    limits: dict[str, Counts] = {}
    for build, figure, thousands in list(csv.reader(text.splitlines()))[1:]:
        limits.setdefault(build, {})[figure] = float(thousands)
    return limits


def format_limits(limits: dict[str, Counts]) -> str:
    """Return the text that L{read_limits} reads."""
    lines = ["python,figure,thousand instructions"]
    for build, counts in sorted(limits.items()):
        lines += [f"{build},{figure},{thousands:.1f}" for figure, thousands in sorted(counts.items())]
    return "\n".join(lines) + "\n"


def limits_of(limits: dict[str, Counts], build: str, counts: Counts) -> tuple[Counts, float]:
    """
    Return the limits of a build and the tolerance.

    @param limits: The limits of known builds; at least one.
    @param counts: The counts of this run, for the calibration of another build.
    """
    if build in limits:
        return limits[build], TOLERANCE
    minor = build.partition(" ")[0].rpartition(".")[0]
    known = next((one for name, one in limits.items() if name.startswith(f"{minor}.")), next(iter(limits.values())))
    scale = counts[CALIBRATION] / known[CALIBRATION]
    return {figure: thousands * scale for figure, thousands in known.items()}, TOLERANCE_OTHER_BUILD


def compare(limits: Counts, tolerance: float, counts: Counts) -> Iterator[tuple[bool, str]]:
    """Yield for each figure whether it fails, and a line about it."""
    for figure, count in sorted(counts.items()):
        limit = limits.get(figure)
        if limit is None:
            yield True, f"instructions: {figure}: {count:.1f} thousand, without a limit"
            continue
        change, allowed = count / limit - 1, max(tolerance, VARYING.get(figure, 0.0))
        # The loop is no code of kubetwist.
        failed = change > allowed and figure != CALIBRATION
        note = ", TOO MANY" if failed else ", lower the limit with --update" if change < -allowed else ""
        yield failed, f"instructions: {figure}: {count:.1f} thousand, {change:+.1%} of {limit:.1f}{note}"
    for figure in sorted(limits.keys() - counts.keys()):
        yield True, f"instructions: {figure}: not counted"


def count() -> Counts:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "counts.csv")
        subprocess.run([sys.executable, str(SCRIPT), "--csv", str(path)], check=True, stdout=subprocess.DEVNULL)
        return {figure: float(thousands) for figure, thousands in csv.reader(path.read_text().splitlines())}


def main() -> int:
    """Count and compare; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the counts as limits of this build of Python")
    options = parser.parse_args()
    limits = read_limits(LIMITS.read_text()) if LIMITS.exists() else {}
    build, counts = this_build(), count()
    if options.update:
        LIMITS.write_text(format_limits({**limits, build: counts}))
        return 0
    known, tolerance = limits_of(limits, build, counts)
    results = list(compare(known, tolerance, counts))
    print(*(line for _, line in results), sep="\n")
    failed = sum(failed for failed, _ in results)
    print(f"instructions: {failed} of {len(counts)} figures failed, with {tolerance:.0%} for {build}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
