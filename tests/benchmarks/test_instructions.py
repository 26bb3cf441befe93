"""Tests for F{benchmarks/instructions.py}: the files of callgrind, and the figures from counts."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import load_script

script = load_script("benchmarks/instructions.py")


class CountsTests(SynchronousTestCase):
    """Counts and figures."""

    def test_read(self) -> None:
        """A count is the total of a file that the process requested, divided by the number of requests."""
        folder = Path(self.mktemp())
        folder.mkdir()
        for number, trigger in enumerate(("Client Request: get 20", "Client Request: patch 10", "Program termination")):
            text = f"version: 1\ndesc: Trigger: {trigger}\n\nevents: Ir\nsummary: 400000\n\ntotals: 500000\n"
            (folder / f"callgrind.out.{number}").write_text(text)
        self.assertEqual({"get": 20.0, "patch": 40.0}, script.read_counts(folder))

    def test_events(self) -> None:
        """The cost of an event is what a patch costs more with watchers, for each of them."""
        figures = script.figures_of({"get": 3.0, "patch": 10.0, "watched1": 14.0, "watched20": 50.0})
        self.assertEqual({"get": 3.0, "patch": 10.0, "event1": 4.0, "event20": 2.0}, figures)

    def test_outside(self) -> None:
        """The request for the tool has no effect outside of valgrind, and returns that it does not run."""
        self.assertFalse(script.Callgrind().runs)

    def test_calibration(self) -> None:
        """The loop of the calibration takes each of its branches, and is the same each time."""
        calibration = script.Calibration()
        calibration.run()
        self.assertEqual(sum(range(calibration.ROUNDS)), sum(calibration.counts[str(n)] for n in range(10)))
        self.assertIn("errors", calibration.counts)
