"""Durations as Go writes them: C{"1m30s"}."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

_UNITS: Final = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "μs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}
_NUMBER: Final = re.compile(r"[0-9]*\.?[0-9]*", re.ASCII)
_UNIT: Final = re.compile(r"[^0-9.]*", re.ASCII)
#: What fits in 64 bits of nanoseconds.
_LONGEST: Final = Decimal(2**63) / 10**9


def parse_duration(text: str) -> float:
    """
    Seconds.

    @raise ValueError: It is none; the message is that of Go's C{time.ParseDuration}.
    """
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0.0
    if not rest:
        raise ValueError(f"time: invalid duration {quoted}")
    total = Decimal(0)
    while rest:
        number = _NUMBER.match(rest)
        assert number is not None
        digits = number[0]
        if not digits or digits == ".":
            raise ValueError(f"time: invalid duration {quoted}")
        rest = rest[len(digits) :]
        unit = _UNIT.match(rest)
        assert unit is not None
        if not unit[0]:
            raise ValueError(f"time: missing unit in duration {quoted}")
        factor = _UNITS.get(unit[0])
        if factor is None:
            raise ValueError(f'time: unknown unit "{unit[0]}" in duration {quoted}')
        total += Decimal(digits) * factor
        if total > _LONGEST:
            raise ValueError(f"time: invalid duration {quoted}")
        rest = rest[len(unit[0]) :]
    return float(-total if text[0] == "-" else total)
