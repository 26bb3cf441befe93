"""Format values as Go's C{fmt} does with C{%#v}, and floats as C{strconv} does."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final, TypeAlias

from attrs import frozen

from .quote import quoted

#: Decimal exponents from which on C{'g'} with the shortest precision writes an exponent.
_EXPONENTS: Final = range(-4, 6)
_MAP: Final = "map[interface {}]interface {}"


#: An C{interface {}}: a JSON value, or a L{GoMap}.
GoValue: TypeAlias = Any


@frozen
class GoMap:
    """
    A C{map[interface {}]interface {}}, whose keys may have any type.

    @ivar items: Keys and values; the last of equal keys counts.
    """

    items: tuple[tuple[GoValue, GoValue], ...]


def float_text(number: float) -> str:
    """Return C{strconv.FormatFloat(number, 'g', -1, 64)}, which is also the output of C{%v}."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return decimal_text(Decimal(repr(number)))


def decimal_text(number: Decimal) -> str:
    """Return the same for a number with the shortest digits already."""
    sign, digits, _ = (number := number.normalize()).as_tuple()
    exponent = number.adjusted()
    if exponent in _EXPONENTS or not number:
        return f"{number:f}"
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    mantissa = f"{first}.{rest}" if rest else first
    return f"{'-' if sign else ''}{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def yaml_syntax(value: GoValue) -> str:
    """Return a value that go-yaml decoded into an C{interface {}}, as C{%#v} prints it within another value."""
    if value is None:
        return "interface {}(nil)"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, GoMap):
        return _map(value.items)
    if isinstance(value, dict):
        return _map(value.items())
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(yaml_syntax, value))}}}"
    if isinstance(value, float):
        return float_text(value)
    return str(value) if value < 1 << 63 else f"{value:#x}"


def _map(items: Iterable[tuple[GoValue, GoValue]]) -> str:
    """
    Print a map sorted by type of the key, then by key; C{internal/fmtsort} orders types by their address in memory.
    """
    last = {(_rank(key), key): value for key, value in items}
    shown = (f"{yaml_syntax(key)}:{yaml_syntax(last[rank, key])}" for rank, key in sorted(last, key=_order))
    return f"{_MAP}{{{', '.join(shown)}}}"


def _order(ranked: tuple[int, GoValue]) -> tuple[int, GoValue]:
    rank, key = ranked
    return rank, 0 if key is None else key


def _rank(key: GoValue) -> int:
    return (type(None), str, int, float, bool).index(type(key))
