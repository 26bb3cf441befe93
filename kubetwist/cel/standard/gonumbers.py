"""Formatting and parsing of numbers as in Go."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_int = re.compile(r"[+-]?[0-9]+").fullmatch
_uint = re.compile(r"[0-9]+").fullmatch
_float = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
).fullmatch
_hexadecimal = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+").fullmatch
_SPECIAL: Final = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}


def format_g(number: float) -> str:
    """Format as C{%g}: the shortest text, with an exponent for numbers from 1e6 and below 1e-4."""
    if number != number or number in (float("inf"), float("-inf")):
        return _SPECIAL[repr(number)]
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits_text = "".join(map(str, digits))
    point = len(digits_text) + exponent
    if number == 0:
        return "-0" if sign else "0"
    prefix = "-" if sign else ""
    power = point - 1
    if power < -4 or power >= 6:
        mantissa = digits_text if len(digits_text) == 1 else f"{digits_text[0]}.{digits_text[1:]}"
        return f"{prefix}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
    return prefix + _plain(digits_text, point)


def format_f(number: float) -> str:
    """Format with the shortest text without an exponent."""
    if number != number or number in (float("inf"), float("-inf")):
        return _SPECIAL[repr(number)]
    if number == 0:
        return "-0" if str(number).startswith("-") else "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    digits_text = "".join(map(str, digits))
    return ("-" if sign else "") + _plain(digits_text, len(digits_text) + exponent)


def _plain(digits: str, point: int) -> str:
    """Return the digits with a decimal point."""
    if point <= 0:
        return f"0.{'0' * -point}{digits}"
    if point >= len(digits):
        return digits + "0" * (point - len(digits))
    return f"{digits[:point]}.{digits[point:]}"


def parse_int(text: str) -> int | None:
    """Parse a decimal integer with an optional sign; C{None} if the text is invalid or has more than 400 characters."""
    return int(text) if _int(text) and len(text) < 400 else None


def parse_uint(text: str) -> int | None:
    """Parse a decimal integer without a sign; C{None} as in L{parse_int}."""
    return int(text) if _uint(text) and len(text) < 400 else None


def parse_float(text: str) -> float | None:
    """Parse a decimal or hexadecimal fraction, infinity or NaN; C{None} if it is invalid or too large."""
    if _hexadecimal(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            return None
    if not _float(text):
        return None
    number = float(text)
    infinite = number in (float("inf"), float("-inf"))
    return None if infinite and "n" not in text.lower() else number
