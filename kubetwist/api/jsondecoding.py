"""
Decoding of JSON with the reference's leniencies and error messages.

Valid JSON costs one pass of a fast parser and one of an encoder. A slower parser handles documents that the fast one
rejects, or that have duplicate keys: Go accepts bytes that are not UTF-8 and halves of surrogate pairs, merges objects
with duplicate keys, and has known messages for errors.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Final

import orjson

from .documents import (
    ENCODER_DEPTH,
    MAX_DEPTH,
    TOO_DEEP,
    BodyError,
    Decoded,
)
from .go.quote import quoted_char
from .jsontypes import (
    JSONObject,
    JSONValue,
)
from .repeatedkeys import (
    DuplicateKeyDict,
    duplicate_key_paths,
    merged,
)

# An encoder that gets the value within this many lists fails for values that nest too deep.
_WRAPS: Final = ENCODER_DEPTH - MAX_DEPTH

#: An escaped colon, which is not counted in the document, but is in orjson's output.
_hidden_colon = re.compile(rb"\\u003[aA]").search


def decode_json(data: bytes) -> Decoded:
    """
    Decode a JSON document.

    @raise BodyError: The document is invalid, or nested too deep.
    """
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _decode_leniently(data)
    if not isinstance(value, (dict, list)):
        return Decoded(value)
    wrapped = value
    # Only a document with more brackets than levels can nest too deep.
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH:
        for _ in range(_WRAPS):
            wrapped = [wrapped]
    try:
        again = orjson.dumps(wrapped)
    except TypeError:
        raise BodyError(TOO_DEEP) from None
    # A colon follows every key. If the document has more colons than the encoded value, a duplicate key was lost.
    if data.count(b":") != again.count(b":") or (b"\\" in data and _hidden_colon(data)):
        return _decode_leniently(data)
    return Decoded(value)


class _NotJSON(Exception):
    """A constant that Python's parser accepts, but JSON does not have."""


def _pairs(pairs: list[tuple[str, JSONValue]]) -> JSONObject:
    result = dict(pairs)
    return result if len(result) == len(pairs) else DuplicateKeyDict(pairs)


def _constant(name: str) -> JSONValue:
    raise _NotJSON(name)


def _float(text: str) -> float:
    number = float(text)
    # Go rejects these in known fields only. Here they are always an error, since the value cannot be represented.
    if math.isinf(number):
        raise BodyError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def _integer(text: str) -> int | float:
    if len(text) > 20:
        return _float(text)
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 64 else float(number)


_slow_decoder = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_float=_float, parse_int=_integer
)


def _decode_leniently(data: bytes) -> Decoded:
    text = data.decode("utf-8", "replace")
    try:
        if _nests_too_deep(text):
            raise BodyError(TOO_DEEP)
        start = len(text) - len(text.lstrip(" \t\r\n"))
        value, end = _slow_decoder.raw_decode(text, start)
        end = _next(text, end)
        if end < len(text):
            raise BodyError(_after_value(data, text, end))
    except json.JSONDecodeError as error:
        raise BodyError(_go_message(data, text, error)) from None
    except _NotJSON:
        raise BodyError(_constant_message(data, text)) from None
    except RecursionError:
        raise BodyError(TOO_DEEP) from None
    document = _cleaned(value)
    duplicates = [f'duplicate field "{path}"' for path in dict.fromkeys(duplicate_key_paths(document))]
    return Decoded(merged(document), duplicates, document) if duplicates else Decoded(document)


def _cleaned(value: JSONValue) -> JSONValue:
    """Return the value with halves of surrogate pairs replaced as in Go."""
    if isinstance(value, str):
        return _whole(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, DuplicateKeyDict):
        return DuplicateKeyDict([(_whole(key), _cleaned(item)) for key, item in value.pairs])
    if isinstance(value, dict):
        return {_whole(key): _cleaned(item) for key, item in value.items()}
    return value


def _whole(text: str) -> str:
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _half_surrogate("\ufffd", text)
    return text


_half_surrogate = re.compile("[\ud800-\udfff]").sub
#: Strings, closed or not; without them only the structure of a document is left.
_string = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)', re.DOTALL).sub


def _nests_too_deep(text: str) -> bool:
    """Return whether brackets nest too deep, in one pass that stops at the first bracket that does."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return False
    depth = 0
    for brackets in _structure(text):
        first = brackets[0]
        if first in "[{":
            depth += len(brackets)
            if depth > MAX_DEPTH:
                return True
        elif first != '"':
            depth -= len(brackets)
    return False


_bracket = re.compile(r"[\[\]{}]").findall


def _structure(text: str) -> Iterator[str]:
    return (match.group() for match in _structural(text))


#: Matches strings, closed or not, and runs of opening or of closing brackets.
_structural = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[\[{]+|[\]}]+', re.DOTALL).finditer


def _shown(data: bytes, text: str, position: int) -> str:
    """Return the byte at a position of the text, as Go quotes it."""
    character = text[position]
    if not character.isascii():
        # Go's scanner reads bytes, and treats each as a character.
        if "\ufffd" in text[: position + 1]:
            before = _bytes_before(data, position)
        else:
            before = len(text[:position].encode("utf-8"))
        character = chr(data[before])
    return quoted_char(character)


def _bytes_before(data: bytes, position: int) -> int:
    """Return the byte length of the first C{position} characters of C{data}, some of which were replaced."""
    low, high = 0, len(data)
    while low < high:
        middle = (low + high) // 2
        if len(data[:middle].decode("utf-8", "replace")) > position:
            high = middle
        else:
            low = middle + 1
    return max(low - 1, 0)


_END: Final = "unexpected end of JSON input"
_literals: Final = {"t": "true", "f": "false", "n": "null"}
_number = re.compile(r"-?(?:0|[1-9][0-9]*)?").match


def _go_message(data: bytes, text: str, error: json.JSONDecodeError) -> str:
    """Return Go's message for a syntax error that Python's parser found."""
    position, message = error.pos, error.msg
    if message.startswith(("Invalid control character", "Invalid \\escape")):
        # The position is the character's, or the backslash's before it.
        if message.startswith("Invalid \\escape"):
            position += 1
            return _at(data, text, position, "in string escape code")
        return _at(data, text, position, "in string literal")
    if message.startswith("Invalid \\uXXXX"):
        position += 1 if text[position : position + 1] in ("u", "\\") else 0
        while position < len(text) and text[position] in "0123456789abcdefABCDEF":
            position += 1
        return _at(data, text, position, "in \\u hexadecimal character escape")
    if message.startswith("Unterminated string"):
        return _END
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    if message.startswith("Expecting property name"):
        return _at(data, text, position, "looking for beginning of object key string")
    if message.startswith("Illegal trailing comma"):
        # Newer versions of Python report the position of the comma.
        position = _next(text, position + 1)
        context = "beginning of value" if text[position : position + 1] == "]" else "beginning of object key string"
        return _at(data, text, position, f"looking for {context}")
    if message.startswith("Expecting ':'"):
        return _at(data, text, position, "after object key")
    if message.startswith("Expecting ','"):
        return _after_value(data, text, position)
    return _no_value(data, text, position)


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _at(data: bytes, text: str, position: int, context: str) -> str:
    if position >= len(text):
        return _END
    return f"invalid character {_shown(data, text, position)} {context}"


def _after_value(data: bytes, text: str, position: int) -> str:
    """Return the message for a missing comma or closing bracket, or for a truncated number."""
    if position >= len(text):
        return _END
    before, this = text[position - 1], text[position]
    if before in "0123456789":
        if this == ".":
            if text[position + 1 : position + 2].isdigit():
                return _after_value(data, text, position + 2)
            return _at(data, text, position + 1, "after decimal point in numeric literal")
        if this in "eE":
            position += 1
            if text[position : position + 1] in ("+", "-"):
                position += 1
            return _at(data, text, position, "in exponent of numeric literal")
    inside = _enclosing(text, position)
    context = {"{": "after object key:value pair", "[": "after array element"}.get(inside, "after top-level value")
    return _at(data, text, position, context)


def _enclosing(text: str, position: int) -> str:
    """Return the bracket that is open at a position; C{""} for none."""
    closed = 0
    brackets: list[str] = _bracket(_string("", text[:position]))
    for bracket in reversed(brackets):
        if bracket in "]}":
            closed += 1
        elif closed:
            closed -= 1
        else:
            return bracket
    return ""


def _no_value(data: bytes, text: str, position: int) -> str:
    """Return the message for a missing value."""
    if position >= len(text):
        return _END
    this = text[position]
    if this == "-":
        return _at(data, text, position + 1, "in numeric literal")
    literal = _literals.get(this)
    if literal is None:
        return _at(data, text, position, "looking for beginning of value")
    for index, expected in enumerate(literal):
        if text[position + index : position + index + 1] != expected:
            context = f"in literal {literal} (expecting {quoted_char(expected)})"
            return _at(data, text, position + index, context)
    return _at(data, text, position, "looking for beginning of value")


def _constant_message(data: bytes, text: str) -> str:
    """Return the message for C{NaN} or an infinity outside of strings."""
    masked = _string(lambda match: " " * len(match.group()), text)
    match = re.search("NaN|-?Infinity", masked)
    if match is None:
        return _END
    if match.group().startswith("-"):
        return _at(data, text, match.start() + 1, "in numeric literal")
    return _at(data, text, match.start(), "looking for beginning of value")
