"""Type conversions, and the functions on strings."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kubetwist.api.patterns import PatternError, compile_pattern
from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Function, function, member, overload
from kubetwist.cel.standard.gonumbers import format_g, parse_float, parse_int, parse_uint
from kubetwist.cel.standard.operators import A
from kubetwist.cel.standard.times import (
    SECOND,
    conversion_error,
    format_duration,
    format_timestamp,
    parse_duration,
    parse_timestamp,
    timestamp_of,
)
from kubetwist.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    type_of_type,
)
from kubetwist.cel.values import MAX_INT, MAX_UINT, MIN_INT, Duration, Timestamp, UInt, Value, type_of

_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})


def _identity(value: Value) -> Value:
    return value


def _parse_bool(text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise conversion_error(STRING, BOOL)


def _parse_double(text: str) -> float:
    number = parse_float(text)
    if number is None:
        raise conversion_error(STRING, DOUBLE)
    return number


def _parse_int(text: str) -> int:
    number = parse_int(text)
    if number is None or not MIN_INT <= number <= MAX_INT:
        raise conversion_error(STRING, INT)
    return number


def _parse_uint(text: str) -> UInt:
    number = parse_uint(text)
    if number is None or number > MAX_UINT:
        raise conversion_error(STRING, UINT)
    return UInt(number)


def _double_to_int(number: float) -> int:
    if not math.isfinite(number) or not MIN_INT < number < MAX_INT:
        raise CelError("integer overflow")
    return int(number)


def _double_to_uint(number: float) -> UInt:
    if not math.isfinite(number) or not 0 <= number < MAX_UINT:
        raise CelError("unsigned integer overflow")
    return UInt(int(number))


def _int_to_uint(number: int) -> UInt:
    if number < 0:
        raise CelError("unsigned integer overflow")
    return UInt(number)


def _uint_to_int(number: UInt) -> int:
    if number > MAX_INT:
        raise CelError("integer overflow")
    return int(number)


def _decode(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _format_bool(value: bool) -> str:
    return "true" if value else "false"


def _format_int(value: int) -> str:
    return str(int(value))


def _duration_to_int(value: Duration) -> int:
    return value.ns


def _timestamp_to_int(value: Timestamp) -> int:
    return value.ns // SECOND


def _int_to_timestamp(seconds: int) -> Timestamp:
    return timestamp_of(seconds * SECOND)


def _int_to_duration(_: int) -> Duration:
    raise conversion_error(INT, DURATION)


def _type(value: Value) -> Type:
    return type_of(value)


def _contains(text: str, part: str) -> bool:
    return part in text


def matches(text: str, pattern: str) -> bool:
    """
    Return whether a regular expression of RE2 matches a substring.

    @raise CelError: The regular expression is invalid.
    """
    try:
        return compile_pattern(pattern).search(text) is not None
    except PatternError as error:
        raise CelError(str(error)) from None


def _convert(name: str, *overloads: tuple[str, Type, Callable[..., Value]], to: Type) -> Function:
    return function(name, *(overload(id, (from_,), to, call) for id, from_, call in overloads))


FUNCTIONS: Final = (
    function("type", overload("type", (A,), type_of_type(A), _type)),
    function("dyn", overload("to_dyn", (A,), DYN, _identity)),
    _convert("bool", ("bool_to_bool", BOOL, _identity), ("string_to_bool", STRING, _parse_bool), to=BOOL),
    _convert("bytes", ("bytes_to_bytes", BYTES, _identity), ("string_to_bytes", STRING, str.encode), to=BYTES),
    _convert(
        "double",
        ("double_to_double", DOUBLE, _identity),
        ("int64_to_double", INT, float),
        ("string_to_double", STRING, _parse_double),
        ("uint64_to_double", UINT, float),
        to=DOUBLE,
    ),
    _convert(
        "duration",
        ("duration_to_duration", DURATION, _identity),
        ("int64_to_duration", INT, _int_to_duration),
        ("string_to_duration", STRING, parse_duration),
        to=DURATION,
    ),
    _convert(
        "int",
        ("int64_to_int64", INT, _identity),
        ("double_to_int64", DOUBLE, _double_to_int),
        ("duration_to_int64", DURATION, _duration_to_int),
        ("string_to_int64", STRING, _parse_int),
        ("timestamp_to_int64", TIMESTAMP, _timestamp_to_int),
        ("uint64_to_int64", UINT, _uint_to_int),
        to=INT,
    ),
    _convert(
        "string",
        ("string_to_string", STRING, _identity),
        ("bool_to_string", BOOL, _format_bool),
        ("bytes_to_string", BYTES, _decode),
        ("double_to_string", DOUBLE, format_g),
        ("duration_to_string", DURATION, format_duration),
        ("int64_to_string", INT, _format_int),
        ("timestamp_to_string", TIMESTAMP, format_timestamp),
        ("uint64_to_string", UINT, _format_int),
        to=STRING,
    ),
    _convert(
        "timestamp",
        ("timestamp_to_timestamp", TIMESTAMP, _identity),
        ("int64_to_timestamp", INT, _int_to_timestamp),
        ("string_to_timestamp", STRING, parse_timestamp),
        to=TIMESTAMP,
    ),
    _convert(
        "uint",
        ("uint64_to_uint64", UINT, _identity),
        ("double_to_uint64", DOUBLE, _double_to_uint),
        ("int64_to_uint64", INT, _int_to_uint),
        ("string_to_uint64", STRING, _parse_uint),
        to=UINT,
    ),
    function("contains", member("contains_string", (STRING, STRING), BOOL, _contains)),
    function("endsWith", member("ends_with_string", (STRING, STRING), BOOL, str.endswith)),
    function("startsWith", member("starts_with_string", (STRING, STRING), BOOL, str.startswith)),
    function(
        "matches",
        overload("matches", (STRING, STRING), BOOL, matches),
        member("matches_string", (STRING, STRING), BOOL, matches),
    ),
)
