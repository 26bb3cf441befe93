"""
Differences of values as the reference prints them: unified diffs of the JSON of internal Go structs.

@see: kubernetes/apimachinery, C{pkg/util/diff/diff.go}.
"""

from __future__ import annotations

import json
from difflib import unified_diff
from typing import Final

from ..jsontypes import JSONValue

#: Maximum number of lines of both values, since the comparison can take quadratic time.
_MAX_LINES: Final = 6000
#: Maximum number of lines if at most C{_MAX_DIFFERENT_LINES} differ between a common beginning and end.
_MAX_SIMILAR_LINES: Final = 12_000
_MAX_DIFFERENT_LINES: Final = 60


def pretty(value: JSONValue) -> list[str]:
    """Return the lines of a value as Go's C{json.MarshalIndent} writes it; keys keep their order."""
    lines: list[str] = []
    _write(value, "", "", "", lines)
    return lines


def _write(value: JSONValue, indent: str, before: str, after: str, lines: list[str]) -> None:
    if isinstance(value, dict | list) and value:
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        lines.append(f"{indent}{before}{opening}\n")
        pairs = (
            [(f"{_text(name)}: ", item) for name, item in value.items()]
            if isinstance(value, dict)
            else [("", item) for item in value]
        )
        for place, (name, item) in enumerate(pairs, 1):
            _write(item, f"{indent} ", name, "," if place < len(pairs) else "", lines)
        lines.append(f"{indent}{closing}{after}\n")
    else:
        shown = _text(value) if not isinstance(value, dict | list) else "{}" if isinstance(value, dict) else "[]"
        lines.append(f"{indent}{before}{shown}{after}\n")


def _text(value: JSONValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    # Go escapes HTML characters in JSON.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def diff(old: JSONValue, new: JSONValue) -> str:
    """Return the differences with three lines of context each; C{""} if there are none or too many."""
    before, after = pretty(old), pretty(new)
    total = len(before) + len(after)
    if total > _MAX_LINES and (total > _MAX_SIMILAR_LINES or _between(before, after) > _MAX_DIFFERENT_LINES):
        return ""
    # The first two lines name files.
    return "".join(list(unified_diff(before, after))[2:])


def _between(before: list[str], after: list[str]) -> int:
    """Return the number of lines of both values outside of their common beginning and end."""
    shorter = min(len(before), len(after))
    first = next((index for index in range(shorter) if before[index] != after[index]), shorter)
    rest = shorter - first
    last = next((index for index in range(rest) if before[-1 - index] != after[-1 - index]), rest)
    return len(before) + len(after) - 2 * (first + last)
