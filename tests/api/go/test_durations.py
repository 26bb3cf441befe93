"""Tests for L{kubetwist.api.go.durations}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.api.go.durations import (
    format_duration,
    parse_duration,
    parse_nanoseconds,
)


class DurationTests(SynchronousTestCase):
    """Tests for parsing and formatting of durations."""

    def test_parse(self) -> None:
        """Durations are numbers with units, in sequence."""
        for text, seconds in {"1h30m": 5400, "1.5s": 1.5, "20ms": 0.02, "0": 0, "-1m": -60, "+.5s": 0.5}.items():
            self.assertEqual(parse_duration(text), seconds)

    def test_forms(self) -> None:
        """Every form that Go accepts is accepted."""
        for text, seconds in (
            ("5s", 5),
            ("5m0s", 300),
            ("1h", 3600),
            (".5s", 0.5),
            ("5.s", 5),
            ("100ms", 0.1),
            ("2us", 2e-6),
            ("2µs", 2e-6),
            ("+1m", 60),
        ):
            self.assertEqual(parse_duration(text), seconds, text)

    def test_errors(self) -> None:
        """An invalid duration is rejected with Go's message."""
        for text, message in {
            "": 'time: invalid duration ""',
            "x": 'time: invalid duration "x"',
            "9999999h": 'time: invalid duration "9999999h"',
            "-": 'time: invalid duration "-"',
            ".s": 'time: invalid duration ".s"',
            "1": 'time: missing unit in duration "1"',
            "1x": 'time: unknown unit "x" in duration "1x"',
            "9223372036854775808ns": 'time: invalid duration "9223372036854775808ns"',
            "9" * 5000 + "s": f'time: invalid duration "{"9" * 5000}s"',
        }.items():
            self.assertEqual(str(self.assertRaises(ValueError, parse_duration, text)), message)

    def test_format(self) -> None:
        """Durations are formatted from the largest unit that they fill."""
        for nanoseconds, text in {
            0: "0s",
            1: "1ns",
            1500: "1.5µs",
            20_000_000: "20ms",
            1_500_000_000: "1.5s",
            60_000_000_000: "1m0s",
            5_400_000_000_000: "1h30m0s",
            -1_000_000_000: "-1s",
        }.items():
            self.assertEqual(format_duration(nanoseconds), text)

    @given(st.integers(-(1 << 63), (1 << 63) - 1))
    def test_round_trip(self, nanoseconds: int) -> None:
        """A formatted duration is parsed as the same duration."""
        if nanoseconds == -(1 << 63):
            return
        self.assertEqual(parse_nanoseconds(format_duration(nanoseconds)), nanoseconds)

    @given(st.text(st.sampled_from("0123456789.+-nuµmsh")))
    def test_any_text(self, text: str) -> None:
        """Any text is parsed, or rejected with a message."""
        try:
            parse_nanoseconds(text)
        except ValueError as error:
            self.assertTrue(str(error).startswith("time: "))
