"""Tests for F{.ci/instructionlimits.py}: the comparison of counts with limits."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ..checkout import CHECKOUT, load_script

script = load_script(".ci/instructionlimits.py")

LIMITS = {"3.11.2 GCC 12.2.0": {"calibration": 10.0, "get": 300.0}, "3.13.1 GCC 14": {"calibration": 8.0, "get": 200.0}}


class LimitsTests(SynchronousTestCase):
    """The limits of a build, and the comparison with counts."""

    def failed(self, count: float, limit: float = 100.0, figure: str = "get") -> tuple[bool, str]:
        """Return whether a count of one figure fails, and the line about it."""
        ((failed, line),) = script.compare({figure: limit}, script.TOLERANCE, {figure: count})
        return failed, line

    def test_format(self) -> None:
        """The text of limits is read as it was written."""
        self.assertEqual(LIMITS, script.read_limits(script.format_limits(LIMITS)))

    def test_above(self) -> None:
        """A count above its limit by more than 5 % fails; one within 5 % does not."""
        self.assertEqual((True, "instructions: get: 105.1 thousand, +5.1% of 100.0, TOO MANY"), self.failed(105.1))
        self.assertEqual((False, "instructions: get: 104.9 thousand, +4.9% of 100.0"), self.failed(104.9))

    def test_below(self) -> None:
        """A count below its limit by more than 5 % passes, and asks for a lower limit."""
        failed, line = self.failed(90.0)
        self.assertFalse(failed)
        self.assertIn("lower the limit", line)
        self.assertNotIn("lower the limit", self.failed(96.0)[1])

    def test_varying(self) -> None:
        """The event to one watcher, which varies more, fails above 10 %, and asks for a lower limit below 10 %."""
        self.assertFalse(self.failed(109.9, figure="event1")[0])
        self.assertTrue(self.failed(110.1, figure="event1")[0])
        self.assertNotIn("lower the limit", self.failed(90.1, figure="event1")[1])
        self.assertIn("lower the limit", self.failed(89.9, figure="event1")[1])

    def test_calibration(self) -> None:
        """The loop of the calibration does not fail."""
        self.assertFalse(self.failed(200.0, figure="calibration")[0])

    def test_missing(self) -> None:
        """A figure without a limit fails, and so does a limit whose figure was not counted."""
        results = list(script.compare({"get": 1.0}, 0.05, {"create": 1.0}))
        self.assertEqual(
            [
                (True, "instructions: create: 1.0 thousand, without a limit"),
                (True, "instructions: get: not counted"),
            ],
            results,
        )

    def test_known_build(self) -> None:
        """A known build has its limits."""
        build = "3.11.2 GCC 12.2.0"
        self.assertEqual((LIMITS[build], 0.05), script.limits_of(LIMITS, build, {"calibration": 20.0}))

    def test_other_build(self) -> None:
        """Another build has the limits of its minor version, scaled by the calibration, and a higher tolerance."""
        for build, expected in (("3.11.9 Clang 18", 600.0), ("3.13.0 GCC 14", 500.0)):
            limits, tolerance = script.limits_of(LIMITS, build, {"calibration": 20.0})
            self.assertAlmostEqual(expected, limits["get"])
            self.assertEqual(0.15, tolerance)

    def test_other_version(self) -> None:
        """Another minor version has scaled limits of any build."""
        limits, _ = script.limits_of(LIMITS, "3.14.0 GCC 15", {"calibration": 5.0})
        self.assertAlmostEqual(150.0, limits["get"])

    def test_file(self) -> None:
        """The file in the checkout has a calibration for each build, and the same figures."""
        limits = script.read_limits((CHECKOUT / ".ci" / "instructions.csv").read_text())
        self.assertTrue(limits)
        (figures,) = {tuple(sorted(counts)) for counts in limits.values()}
        self.assertIn("calibration", figures)
        self.assertTrue({"get", "create", "list500", "event1", "event20"} <= set(figures))
