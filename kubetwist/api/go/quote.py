"""Quoting of strings as in Go, for error messages of the reference."""

from __future__ import annotations

import re
from typing import Final

_SHORT: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}

_plain = re.compile("[ !#-\\[\\]-~]*").fullmatch


def is_print(character: str) -> bool:
    """Return whether a character is printable (Go: C{unicode.IsPrint}); of spaces only the ASCII space is."""
    return character.isprintable()


def quoted(text: str) -> str:
    """Quote a string (Go: C{strconv.Quote})."""
    if _plain(text):
        return f'"{text}"'
    return '"' + "".join(_escaped(character) for character in text) + '"'


def quoted_char(character: str) -> str:
    """Return a character in single quotes, as C{encoding/json} shows it."""
    if character == "'":
        return "'\\''"
    if character == '"':
        return "'\"'"
    return f"'{_escaped(character)}'"


def _escaped(character: str) -> str:
    short = _SHORT.get(character)
    if short is not None:
        return short
    if is_print(character):
        return character
    number = ord(character)
    if number < 0x20 or number == 0x7F:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def unicode_number(character: str) -> str:
    """Format a character (Go: C{%#U}): C{U+0041 'A'}; only the number for non-printable characters."""
    number = f"U+{ord(character):04X}"
    return f"{number} '{character}'" if is_print(character) else number
