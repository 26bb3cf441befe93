"""
Kubernetes' functions on lists: C{isSorted}, C{sum}, C{min}, C{max}, C{indexOf}, C{lastIndexOf}.

See kubernetes/apiserver, C{pkg/cel/library/lists.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from kubetwist.cel.errors import CelError, no_such_overload
from kubetwist.cel.functions import Library, Overload, function, member
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
    type_parameter,
)
from kubetwist.cel.values import MAX_INT, MAX_UINT, MIN_INT, Duration, UInt, Value, compare, equal, type_of

#: Comparable types, with their names in overload ids.
COMPARABLE: Final = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)
_ORDERED: Final = frozenset(("bool", "bytes", "double", "int", "string", "uint", DURATION.name, TIMESTAMP.name))


def order(left: Value, right: Value) -> int | None:
    """Compare two values: -1, 0 or 1; L{None} for values that cannot be compared, and for NaN."""
    try:
        return compare(left, right)
    except CelError:
        return None


def is_comparable(value: Value) -> bool:
    """Return whether the type of a value is comparable."""
    return type_of(value).name in _ORDERED


def _is_sorted(values: Iterable[Value]) -> bool:
    previous: Value = None
    for index, value in enumerate(values):
        if not is_comparable(value):
            raise no_such_overload()
        # As in kube-apiserver, values that cannot be compared count as sorted.
        if index and order(previous, value) == 1:
            return False
        previous = value
    return True


def _min_or_max(name: str, sign: int) -> Callable[[Iterable[Value]], Value]:
    def min_or_max(values: Iterable[Value]) -> Value:
        result: Value = None
        empty = True
        for value in values:
            if not is_comparable(value):
                raise no_such_overload()
            if empty or order(result, value) == sign:
                result, empty = value, False
        if empty:
            raise CelError(f"{name} called on empty list")
        return result

    return min_or_max


def _sum_int(values: Iterable[Value]) -> int:
    total = 0
    for value in values:
        if type(value) is not int:
            raise no_such_overload()
        total += value
        if not MIN_INT <= total <= MAX_INT:
            raise CelError("integer overflow")
    return total


def _sum_uint(values: Iterable[Value]) -> UInt:
    total = 0
    for value in values:
        if type(value) is not UInt:
            raise no_such_overload()
        total += value
        if total > MAX_UINT:
            raise CelError("unsigned integer overflow")
    return UInt(total)


def _sum_double(values: Iterable[Value]) -> float:
    total = 0.0
    for value in values:
        if type(value) is not float:
            raise no_such_overload()
        total += value
    return total


def _sum_duration(values: Iterable[Value]) -> Duration:
    total = 0
    for value in values:
        if type(value) is not Duration:
            raise no_such_overload()
        total += value.ns
        if not MIN_INT <= total <= MAX_INT:
            raise CelError("duration overflow")
    return Duration(total)


_SUMS: Final[tuple[tuple[str, Type, Callable[[Iterable[Value]], Value]], ...]] = (
    ("int", INT, _sum_int),
    ("uint", UINT, _sum_uint),
    ("double", DOUBLE, _sum_double),
    ("duration", DURATION, _sum_duration),
)


def index_of(values: Sequence[Value], sought: Value) -> int:
    """Return the first index of a value, or -1."""
    return next((index for index, value in enumerate(values) if equal(value, sought)), -1)


def last_index_of(values: Sequence[Value], sought: Value) -> int:
    """Return the last index of a value, or -1."""
    return next((index for index in range(len(values) - 1, -1, -1) if equal(values[index], sought)), -1)


def _for_comparable(name: str, call: Callable[[Iterable[Value]], Value]) -> list[Overload]:
    return [member(f"list_{kind}_{name}_{kind}", (list_of(type_),), type_, call) for kind, type_ in COMPARABLE]


_A: Final = type_parameter("A")

KUBERNETES_LISTS: Final = Library(
    "kubernetes.lists",
    [
        function(
            "isSorted",
            *(member(f"list_{kind}_is_sorted_bool", (list_of(type_),), BOOL, _is_sorted) for kind, type_ in COMPARABLE),
        ),
        function(
            "sum", *(member(f"list_{kind}_sum_{kind}", (list_of(type_),), type_, call) for kind, type_, call in _SUMS)
        ),
        function("max", *_for_comparable("max", _min_or_max("max", -1))),
        function("min", *_for_comparable("min", _min_or_max("min", 1))),
        function("indexOf", member("list_a_index_of_int", (list_of(_A), _A), INT, index_of)),
        function("lastIndexOf", member("list_a_last_index_of_int", (list_of(_A), _A), INT, last_index_of)),
    ],
)
