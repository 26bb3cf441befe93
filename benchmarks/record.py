"""
Run benchmarks on a quiet machine, and append their figures to F{benchmarks/history.csv}.

Usage: python benchmarks/record.py [--note TEXT] [--dry-run] [BENCHMARK ...]

  rates         rates.py --objects 10000: rates of the verbs, and their ratios to the yardstick
  mixed         mixed.py: p99 in ms at 200 mixed requests per second
  rollout       rollout.py: seconds and CPU seconds of each phase
  instructions  instructions.py: thousands of instructions per request

Before each benchmark, and after it, the processors are watched for some seconds: other programs may use at most 5 % of
them, and the hypervisor may keep at most 1 %, also while the benchmark runs. If a limit is exceeded, nothing is
recorded. Counts of instructions need no quiet machine. The checkout must have no changes, because a figure belongs to
a commit.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from attrs import frozen

HERE: Final = Path(__file__).resolve().parent
HISTORY: Final = HERE / "history.csv"
COLUMNS: Final = ("date", "commit", "machine", "figure", "value", "unit", "note")
#: The largest shares of all processors' time that other programs use, and that the hypervisor keeps.
MAX_BUSY: Final = 0.05
MAX_STOLEN: Final = 0.01
#: Seconds for which the processors are watched.
WATCHED_SECONDS: Final = 5.0


class Figure(NamedTuple):
    """One figure of a benchmark."""

    name: str
    value: float
    unit: str


class ProcessorTimes(NamedTuple):
    """The times of all processors since the start of the machine, in ticks."""

    total: int
    idle: int
    stolen: int

    @classmethod
    def parse(cls, text: str) -> ProcessorTimes:
        """Read the first line of F{/proc/stat}."""
        # user nice system idle iowait irq softirq steal; the times of guests are part of user's.
        ticks = [int(field) for field in text.splitlines()[0].split()[1:9]]
        return cls(sum(ticks), ticks[3] + ticks[4], ticks[7])

    @classmethod
    def read(cls) -> ProcessorTimes:
        """Return the present times."""
        return cls.parse(Path("/proc/stat").read_text())


def disturbance(before: ProcessorTimes, after: ProcessorTimes, *, idle: bool) -> str:
    """
    Return what disturbs measurements between two times; C{""} if nothing does.

    @param idle: Whether the processors were to be idle; otherwise only the time that the hypervisor keeps counts.
    """
    total = max(after.total - before.total, 1)
    stolen = (after.stolen - before.stolen) / total
    if stolen > MAX_STOLEN:
        return f"the hypervisor keeps {stolen:.1%} of the processors"
    busy = 1 - (after.idle - before.idle) / total
    if idle and busy > MAX_BUSY:
        return f"other programs use {busy:.1%} of the processors"
    return ""


def rates_figures(output: str) -> Iterator[Figure]:
    """Yield the figures of F{rates.py}."""
    for name, rate, ratio, p99 in re.findall(r"^(\w+) +([\d.]+) +([\d.]+) +([\d.]+) +\d+$", output, re.M):
        yield Figure(f"{name} rate", float(rate), "1/s")
        yield Figure(f"{name} over yardstick", float(ratio), "ratio")
        if float(p99):
            # The fan-out has none.
            yield Figure(f"{name} p99", float(p99), "ms")
    for memory in re.findall(r"^rss +([\d.]+) MB$", output, re.M):
        yield Figure("resident", float(memory), "MB")


def mixed_figures(output: str) -> Iterator[Figure]:
    """Yield the figures of F{mixed.py}."""
    for verb, p99 in re.findall(r"^(\w+) +\d+ +[\d.]+ +([\d.]+) +[\d.]+$", output, re.M):
        yield Figure(f"mixed {verb} p99", float(p99), "ms")


def rollout_figures(output: str) -> Iterator[Figure]:
    """Yield the figures of F{rollout.py}."""
    for phase, seconds, cpu in re.findall(r"^(\w+) +([\d.]+) +([\d.]+) +\d+$", output, re.M):
        yield Figure(f"rollout {phase}", float(seconds), "s")
        yield Figure(f"rollout {phase} cpu", float(cpu), "s")


def instructions_figures(output: str) -> Iterator[Figure]:
    """Yield the figures of F{instructions.py}."""
    for name, count in re.findall(r"^(\w+) +([\d.]+) thousand instructions$", output, re.M):
        yield Figure(f"{name} instructions", float(count), "thousand")


@frozen
class Benchmark:
    """
    A script and how its output is read.

    @ivar needs_quiet: Whether other load changes the figures.
    """

    command: tuple[str, ...]
    figures: Callable[[str], Iterator[Figure]]
    needs_quiet: bool = True


BENCHMARKS: Final = {
    "rates": Benchmark(("rates.py", "--objects", "10000"), rates_figures),
    "mixed": Benchmark(("mixed.py",), mixed_figures),
    "rollout": Benchmark(("rollout.py",), rollout_figures),
    "instructions": Benchmark(("instructions.py",), instructions_figures, needs_quiet=False),
}


def check_idle() -> None:
    """
    Watch the processors.

    @raise SystemExit: Something uses them.
    """
    before = ProcessorTimes.read()
    time.sleep(WATCHED_SECONDS)
    found = disturbance(before, ProcessorTimes.read(), idle=True)
    if found:
        raise SystemExit(f"record: the machine is not quiet: {found}")


def run(benchmark: Benchmark) -> list[Figure]:
    """
    Run a benchmark and return its figures.

    @raise SystemExit: The machine was not quiet, or the benchmark failed.
    """
    if benchmark.needs_quiet:
        check_idle()
    before = ProcessorTimes.read()
    script, *arguments = benchmark.command
    done = subprocess.run([sys.executable, str(HERE / script), *arguments], stdout=subprocess.PIPE, text=True)
    found = disturbance(before, ProcessorTimes.read(), idle=False)
    print(done.stdout, end="")
    if done.returncode:
        raise SystemExit(f"record: {script} failed with exit code {done.returncode}")
    if benchmark.needs_quiet:
        if found:
            raise SystemExit(f"record: the machine was not quiet: {found}")
        check_idle()
    figures = list(benchmark.figures(done.stdout))
    if not figures:
        raise SystemExit(f"record: {script} has printed no figures")
    return figures


def describe_machine() -> str:
    """Return the number and model of processors and the version of Python."""
    models = re.findall(r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    model = models[0] if models else platform.machine()
    return f"{os.cpu_count()} x {model}; Python {platform.python_version()}"


def commit() -> str:
    """
    Return the commit of the checkout.

    @raise SystemExit: It has changes.
    """
    git = ["git", "-C", str(HERE)]
    status = subprocess.run([*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, check=True).stdout
    # Earlier records of the same session are the only change that is expected.
    if any(not line.endswith("benchmarks/history.csv") for line in status.splitlines()):
        raise SystemExit("record: the checkout has changes; commit them first")
    done = subprocess.run([*git, "rev-parse", "--short=8", "HEAD"], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def append(path: Path, figures: list[Figure], common: tuple[str, str, str], note: str) -> None:
    """
    Append figures to a file, and begin it with the names of the columns.

    @param common: The date, the commit and the machine.
    @param note: The last column of all figures.
    """
    new = not path.exists()
    with path.open("a", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        if new:
            rows.writerow(COLUMNS)
        for figure in figures:
            rows.writerow([*common, figure.name, f"{figure.value:g}", figure.unit, note])


def main() -> int:
    """Run and record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--note", default="", help="the last column of the recorded lines")
    parser.add_argument("--dry-run", action="store_true", help="print the figures only")
    parser.add_argument("names", nargs="*", default=list(BENCHMARKS), help=", ".join(BENCHMARKS))
    options = parser.parse_args()
    unknown = sorted(set(options.names) - BENCHMARKS.keys())
    if unknown:
        parser.error(f"unknown benchmarks: {', '.join(unknown)}")
    found = "" if options.dry_run else commit()
    for name in options.names:
        figures = run(BENCHMARKS[name])
        if options.dry_run:
            print(*figures, sep="\n")
        else:
            append(HISTORY, figures, (f"{datetime.date.today()}", found, describe_machine()), options.note)
    return 0


if __name__ == "__main__":
    sys.exit(main())
