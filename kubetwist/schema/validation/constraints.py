"""Checks of types, numbers and lists: functions that need only the type of a schema."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Final

import orjson

from ...api.go.text import go_text
from ...api.jsontypes import JSONValue

INT32: Final = 1 << 31
INT64: Final = 1 << 63
_EXACT: Final = 1 << 53
_LAST_CHARACTER: Final = sys.maxunicode
FLOAT32: Final = 3.4028235677973366e38


def encoded(value: JSONValue) -> bytes:
    """Encode a value as JSON that is the same for equal values."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def json_type(value: JSONValue) -> tuple[str, str]:
    """Return the type of a value that is not null, and its format if it has one by itself."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int):
        return "integer", "int64"
    if isinstance(value, float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def fits_int64(value: int) -> bool:
    """Return whether the reference treats a number as an integer; all other numbers are fractions."""
    return -INT64 <= value < INT64


def is_exact(value: float) -> bool:
    """Return whether a fraction is a whole number that nothing was lost of."""
    return value.is_integer() and abs(value) < _EXACT


def bound(value: JSONValue) -> float | None:
    """Return a bound of numbers, as Go reads it."""
    return None if value is None else float(value)


def multiple(value: float, factor: float) -> str:
    """Return why a number is not a multiple of another; C{""} if it is."""
    if factor <= 0:
        return "must be positive"
    if isinstance(factor, int) and isinstance(value, int):
        good = value % factor == 0
    else:
        quotient = 1 / factor * value if factor < 1 else value / factor
        good = abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))
    return "" if good else f"should be a multiple of {go_text(factor)}"


def minimum(value: float, bound: float) -> str:
    """Return why a number is too small; C{""} if it is not."""
    return "" if value >= bound else f"should be greater than or equal to {go_text(bound)}"


def minimum_exclusive(value: float, bound: float) -> str:
    """Return the error for an exclusive minimum."""
    return "" if value > bound else f"should be greater than {go_text(bound)}"


def maximum(value: float, bound: float) -> str:
    """Return why a number is too large; C{""} if it is not."""
    return "" if value <= bound else f"should be less than or equal to {go_text(bound)}"


def maximum_exclusive(value: float, bound: float) -> str:
    """Return the error for an exclusive maximum."""
    return "" if value < bound else f"should be less than {go_text(bound)}"


class Choices:
    """The values of an enum, found as fast among many as among few."""

    __slots__ = ("_encoded", "_flags", "_integers", "_numbers", "_texts")

    def __init__(self, values: Iterable[JSONValue]) -> None:
        values = list(values)
        self._texts = frozenset(one for one in values if isinstance(one, str))
        self._flags = frozenset(one for one in values if isinstance(one, bool))
        self._numbers = frozenset(one for one in values if isinstance(one, int | float) and not isinstance(one, bool))
        self._integers = frozenset(one for one in self._numbers if isinstance(one, int))
        self._encoded = frozenset(encoded(one) for one in values if isinstance(one, list | dict))

    def __contains__(self, value: JSONValue) -> bool:
        """
        Return whether a value is one of them; null never is, not even where the enum has it.

        The reference converts values to the type of the choice: fractions lose theirs, numbers become characters.
        """
        if isinstance(value, str):
            return value in self._texts
        if isinstance(value, bool):
            return value in self._flags
        if isinstance(value, int):
            return value in self._numbers or (0 <= value <= _LAST_CHARACTER and chr(value) in self._texts)
        if isinstance(value, float):
            return value in self._numbers or (math.isfinite(value) and int(value) in self._integers)
        return value is not None and encoded(value) in self._encoded


def distinct(values: list[JSONValue]) -> bool:
    """Return whether no two values are equal."""
    return len({encoded(value) for value in values}) == len(values)
