"""Durations in Go's format: C{1m30s}."""

from __future__ import annotations

import re
from typing import Final

from .quote import quoted

_UNITS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_duration_part = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)").match


def parse_duration(text: str) -> float:
    """
    Parse a duration such as C{1h30m} or C{1.5s}.

    @return: Seconds.
    @raise ValueError: The value is invalid; the message is Go's.
    """
    return parse_nanoseconds(text) / 1_000_000_000


def parse_nanoseconds(text: str) -> int:
    """
    Parse a duration exactly.

    @return: Nanoseconds, a signed integer of 64 bits.
    @raise ValueError: The value is invalid; the message is Go's.
    """
    rest = text[1:] if text[:1] in ("+", "-") else text
    error = ValueError(f"time: invalid duration {quoted(text)}")
    if rest == "0":
        return 0
    if not rest:
        raise error
    total = 0
    while rest:
        match = _duration_part(rest)
        assert match is not None, "it matches the empty string"
        whole, fraction, unit = match.groups()
        if not whole and not fraction:
            raise error
        if len(whole) > 19:
            raise error
        if not unit:
            raise ValueError(f"time: missing unit in duration {quoted(text)}")
        if unit not in _UNITS:
            raise ValueError(f"time: unknown unit {quoted(unit)} in duration {quoted(text)}")
        total += int(whole or 0) * _UNITS[unit]
        if fraction:
            digits = fraction[:18]
            total += int(digits) * _UNITS[unit] // 10 ** len(digits)
        rest = rest[match.end() :]
    if text.startswith("-"):
        total = -total
    if not -(1 << 63) <= total < 1 << 63:
        raise error
    return total


def format_duration(nanoseconds: int) -> str:
    """Return a duration as Go writes it: C{1h30m0s}, C{1.5s}, C{20ms}."""
    if not nanoseconds:
        return "0s"
    sign, amount = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    if amount < 1_000_000_000:
        for unit in ("ms", "µs", "ns"):
            if amount >= _UNITS[unit]:
                return f"{sign}{_decimal(amount, _UNITS[unit])}{unit}"
    hours, rest = divmod(amount, _UNITS["h"])
    minutes, rest = divmod(rest, _UNITS["m"])
    seconds = _decimal(rest, _UNITS["s"]) + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{seconds}"
    return f"{sign}{minutes}m{seconds}" if minutes else sign + seconds


def _decimal(amount: int, unit: int) -> str:
    whole, fraction = divmod(amount, unit)
    if not fraction:
        return str(whole)
    return f"{whole}.{str(fraction).rjust(len(str(unit)) - 1, '0').rstrip('0')}"
