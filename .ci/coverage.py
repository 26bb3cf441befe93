#!/usr/bin/env python3
"""
Print the packages of kubetwist with their coverage, and fail if the total is below `.ci/coverage-floor`.

The floor is a percentage of lines and branches. It is only raised.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FLOOR = Path(__file__).resolve().parent / "coverage-floor"
#: The counts of coverage's summaries that are compared.
PARTS = ("covered_lines", "num_statements", "covered_branches", "num_branches")


def percent(counts: dict[str, int]) -> float:
    """Return the covered lines and branches of a summary in percent."""
    total = counts["num_statements"] + counts["num_branches"]
    return 100 * (counts["covered_lines"] + counts["covered_branches"]) / total if total else 100.0


def main() -> int:
    """Print the table, compare the total; return the exit code."""
    report = Path(os.environ["COVERAGE_FILE"] + ".json")
    subprocess.run([sys.executable, "-m", "coverage", "json", "--quiet", "-o", str(report)], check=True)
    measured = json.loads(report.read_text())
    packages: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(PARTS, 0))
    for name, file in measured["files"].items():
        package = name.rpartition("kubetwist/")[2].partition("/")[0]
        for part in PARTS:
            packages[package][part] += file["summary"][part]
    for package, counts in sorted(packages.items()):
        print(f"{package:24}{counts['num_statements']:8} lines {percent(counts):6.1f} %")
    total, floor = percent(measured["totals"]), float(FLOOR.read_text())
    print(f"coverage: {total:.1f} % of lines and branches, at least {floor} %")
    return int(total < floor)


if __name__ == "__main__":
    sys.exit(main())
