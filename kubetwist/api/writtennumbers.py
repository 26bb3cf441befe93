"""JSON numbers that keep their text, for quantities, whose value is the text."""

from __future__ import annotations

import json

from .decoding import decode_json
from .jsontypes import JSONValue

_INTEGERS = range(-(1 << 63), 1 << 64)


class WrittenNumber(float):
    """
    A number that is not an integer of 64 bits.

    @ivar text: The number as in the document.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> WrittenNumber:
        """Parse a JSON number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def with_written_numbers(document: bytes) -> JSONValue:
    """
    Decode JSON with L{WrittenNumber} for all numbers that are not integers.

    @return: A value equal to the result of L{decode_json}; L{None} if the text is not JSON or has duplicate keys.
    """
    try:
        result = json.loads(document, parse_float=WrittenNumber, parse_int=_integer)
        return result if result == decode_json(document).value else None
    except (ValueError, RecursionError):
        return None


def without_written_numbers(value: JSONValue) -> JSONValue:
    """Return the value with plain floats, which encoders support."""
    if isinstance(value, dict):
        return {name: without_written_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_written_numbers(item) for item in value]
    return float(value) if isinstance(value, WrittenNumber) else value


def _integer(text: str) -> int | WrittenNumber:
    if len(text) > 20:
        return WrittenNumber(text)
    number = int(text)
    return number if number in _INTEGERS else WrittenNumber(text)
