"""Tests for F{benchmarks/record.py}: reading the output of benchmarks, the check of the machine, and the file."""

from __future__ import annotations

import csv
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import CHECKOUT, load_script

script = load_script("benchmarks/record.py")

RATES = """\
yardstick: 9000 static answers/s
measure           rate/s  /yardstick   p99 ms  failed
get              12000.5     1.33339      1.0       0
fanout           13273.9     1.26543      0.0       0
rss                  150 MB
"""
MIXED = """\
verb      count  mean ms   p99 ms   max ms
get        3600      1.2      4.5     20.0
all        6000      1.5      6.1     30.0
failures: 0
resident: 140 MB
"""
ROLLOUT = """\
phase       seconds    cpu s   writes
up              8.3      4.0     4123
resident: 148 MB
"""
INSTRUCTIONS = "get             332.5 thousand instructions\n"


class FiguresTests(SynchronousTestCase):
    """The figures in the output of each benchmark."""

    def test_rates(self) -> None:
        """Rates have a rate, a ratio to the yardstick and a p99, except for the fan-out; memory is a figure."""
        self.assertEqual(
            [
                ("get rate", 12000.5, "1/s"),
                ("get over yardstick", 1.33339, "ratio"),
                ("get p99", 1.0, "ms"),
                ("fanout rate", 13273.9, "1/s"),
                ("fanout over yardstick", 1.26543, "ratio"),
                ("resident", 150.0, "MB"),
            ],
            list(script.rates_figures(RATES)),
        )

    def test_mixed(self) -> None:
        """Mixed requests have the p99 of each verb and of all."""
        expected = [("mixed get p99", 4.5, "ms"), ("mixed all p99", 6.1, "ms")]
        self.assertEqual(expected, list(script.mixed_figures(MIXED)))

    def test_rollout(self) -> None:
        """A phase has its seconds and its CPU seconds."""
        expected = [("rollout up", 8.3, "s"), ("rollout up cpu", 4.0, "s")]
        self.assertEqual(expected, list(script.rollout_figures(ROLLOUT)))

    def test_instructions(self) -> None:
        """Counts are in thousands."""
        expected = [("get instructions", 332.5, "thousand")]
        self.assertEqual(expected, list(script.instructions_figures(INSTRUCTIONS)))


class MachineTests(SynchronousTestCase):
    """What disturbs a measurement."""

    def disturbance(self, *ticks: int, idle: bool = True) -> str:
        """Return what disturbs when the times of processors grow by user, idle and stolen ticks."""
        user, idling, stolen = ticks
        before = script.ProcessorTimes.parse("cpu  10 0 5 100 1 0 0 3 0 0\ncpu0 1")
        after = script.ProcessorTimes.parse(f"cpu  {10 + user} 0 5 {100 + idling} 1 0 0 {3 + stolen} 0 0\n")
        found: str = script.disturbance(before, after, idle=idle)
        return found

    def test_quiet(self) -> None:
        """A machine whose processors are idle is quiet."""
        self.assertEqual("", self.disturbance(4, 96, 0))

    def test_busy(self) -> None:
        """Other programs disturb before and after a benchmark; while it runs, it is one of them."""
        self.assertEqual("other programs use 6.0% of the processors", self.disturbance(6, 94, 0))
        self.assertEqual("", self.disturbance(6, 94, 0, idle=False))

    def test_stolen(self) -> None:
        """Time that the hypervisor keeps disturbs in any case."""
        for idle in (True, False):
            self.assertEqual("the hypervisor keeps 2.0% of the processors", self.disturbance(50, 48, 2, idle=idle))


class FileTests(SynchronousTestCase):
    """The file with the history."""

    def test_append(self) -> None:
        """The first lines are preceded by the names of the columns; later ones are added."""
        path = Path(self.mktemp())
        common = ("2026-11-28", "0123abcd", "2 x CPU; Python 3.11.2")
        for value in (1.5, 2.0):
            script.append(path, [script.Figure("get rate", value, "1/s")], common, "a, b")
        head, *rows = csv.reader(path.read_text().splitlines())
        self.assertEqual(list(script.COLUMNS), head)
        self.assertEqual([[*common, "get rate", value, "1/s", "a, b"] for value in ("1.5", "2")], rows)

    def test_history(self) -> None:
        """The file in the checkout has these columns, a commit and a number in each line."""
        path = CHECKOUT / "benchmarks" / "history.csv"
        head, *rows = csv.reader(path.read_text().splitlines())
        self.assertEqual(list(script.COLUMNS), head)
        for row in rows:
            self.assertEqual(len(head), len(row))
            self.assertRegex(row[1], "^[0-9a-f]{8}$")
            self.assertGreater(float(row[4]), 0)
