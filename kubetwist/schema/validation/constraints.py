"""Checks of types, numbers and lists that do not depend on a schema."""

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
    """Return the JSON type of a value that is not null, and the format of numbers."""
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
    """Return whether Go decodes a number as an integer, not as a float."""
    return -INT64 <= value < INT64


def is_exact(value: float) -> bool:
    """Return whether a float is an integer that is represented exactly."""
    return value.is_integer() and abs(value) < _EXACT


def bound(value: JSONValue) -> float | None:
    """Return a bound as a float, as Go decodes it."""
    return None if value is None else float(value)


def multiple(value: float, factor: float) -> str:
    """Return the error for a number that is not a multiple of another, or C{""}."""
    if factor <= 0:
        return "must be positive"
    if isinstance(factor, int) and isinstance(value, int):
        good = value % factor == 0
    else:
        quotient = 1 / factor * value if factor < 1 else value / factor
        good = abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))
    return "" if good else f"should be a multiple of {go_text(factor)}"


def minimum(value: float, bound: float) -> str:
    """Return the error for a number below the minimum, or C{""}."""
    return "" if value >= bound else f"should be greater than or equal to {go_text(bound)}"


def minimum_exclusive(value: float, bound: float) -> str:
    """Return the error for a number below an exclusive minimum, or C{""}."""
    return "" if value > bound else f"should be greater than {go_text(bound)}"


def maximum(value: float, bound: float) -> str:
    """Return the error for a number above the maximum, or C{""}."""
    return "" if value <= bound else f"should be less than or equal to {go_text(bound)}"


def maximum_exclusive(value: float, bound: float) -> str:
    """Return the error for a number above an exclusive maximum, or C{""}."""
    return "" if value < bound else f"should be less than {go_text(bound)}"


class Choices:
    """The values of an enum, with lookup in constant time."""

    __slots__ = ("_encoded", "_flags", "_integers", "_numbers", "_texts")

    def __init__(self, values: Iterable[JSONValue]) -> None:
        values = list(values)
        self._texts = frozenset(value for value in values if isinstance(value, str))
        self._flags = frozenset(value for value in values if isinstance(value, bool))
        self._numbers = frozenset(
            value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
        )
        self._integers = frozenset(value for value in self._numbers if isinstance(value, int))
        self._encoded = frozenset(encoded(value) for value in values if isinstance(value, list | dict))

    def __contains__(self, value: JSONValue) -> bool:
        """
        Return whether the enum contains a value; never for null.

        Go converts values to the type of the enum value: floats are truncated, and integers become characters.
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
