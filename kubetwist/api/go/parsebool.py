"""Booleans as Go's C{strconv.ParseBool} reads them."""

from __future__ import annotations

from typing import Final

from .quote import quoted

_BOOLEANS: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_bool(text: str) -> bool:
    """
    Return a boolean.

    @raise ValueError: C{text} is no boolean; the message equals C{strconv.ParseBool}'s.
    """
    try:
        return _BOOLEANS[text]
    except KeyError:
        raise ValueError(f"strconv.ParseBool: parsing {quoted(text)}: invalid syntax") from None


def format_bool(value: bool) -> str:
    """Return C{"true"} or C{"false"}."""
    return "true" if value else "false"
