"""
The types that are one JSON value: scalars, bytes, quantities, times, values of any shape.

A reader takes a value that is not C{null} and returns it as Go would write it again.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from ..api.jsontypes import JSONValue
from ..api.quantity import canonical
from ..api.times import parse_micro_time, parse_time
from .mismatch import Mismatch, Unreadable

#: Reads a value; the list takes the names of unknown fields within it, without their paths.
Reader = Callable[[JSONValue, list[str]], JSONValue]
#: Converts a value other than C{null} as apimachinery's converter of unstructured objects does.
Coercion = Callable[[JSONValue], JSONValue]


def text(go_type: str) -> Reader:
    """Read strings."""

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is not str:
            raise Mismatch(value, go_type, "string")
        return value

    return read


def boolean(go_type: str) -> Reader:
    """Read booleans."""

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is not bool:
            raise Mismatch(value, go_type, "bool")
        return value

    return read


_RANGES = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint8": (0, (1 << 8) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}


def integer(go_type: str, width: str) -> Reader:
    """Read integers of a width, C{"int32"}; C{2.0} is rejected."""
    lowest, highest = _RANGES.get(width, _RANGES["int64"])

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is int and lowest <= value <= highest:
            return value
        raise Mismatch(value, go_type, width, value.__class__ is int or value.__class__ is float)

    return read


def wrapping(width: str) -> Coercion:
    """
    Return a function that converts numbers to integers of a width, C{"int32"}, as apimachinery's converter does.

    Whole floats become integers, and integers lose the bits that do not fit; L{integer} refuses other values. Rule:
    C{fromUnstructured} in C{pkg/runtime/converter.go}, whose C{reflect.Value.Convert} checks no range.
    """
    lowest, highest = _RANGES.get(width, _RANGES["int64"])
    size = highest - lowest + 1
    int64 = _RANGES["int64"]

    def coerce(value: JSONValue) -> JSONValue:
        if value.__class__ is int and not int64[0] <= value <= int64[1]:
            # Go has decoded it as a float.
            value = float(value)
        if value.__class__ is float:
            if not value.is_integer():
                return value
            value = int(value)
            if not int64[0] <= value <= int64[1]:
                value = int64[0]
        return (value - lowest) % size + lowest if value.__class__ is int else value

    return coerce


_wrapping_octet = wrapping("uint8")


def wrapping_octets(value: JSONValue) -> JSONValue:
    """Convert bytes that are given as a list of numbers, each as L{wrapping} does."""
    return [*map(_wrapping_octet, value)] if value.__class__ is list else value


def rewritten(value: JSONValue) -> JSONValue:
    """Format a number as Go writes it: the converter passes the JSON form to types that have an unmarshaler."""
    return int(value) if value.__class__ is float and value.is_integer() and abs(value) < 1e21 else value


#: Integers up to this one are exact as 64-bit floating point numbers.
_EXACT = 1 << 53


def number(go_type: str) -> Reader:
    """Return a reader of 64-bit floating point numbers; whole ones are written without a fraction."""

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is int:
            if -_EXACT <= value <= _EXACT:
                return value
            value = float(value)
        if value.__class__ is not float:
            raise Mismatch(value, go_type, "float64")
        return int(value) if value.is_integer() and abs(value) < 1e21 else value

    return read


def octets(go_type: str) -> Reader:
    """Read bytes: base64, or a list of their numbers."""
    octet = integer("uint8", "uint8")

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is str:
            return base64_canonical(value)
        if value.__class__ is not list:
            raise Mismatch(value, go_type, "slice")
        return base64.b64encode(bytes([0 if item is None else octet(item, unknown) for item in value])).decode()

    return read


def base64_canonical(value: str) -> str:
    """
    Normalize base64 as Go does: line breaks are ignored, spare bits may be set.

    @raise Unreadable: The value is invalid.
    """
    try:
        data = value.encode("ascii")
        if b"\n" in data or b"\r" in data:
            data = data.replace(b"\n", b"").replace(b"\r", b"")
        decoded = binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        why = f"illegal base64 data at input byte {_base64_mistake(value.encode())}"
        raise Unreadable(why, f"error decoding from json: {why}") from None
    return base64.b64encode(decoded).decode()


_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _base64_mistake(data: bytes) -> int:
    """Return the position that Go's decoder complains about."""
    position = 0
    length = len(data)
    while True:
        taken = 0
        while taken < 4:
            if position == length:
                return position - taken
            octet = data[position]
            position += 1
            if octet in _ALPHABET:
                taken += 1
                continue
            if octet in b"\r\n":
                continue
            if octet != ord("=") or taken < 2:
                return position - 1
            if taken == 2:
                position = _past_line_breaks(data, position)
                if position == length:
                    return length
                if data[position] != ord("="):
                    return position - 1
                position += 1
            return _past_line_breaks(data, position)


def _past_line_breaks(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in b"\r\n":
        position += 1
    return position


class Problems(list[str]):
    """
    A list of problems, for callers that can decode a document again with numbers as written.

    @ivar inexact: Whether a decoded quantity is a number with a fraction or exponent, or with more digits than an
        integer has.
    """

    inexact = False


def quantity(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Read quantities, as strings or numbers, and return the canonical form."""
    if type(value) is float and isinstance(unknown, Problems):
        unknown.inexact = True
    try:
        return canonical(value)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def time(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Read times of whole seconds, in UTC; the zero time is L{None}."""
    if value.__class__ is not str:
        raise Mismatch(value, "string", "")
    try:
        return parse_time(value)
    except ValueError as error:
        raise Unreadable(str(error)) from None


def micro_time(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Read times of microseconds, in UTC; the zero time is L{None}."""
    if value.__class__ is not str:
        raise Mismatch(value, "string", "")
    try:
        return parse_micro_time(value)
    except ValueError as error:
        raise Unreadable(str(error)) from None


_int32 = _RANGES["int32"]


def int_or_string(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Return a number or a name of one, a number or a percentage."""
    if value.__class__ is str or (value.__class__ is int and _int32[0] <= value <= _int32[1]):
        return value
    raise Mismatch(value, "int32", "", value.__class__ is int or value.__class__ is float)


def anything(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Read any JSON unchanged."""
    if value.__class__ is dict:
        return {key: anything(item, unknown) for key, item in value.items()}
    if value.__class__ is list:
        return [anything(item, unknown) for item in value]
    return value


def numbers_rewritten(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode any JSON as Go does when it encodes it again: whole floats lose their fraction."""
    if value.__class__ is dict:
        return {key: numbers_rewritten(item, unknown) for key, item in value.items()}
    if value.__class__ is list:
        return [numbers_rewritten(item, unknown) for item in value]
    return rewritten(value)
