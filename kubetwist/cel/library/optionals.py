"""
Functions on optional values.

See google/cel-go, C{cel/library.go}. The syntax C{.?} and C{[?]} is in the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.cel.errors import CelError
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.macros import OPTIONAL_MACROS
from kubetwist.cel.types import BOOL, OPTIONAL, list_of, optional_of, type_parameter
from kubetwist.cel.values import LISTS, MAPS, NONE, Duration, Optional, Timestamp, Value

_V: Final = type_parameter("V")
_OPTIONAL: Final = optional_of(_V)
_LIST: Final = list_of(_V)

#: Go's zero time, the start of the year 1, in nanoseconds since 1970.
_ZERO_TIME: Final = -62_135_596_800_000_000_000


def is_zero(value: Value) -> bool:
    """Return whether a value is the zero value of its type: 0, C{""}, an empty list or null."""
    if value is None:
        return True
    if isinstance(value, (bool, int, float, str, bytes)):
        return not value
    if isinstance(value, (*LISTS, *MAPS)):
        return not len(value)
    if isinstance(value, Duration):
        return not value.ns
    return isinstance(value, Timestamp) and value.ns == _ZERO_TIME


def _of_non_zero(value: Value) -> Optional:
    return NONE if is_zero(value) else Optional(value)


def _none() -> Optional:
    return NONE


def _value(optional: Optional) -> Value:
    return optional.value


def _has_value(optional: Optional) -> bool:
    return optional.present


def _or(optional: Value, other: Callable[[], Value]) -> Value:
    # cel-go, evalOptionalOr: a value that is not optional is returned unchanged.
    return optional if type(optional) is not Optional or optional.present else other()


def _or_value(optional: Value, other: Callable[[], Value]) -> Value:
    if type(optional) is not Optional:
        return optional
    return optional.value if optional.present else other()


def _first(values: Sequence[Value]) -> Optional:
    return Optional(values[0]) if len(values) else NONE


def _last(values: Sequence[Value]) -> Optional:
    return Optional(values[-1]) if len(values) else NONE


def _unwrap(values: Sequence[Value]) -> list[Value]:
    unwrapped = []
    for value in values:
        if type(value) is not Optional:
            raise CelError(f"value {value} is not optional")
        if value.present:
            unwrapped.append(value.value)
    return unwrapped


OPTIONALS: Final = Library(
    "cel.lib.optional",
    [
        function("optional.of", overload("optional_of", (_V,), _OPTIONAL, Optional)),
        function("optional.ofNonZeroValue", overload("optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero)),
        function("optional.none", overload("optional_none", (), _OPTIONAL, _none)),
        function("value", member("optional_value", (_OPTIONAL,), _V, _value)),
        function("hasValue", member("optional_hasValue", (_OPTIONAL,), BOOL, _has_value)),
        function("or", member("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _or, lazy=True)),
        function("orValue", member("optional_orValue_value", (_OPTIONAL, _V), _V, _or_value, lazy=True)),
        function("first", member("list_first", (_LIST,), _OPTIONAL, _first)),
        function("last", member("list_last", (_LIST,), _OPTIONAL, _last)),
        function("optional.unwrap", overload("optional_unwrap", (list_of(_OPTIONAL),), _LIST, _unwrap)),
        function("unwrapOpt", member("optional_unwrapOpt", (list_of(_OPTIONAL),), _LIST, _unwrap)),
    ],
    macros=OPTIONAL_MACROS,
    types={OPTIONAL.name: OPTIONAL},
)
