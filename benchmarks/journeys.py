"""
Measure the paths of newcomers: install kubetwist, start it, create a token, a first test and a first plugin.

The scripts of F{tests/e2e/journeys} run one after the other in a new environment, with the wheel of the checkout;
packages come from pip's cache if they are there. For each step: wall time and the CPU time of its commands. The goal is
60 s on two cores from C{pip install} to a test that passed.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.e2e.journeys import first_plugin, first_test, first_token, install, start
from tests.e2e.journeys.steps import Steps, build_wheel, new_environment

#: Steps from C{pip install} to a test that passed.
TO_FIRST_TEST = ("install: pip install kubetwist", "test: pip install pytest kubernetes", "test: first pytest")


def main() -> None:
    """Run all journeys; print a table."""
    with tempfile.TemporaryDirectory(prefix="kubetwist-journeys-") as temporary:
        folder = Path(temporary)
        python = new_environment(folder / "environment")
        os.environ["KUBETWIST_TEST_WHEEL"] = str(build_wheel(python, folder / "build"))
        taken = []
        for journey in (install, start, first_token, first_test, first_plugin):
            steps = Steps(folder / journey.__name__.rpartition(".")[2], python)
            steps.folder.mkdir()
            journey.walk(steps)
            taken += steps.taken
    print(f"on {os.cpu_count()} CPUs, Python {sys.version.split()[0]}")
    print(f"{'step':48} {'wall':>8} {'CPU':>8}")
    together = [row for row in taken if row[0] in TO_FIRST_TEST]
    total = ("from pip install to a test that passed", sum(row[1] for row in together), sum(row[2] for row in together))
    for name, wall, cpu in (*taken, total):
        print(f"{name:48} {wall:6.1f} s {cpu:6.1f} s")


if __name__ == "__main__":
    main()
