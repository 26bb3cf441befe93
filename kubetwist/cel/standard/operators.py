"""Operators, with implementations for known types and for values of any type."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Final

from kubetwist.cel.errors import CelError, CostLimitExceeded, no_such_overload
from kubetwist.cel.functions import Function, Overload, function, overload
from kubetwist.cel.standard.gonumbers import format_g
from kubetwist.cel.standard.times import SECOND, duration_of, timestamp_of
from kubetwist.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_parameter,
)
from kubetwist.cel.values import (
    LISTS,
    MAPS,
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    MISSING,
    Duration,
    ListValue,
    Timestamp,
    UInt,
    Value,
    compare,
    equal,
    find,
    type_of,
)

A: Final = type_parameter("A")
B: Final = type_parameter("B")
_LIST: Final = list_of(A)
_MAP: Final = map_of(A, B)


def _int(number: int) -> int:
    if MIN_INT <= number <= MAX_INT:
        return number
    raise CelError("integer overflow")


def _uint(number: int) -> UInt:
    if 0 <= number <= MAX_UINT:
        return UInt(number)
    raise CelError("unsigned integer overflow")


def _add_int(left: int, right: int) -> int:
    number = left + right
    if MIN_INT <= number <= MAX_INT:
        return number
    raise CelError("integer overflow")


def _subtract_int(left: int, right: int) -> int:
    return _int(left - right)


def _multiply_int(left: int, right: int) -> int:
    return _int(left * right)


def _divide_int(left: int, right: int) -> int:
    if right == 0:
        raise CelError("division by zero")
    quotient = abs(left) // abs(right)
    return _int(quotient if (left < 0) is (right < 0) else -quotient)


def _modulo_int(left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    if right == -1 and left == MIN_INT:
        raise CelError("integer overflow")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _negate_int(number: int) -> int:
    return _int(-number)


def _add_uint(left: UInt, right: UInt) -> UInt:
    return _uint(int(left) + int(right))


def _subtract_uint(left: UInt, right: UInt) -> UInt:
    return _uint(int(left) - int(right))


def _multiply_uint(left: UInt, right: UInt) -> UInt:
    return _uint(int(left) * int(right))


def _divide_uint(left: UInt, right: UInt) -> UInt:
    if right == 0:
        raise CelError("division by zero")
    return UInt(int(left) // int(right))


def _modulo_uint(left: UInt, right: UInt) -> UInt:
    if right == 0:
        raise CelError("modulus by zero")
    return UInt(int(left) % int(right))


def _divide_double(left: float, right: float) -> float:
    if right:
        return left / right
    if left != left or left == 0 or right != right:
        return float("nan")
    negative = (left < 0) is not (str(right) == "-0.0")
    return float("-inf") if negative else float("inf")


def _multiply_double(left: float, right: float) -> float:
    return left * right


def _add_durations(left: Duration, right: Duration) -> Duration:
    return duration_of(left.ns + right.ns)


def _subtract_durations(left: Duration, right: Duration) -> Duration:
    return duration_of(left.ns - right.ns)


def _add_to_timestamp(left: Timestamp, right: Duration) -> Timestamp:
    return timestamp_of(left.ns + right.ns, left.offset)


def _add_to_duration(left: Duration, right: Timestamp) -> Timestamp:
    return timestamp_of(left.ns + right.ns, right.offset)


def _subtract_from_timestamp(left: Timestamp, right: Duration) -> Timestamp:
    return timestamp_of(left.ns - right.ns, left.offset)


def _subtract_timestamps(left: Timestamp, right: Timestamp) -> Duration:
    return duration_of(left.ns - right.ns)


#: Longer lists are concatenated without a copy.
_MAX_COPIED_LENGTH: Final = 1000
#: Maximum length of a concatenated list, since repeated doubling has a low cost.
_MAX_LIST_LENGTH: Final = 2_000_000


class _ConcatList(ListValue):
    """A concatenation of two lists without a copy."""

    __slots__ = ("_left", "_right", "_size")

    def __init__(self, left: Value, right: Value) -> None:
        self._left = left
        self._right = right
        self._size = len(left) + len(right)

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Value) -> Value:
        if isinstance(index, slice):
            return list(self)[index]
        if not -self._size <= index < self._size:
            raise IndexError(index)
        index %= self._size
        current: Value = self
        while isinstance(current, _ConcatList):
            if index < len(current._left):
                current = current._left
            else:
                index -= len(current._left)
                current = current._right
        return current[index]

    def __iter__(self) -> Iterator[Value]:
        pending: list[Value] = [self]
        while pending:
            current = pending.pop()
            if isinstance(current, _ConcatList):
                pending += (current._right, current._left)
            else:
                yield from current

    def concat(self, other: Value) -> Value:
        """Return the concatenation with another list."""
        return _concat(self, other)


def _concat(left: Value, right: Value) -> Value:
    if len(left) + len(right) > _MAX_LIST_LENGTH:
        raise CostLimitExceeded
    return _ConcatList(left, right)


def _add_lists(left: Value, right: Value) -> Value:
    if isinstance(left, ListValue):
        return left.concat(right)
    if not right:
        return left
    return [*left, *right] if len(left) + len(right) <= _MAX_COPIED_LENGTH else _concat(left, right)


def _negate_double(number: float) -> float:
    return -number


Binary = Callable[[Value, Value], Value]

_ADD: Final = (
    overload("add_bytes", (BYTES, BYTES), BYTES, operator.add),
    overload("add_double", (DOUBLE, DOUBLE), DOUBLE, operator.add),
    overload("add_duration_duration", (DURATION, DURATION), DURATION, _add_durations),
    overload("add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, _add_to_duration),
    overload("add_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, _add_to_timestamp),
    overload("add_int64", (INT, INT), INT, _add_int),
    overload("add_list", (_LIST, _LIST), _LIST, _add_lists),
    overload("add_string", (STRING, STRING), STRING, operator.add),
    overload("add_uint64", (UINT, UINT), UINT, _add_uint),
)
_SUBTRACT: Final = (
    overload("subtract_double", (DOUBLE, DOUBLE), DOUBLE, operator.sub),
    overload("subtract_duration_duration", (DURATION, DURATION), DURATION, _subtract_durations),
    overload("subtract_int64", (INT, INT), INT, _subtract_int),
    overload("subtract_timestamp_duration", (TIMESTAMP, DURATION), TIMESTAMP, _subtract_from_timestamp),
    overload("subtract_timestamp_timestamp", (TIMESTAMP, TIMESTAMP), DURATION, _subtract_timestamps),
    overload("subtract_uint64", (UINT, UINT), UINT, _subtract_uint),
)
_MULTIPLY: Final = (
    overload("multiply_double", (DOUBLE, DOUBLE), DOUBLE, operator.mul),
    overload("multiply_int64", (INT, INT), INT, _multiply_int),
    overload("multiply_uint64", (UINT, UINT), UINT, _multiply_uint),
)
_DIVIDE: Final = (
    overload("divide_double", (DOUBLE, DOUBLE), DOUBLE, _divide_double),
    overload("divide_int64", (INT, INT), INT, _divide_int),
    overload("divide_uint64", (UINT, UINT), UINT, _divide_uint),
)
_MODULO: Final = (
    overload("modulo_int64", (INT, INT), INT, _modulo_int),
    overload("modulo_uint64", (UINT, UINT), UINT, _modulo_uint),
)

# In cel-go an operator is a method of its left operand. These types have the method; the error for other types contains
# the name of the operator.
_NUMERIC: Final = frozenset({int, UInt, float})
_TYPES_WITH_OPERATOR: Final[dict[str, frozenset[type]]] = {
    "_+_": _NUMERIC | {str, bytes, Duration, Timestamp},
    "_-_": _NUMERIC | {Duration, Timestamp, str},
    "_*_": _NUMERIC | {str, Duration, Timestamp},
    "_/_": _NUMERIC | {str, Duration, Timestamp},
    "_%_": frozenset({int, UInt, str, Duration, Timestamp}),
}


def _generic(name: str, overloads: tuple[Overload, ...]) -> Binary:
    """Return the implementation of an operator for operands whose types are known only at run time."""
    table: dict[tuple[type, type], Binary] = {}
    python = {
        BYTES: bytes, DOUBLE: float, DURATION: Duration, INT: int, STRING: str, TIMESTAMP: Timestamp, UINT: UInt,
    }  # fmt: skip
    for candidate in overloads:
        left, right = candidate.parameters
        if left in python:
            table[python[left], python[right]] = candidate.call
    has_operator, lists = _TYPES_WITH_OPERATOR[name], name == "_+_"

    def apply(left: Value, right: Value) -> Value:
        found = table.get((type(left), type(right)))
        if found is not None:
            return found(left, right)
        if lists and isinstance(left, LISTS):
            if isinstance(right, LISTS):
                return _add_lists(left, right)
            raise no_such_overload()
        if type(left) in has_operator:
            raise no_such_overload()
        raise CelError(f"no such overload: {name}")

    return apply


add: Final = _generic("_+_", _ADD)


def negate(value: Value) -> Value:
    """Evaluate C{-x} for any value."""
    kind = type(value)
    if kind is int:
        return _int(-value)
    if kind is float:
        return -value
    if kind is Duration:
        return duration_of(-value.ns)
    if kind is bool:
        raise no_such_overload()
    raise CelError("no such overload: -_")


def less(left: Value, right: Value) -> bool:
    """Evaluate C{<} for any values."""
    return compare(left, right) < 0


def less_equals(left: Value, right: Value) -> bool:
    """Evaluate C{<=} for any values."""
    return compare(left, right) <= 0


def greater(left: Value, right: Value) -> bool:
    """Evaluate C{>} for any values."""
    return compare(left, right) > 0


def greater_equals(left: Value, right: Value) -> bool:
    """Evaluate C{>=} for any values."""
    return compare(left, right) >= 0


def _relation(name: str, word: str, generic: Binary, typed: Binary) -> Function:
    """Return a relation with overloads for all pairs of comparable types."""
    pairs: list[tuple[str, Type, Type]] = [
        ("bool", BOOL, BOOL),
        ("int64", INT, INT),
        ("int64_double", INT, DOUBLE),
        ("int64_uint64", INT, UINT),
        ("uint64", UINT, UINT),
        ("uint64_double", UINT, DOUBLE),
        ("uint64_int64", UINT, INT),
        ("double", DOUBLE, DOUBLE),
        ("double_int64", DOUBLE, INT),
        ("double_uint64", DOUBLE, UINT),
        ("string", STRING, STRING),
        ("bytes", BYTES, BYTES),
        ("timestamp", TIMESTAMP, TIMESTAMP),
        ("duration", DURATION, DURATION),
    ]
    plain = (BOOL, INT, UINT, STRING, BYTES)
    return function(
        name,
        *(
            overload(f"{word}_{suffix}", (left, right), BOOL, typed if left in plain and right in plain else generic)
            for suffix, left, right in pairs
        ),
    )


def is_in(value: Value, container: Value) -> bool:
    """Evaluate C{in} for a list or a map."""
    if isinstance(container, MAPS):
        return find(container, value) is not MISSING
    if isinstance(container, LISTS):
        return any(equal(element, value) for element in container)
    raise no_such_overload()


def size(value: Value) -> int:
    """Evaluate C{size()}."""
    kind = type(value)
    if kind is str or kind is list or kind is dict or kind is bytes or isinstance(value, (*LISTS, *MAPS)):
        length: int = len(value)
        return length
    raise CelError("no such overload: size")


def format_key(key: Value) -> str:
    """Format a key or an index for an error."""
    if type(key) is bool:
        return "true" if key else "false"
    if type(key) is UInt:
        return str(int(key))
    return format_g(key) if type(key) is float else str(key)


def index_of(key: Value) -> int:
    """
    Return a list index as an integer.

    @raise CelError: The value cannot be an index.
    """
    if type(key) is int:
        return key
    if type(key) is UInt:
        return int(key)
    if type(key) is float:
        if key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {format_g(key)} in list")
    raise CelError(f"unsupported index type '{type_of(key)}' in list")


def lookup(container: Value, key: Value) -> Value:
    """
    Return the value of a key in a map, or of an index in a list.

    @return: L{MISSING} if there is none.
    @raise CelError: The type of the key is invalid.
    """
    if isinstance(container, MAPS):
        return find(container, key)
    if isinstance(container, LISTS):
        index = index_of(key)
        return container[index] if 0 <= index < len(container) else MISSING
    return MISSING


def select(container: Value, key: Value) -> Value:
    """
    Evaluate C{container[key]}.

    @raise CelError: The key or index does not exist.
    """
    found = lookup(container, key)
    if found is not MISSING:
        return found
    if isinstance(container, LISTS):
        raise CelError(f"index out of bounds: {format_key(key)}")
    raise CelError(f"no such key: {format_key(key)}")


def _compiled_inline(*_: Value) -> Value:
    raise AssertionError("this function is compiled inline")


def not_strictly_false(value: Value) -> bool:
    """Return whether a comprehension may continue: the value is not false."""
    return value is not False


def _not(value: bool) -> bool:
    if value is True or value is False:
        return not value
    raise no_such_overload()


def _relations() -> Iterator[Function]:
    yield _relation("_<_", "less", less, operator.lt)
    yield _relation("_<=_", "less_equals", less_equals, operator.le)
    yield _relation("_>_", "greater", greater, operator.gt)
    yield _relation("_>=_", "greater_equals", greater_equals, operator.ge)


_SIZED: Final = (("bytes", BYTES), ("list", _LIST), ("map", _MAP), ("string", STRING))
_OPTIONAL: Final = optional_of(B)
_OPTIONAL_LIST: Final = optional_of(list_of(B))
_OPTIONAL_MAP: Final = optional_of(_MAP)

FUNCTIONS: Final = (
    function("_?_:_", overload("conditional", (BOOL, A, A), A, _compiled_inline)),
    function("_&&_", overload("logical_and", (BOOL, BOOL), BOOL, _compiled_inline)),
    function("_||_", overload("logical_or", (BOOL, BOOL), BOOL, _compiled_inline)),
    function("!_", overload("logical_not", (BOOL,), BOOL, _not)),
    function("@not_strictly_false", overload("not_strictly_false", (BOOL,), BOOL, not_strictly_false)),
    function("_==_", overload("equals", (A, A), BOOL, equal)),
    function("_!=_", overload("not_equals", (A, A), BOOL, _compiled_inline)),
    function("_+_", *_ADD),
    function("_-_", *_SUBTRACT),
    function("_*_", *_MULTIPLY),
    function("_/_", *_DIVIDE),
    function("_%_", *_MODULO),
    function(
        "-_",
        overload("negate_double", (DOUBLE,), DOUBLE, _negate_double),
        overload("negate_int64", (INT,), INT, _negate_int),
    ),
    *_relations(),
    function(
        "_[_]",
        overload("index_list", (_LIST, INT), A, _compiled_inline),
        overload("index_map", (_MAP, A), B, _compiled_inline),
        overload("optional_list_index_int", (_OPTIONAL_LIST, INT), _OPTIONAL, _compiled_inline),
        overload("optional_map_index_value", (_OPTIONAL_MAP, A), _OPTIONAL, _compiled_inline),
    ),
    function(
        "_[?_]",
        overload("list_optindex_optional_int", (list_of(B), INT), _OPTIONAL, _compiled_inline),
        overload("optional_list_optindex_optional_int", (_OPTIONAL_LIST, INT), _OPTIONAL, _compiled_inline),
        overload("map_optindex_optional_value", (_MAP, A), _OPTIONAL, _compiled_inline),
        overload("optional_map_optindex_optional_value", (_OPTIONAL_MAP, A), _OPTIONAL, _compiled_inline),
    ),
    function(
        "@in",
        overload("in_list", (A, _LIST), BOOL, is_in),
        overload("in_map", (A, _MAP), BOOL, is_in),
    ),
    function(
        "size",
        *(overload(f"size_{name}", (type_,), INT, size) for name, type_ in _SIZED),
        *(Overload(f"{name}_size", (type_,), INT, size, member=True) for name, type_ in _SIZED),
    ),
)

#: Implementations that check the types of their operands, by function name.
GENERIC: Final[dict[str, Callable[..., Value]]] = {
    "_+_": add,
    "_-_": _generic("_-_", _SUBTRACT),
    "_*_": _generic("_*_", _MULTIPLY),
    "_/_": _generic("_/_", _DIVIDE),
    "_%_": _generic("_%_", _MODULO),
    "-_": negate,
    "_<_": less,
    "_<=_": less_equals,
    "_>_": greater,
    "_>=_": greater_equals,
    "@in": is_in,
    "size": size,
    "!_": _not,
    "@not_strictly_false": not_strictly_false,
}

__all__ = ["FUNCTIONS", "GENERIC", "SECOND", "add", "format_key", "lookup", "select"]
