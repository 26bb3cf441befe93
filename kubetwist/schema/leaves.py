"""
Readers of scalars, bytes, quantities, times and arbitrary JSON.

A reader decodes a value that is not C{null} and returns it as Go encodes it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from ..api.jsontypes import JSONValue
from ..api.quantity import canonical
from ..api.times import parse_micro_time, parse_time
from .mismatch import UnmarshalerError, UnmarshalTypeError

#: Decodes a value; the list receives the names of unknown fields within it, without their paths.
Reader = Callable[[JSONValue, list[str]], JSONValue]
#: Converts a value other than C{null} as apimachinery's converter of unstructured objects does.
Coercion = Callable[[JSONValue], JSONValue]


def string_reader(go_type: str) -> Reader:
    """Return a reader of strings."""

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is not str:
            raise UnmarshalTypeError(value, go_type, "string")
        return value

    return read


def boolean_reader(go_type: str) -> Reader:
    """Return a reader of booleans."""

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is not bool:
            raise UnmarshalTypeError(value, go_type, "bool")
        return value

    return read


_RANGES = {
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
    "uint8": (0, (1 << 8) - 1),
    "uint32": (0, (1 << 32) - 1),
    "uint64": (0, (1 << 64) - 1),
}


def integer_reader(go_type: str, width: str) -> Reader:
    """Return a reader of integers of a width such as C{"int32"}; it rejects C{2.0}."""
    minimum, maximum = _RANGES.get(width, _RANGES["int64"])

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is int and minimum <= value <= maximum:
            return value
        raise UnmarshalTypeError(value, go_type, width, value.__class__ is int or value.__class__ is float)

    return read


def integer_coercion(width: str) -> Coercion:
    """
    Return a function that converts numbers to integers of a width such as C{"int32"}, as apimachinery's converter does.

    Whole floats become integers, and integers are truncated to the width; L{integer_reader} rejects the rest. See
    C{fromUnstructured} in C{pkg/runtime/converter.go}, whose C{reflect.Value.Convert} checks no range.
    """
    minimum, maximum = _RANGES.get(width, _RANGES["int64"])
    size = maximum - minimum + 1
    int64 = _RANGES["int64"]

    def coerce(value: JSONValue) -> JSONValue:
        if value.__class__ is int and not int64[0] <= value <= int64[1]:
            # Go decodes such numbers as floats.
            value = float(value)
        if value.__class__ is float:
            if not value.is_integer():
                return value
            value = int(value)
            if not int64[0] <= value <= int64[1]:
                value = int64[0]
        return (value - minimum) % size + minimum if value.__class__ is int else value

    return coerce


_coerce_uint8 = integer_coercion("uint8")


def coerce_bytes(value: JSONValue) -> JSONValue:
    """Convert a list of numbers to bytes as L{integer_coercion} does."""
    return [*map(_coerce_uint8, value)] if value.__class__ is list else value


def go_number(value: JSONValue) -> JSONValue:
    """Return a number as Go encodes it, for the converter passes JSON to types with an unmarshaler."""
    return int(value) if value.__class__ is float and value.is_integer() and abs(value) < 1e21 else value


#: Maximum integer up to which all integers are exact as doubles.
_MAX_EXACT_INTEGER = 1 << 53


def number_reader(go_type: str) -> Reader:
    """Return a reader of doubles, which are encoded without a fraction if they are whole."""

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is int:
            if -_MAX_EXACT_INTEGER <= value <= _MAX_EXACT_INTEGER:
                return value
            value = float(value)
        if value.__class__ is not float:
            raise UnmarshalTypeError(value, go_type, "float64")
        return int(value) if value.is_integer() and abs(value) < 1e21 else value

    return read


def bytes_reader(go_type: str) -> Reader:
    """Return a reader of bytes: a base64 string or a list of numbers."""
    byte = integer_reader("uint8", "uint8")

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if value.__class__ is str:
            return canonical_base64(value)
        if value.__class__ is not list:
            raise UnmarshalTypeError(value, go_type, "slice")
        return base64.b64encode(bytes([0 if item is None else byte(item, unknown) for item in value])).decode()

    return read


def canonical_base64(value: str) -> str:
    """
    Normalize base64 as Go does: line breaks are ignored, trailing bits may be set.

    @raise UnmarshalerError: The value is invalid.
    """
    try:
        data = value.encode("ascii")
        if b"\n" in data or b"\r" in data:
            data = data.replace(b"\n", b"").replace(b"\r", b"")
        decoded = binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        message = f"illegal base64 data at input byte {_corrupt_input_offset(value.encode())}"
        raise UnmarshalerError(message, f"error decoding from json: {message}") from None
    return base64.b64encode(decoded).decode()


_ALPHABET = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


def _corrupt_input_offset(data: bytes) -> int:
    """Return the offset in the error of Go's decoder (C{base64.CorruptInputError})."""
    position = 0
    length = len(data)
    while True:
        digits = 0
        while digits < 4:
            if position == length:
                return position - digits
            byte = data[position]
            position += 1
            if byte in _ALPHABET:
                digits += 1
                continue
            if byte in b"\r\n":
                continue
            if byte != ord("=") or digits < 2:
                return position - 1
            if digits == 2:
                position = _skip_line_breaks(data, position)
                if position == length:
                    return length
                if data[position] != ord("="):
                    return position - 1
                position += 1
            return _skip_line_breaks(data, position)


def _skip_line_breaks(data: bytes, position: int) -> int:
    while position < len(data) and data[position] in b"\r\n":
        position += 1
    return position


class StrictErrors(list[str]):
    """
    Strict decoding errors, for callers that can decode a document again with the original text of numbers.

    @ivar inexact: Whether a decoded quantity is a number with a fraction, an exponent, or more digits than an integer.
    """

    inexact = False


def read_quantity(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode a quantity, a string or a number, and return its canonical form."""
    if type(value) is float and isinstance(unknown, StrictErrors):
        unknown.inexact = True
    try:
        return canonical(value)
    except ValueError as error:
        raise UnmarshalerError(str(error)) from None


def read_time(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode a time with a resolution of seconds, in UTC; the zero time is L{None}."""
    if value.__class__ is not str:
        raise UnmarshalTypeError(value, "string", "")
    try:
        return parse_time(value)
    except ValueError as error:
        raise UnmarshalerError(str(error)) from None


def read_micro_time(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode a time with a resolution of microseconds, in UTC; the zero time is L{None}."""
    if value.__class__ is not str:
        raise UnmarshalTypeError(value, "string", "")
    try:
        return parse_micro_time(value)
    except ValueError as error:
        raise UnmarshalerError(str(error)) from None


_int32 = _RANGES["int32"]


def read_int_or_string(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode an C{IntOrString}."""
    if value.__class__ is str or (value.__class__ is int and _int32[0] <= value <= _int32[1]):
        return value
    raise UnmarshalTypeError(value, "int32", "", value.__class__ is int or value.__class__ is float)


def read_any(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode arbitrary JSON without changes."""
    if value.__class__ is dict:
        return {key: read_any(item, unknown) for key, item in value.items()}
    if value.__class__ is list:
        return [read_any(item, unknown) for item in value]
    return value


def read_json(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Decode arbitrary JSON as Go encodes it: whole floats lose their fraction."""
    if value.__class__ is dict:
        return {key: read_json(item, unknown) for key, item in value.items()}
    if value.__class__ is list:
        return [read_json(item, unknown) for item in value]
    return go_number(value)
