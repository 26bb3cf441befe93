"""Tests for L{kubetwist.cli.flags.kubetwist}."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cli.flags.kubetwist import parse_workers


class WorkersTests(SynchronousTestCase):
    """Tests for the value of C{--workers}."""

    def test_number(self) -> None:
        """A number is the number of fronts; 0 is one process."""
        self.assertEqual([parse_workers(text) for text in ("0", "1", "64")], [0, 1, 64])

    def test_auto(self) -> None:
        """C{auto} is one front per CPU of the process but one, at least one and at most 64."""
        for cpus, count in ((1, 1), (2, 1), (8, 7), (200, 64)):
            self.patch(os, "sched_getaffinity", lambda process, cpus=cpus: set(range(cpus)))
            self.assertEqual(parse_workers("auto"), count)

    def test_invalid(self) -> None:
        """Other texts and numbers are refused."""
        for text in ("", "-1", "65", "1.5", "many"):
            error = self.assertRaises(ValueError, parse_workers, text)
            self.assertEqual(str(error), "it must be auto, or a number between 0 and 64")
