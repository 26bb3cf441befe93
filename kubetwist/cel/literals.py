"""Values of literals."""

from __future__ import annotations

import math
from typing import Final

from kubetwist.cel.values import MAX_INT, MAX_UINT, MIN_INT, UInt

_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_HEX_DIGITS: Final = {"x": 2, "X": 2, "u": 4, "U": 8}


class LiteralError(Exception):
    """A literal has no value."""


def _parse_integer(text: str) -> int:
    negative = text.startswith("-")
    digits = text[1:] if negative else text
    number = int(digits[2:], 16) if digits.startswith("0x") else int(digits)
    return -number if negative else number


def parse_int(text: str) -> int:
    """Return the value of an int literal with its sign."""
    # Python rejects thousands of digits, which are out of range.
    if len(text) > 400 or not MIN_INT <= (number := _parse_integer(text)) <= MAX_INT:
        raise LiteralError("invalid int literal")
    return number


def parse_uint(text: str) -> UInt:
    """Return the value of a uint literal with its suffix."""
    if len(text) > 400 or (number := _parse_integer(text[:-1])) > MAX_UINT:
        raise LiteralError("invalid uint literal")
    return UInt(number)


def parse_double(text: str) -> float:
    """Return the value of a double literal with its sign."""
    number = float(text)
    if math.isinf(number):
        raise LiteralError("invalid double literal")
    return number


def _body(text: str) -> tuple[str, bool]:
    """Return the text between the quotes, and whether it is raw."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes], raw


def parse_string(text: str) -> str:
    """Return the value of a string literal with its quotes."""
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    out: list[str] = []
    offset = 0
    while offset < len(body):
        escape = body.find("\\", offset)
        if escape < 0:
            out.append(body[offset:])
            break
        out.append(body[offset:escape])
        code, offset = _escape(body, escape)
        if isinstance(code, int):
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise LiteralError("invalid unicode code point")
            code = chr(code)
        out.append(code)
    return "".join(out)


def parse_bytes(text: str) -> bytes:
    """Return the value of a bytes literal with its prefix and quotes; numeric escapes are bytes, the rest is UTF-8."""
    body, raw = _body(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    out = bytearray()
    offset = 0
    while offset < len(body):
        escape = body.find("\\", offset)
        if escape < 0:
            out += body[offset:].encode()
            break
        out += body[offset:escape].encode()
        if body[escape + 1] in "uU":
            raise LiteralError("unable to unescape string")
        code, offset = _escape(body, escape)
        out += bytes((code,)) if isinstance(code, int) else code.encode()
    return bytes(out)


def _escape(body: str, offset: int) -> tuple[str | int, int]:
    """Return the character or number of an escape sequence, and its end. The lexer has checked its form."""
    char = body[offset + 1]
    simple = _SIMPLE.get(char)
    if simple is not None:
        return simple, offset + 2
    digits = _HEX_DIGITS.get(char)
    if digits is not None:
        return int(body[offset + 2 : offset + 2 + digits], 16), offset + 2 + digits
    return int(body[offset + 1 : offset + 4], 8), offset + 4
