"""Tests for L{kubetwist.cel.standard.gonumbers}."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from twisted.trial.unittest import SynchronousTestCase

from kubetwist.cel.standard.gonumbers import format_f, format_g, parse_float, parse_int, parse_uint


class NumberTests(SynchronousTestCase):
    """Tests for the formatting and parsing of numbers."""

    @given(st.floats(allow_nan=False))
    def test_round_trip(self, number: float) -> None:
        """A formatted number, with or without an exponent, is parsed to the same number."""
        for text in (format_g(number), format_f(number)):
            read = parse_float(text)
            assert read is not None
            self.assertEqual((read, math.copysign(1, read)), (number, math.copysign(1, number)), text)

    def test_exponents(self) -> None:
        """C{%g} uses an exponent of two digits from 1e6 and below 1e-4, C{%f} never."""
        for number, short, plain in (
            (1e6, "1e+06", "1000000"),
            (999999.0, "999999", "999999"),
            (1.25e-5, "1.25e-05", "0.0000125"),
            (0.0001, "0.0001", "0.0001"),
            (1e100, "1e+100", "1" + "0" * 100),
            (-0.0, "-0", "-0"),
            (float("inf"), "+Inf", "+Inf"),
            (float("-inf"), "-Inf", "-Inf"),
            (float("nan"), "NaN", "NaN"),
        ):
            self.assertEqual((format_g(number), format_f(number)), (short, plain))

    def test_integers(self) -> None:
        """Integers are decimal, only signed ones have a sign, and integers of 400 digits are rejected."""
        self.assertEqual([parse_int("-7"), parse_int("+7"), parse_uint("7")], [-7, 7, 7])
        for text in ("", "0x1", "1.0", " 1", "1_0", "1" * 400):
            self.assertIsNone(parse_int(text), text)
        self.assertIsNone(parse_uint("-7"))

    def test_floats(self) -> None:
        """Decimal and hexadecimal fractions, infinity and NaN are parsed; too large numbers are rejected."""
        self.assertEqual([parse_float("1e2"), parse_float(".5"), parse_float("0x1p-2")], [100.0, 0.5, 0.25])
        self.assertEqual(parse_float("-Infinity"), float("-inf"))
        for text in ("", "e1", "0x1", "1e999", "0x1p99999", "1 "):
            self.assertIsNone(parse_float(text), text)
