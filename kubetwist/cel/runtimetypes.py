"""Run-time checks that values have the types of parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubetwist.cel.types import Kind, Type
from kubetwist.cel.values import (
    LISTS,
    MAPS,
    Duration,
    Optional,
    Timestamp,
    UInt,
    Value,
    type_of,
)

Fits = Callable[[Value], bool]

_PYTHON: Final[dict[Kind, type]] = {
    Kind.BOOL: bool,
    Kind.BYTES: bytes,
    Kind.DOUBLE: float,
    Kind.DURATION: Duration,
    Kind.INT: int,
    Kind.NULL: type(None),
    Kind.STRING: str,
    Kind.TIMESTAMP: Timestamp,
    Kind.UINT: UInt,
}
_ANY: Final = frozenset({Kind.DYN, Kind.TYPE_PARAM, Kind.ERROR})


def is_certain(type_: Type) -> bool:
    """Return whether a value of a static type needs no check at run time."""
    return type_.kind not in _ANY and all(map(is_certain, type_.parameters))


def fits(type_: Type) -> Fits | None:
    """Return a function that checks that a value has a type, or C{None} if every value has it."""
    if type_.kind in _ANY:
        return None
    python = _PYTHON.get(type_.kind)
    if python is not None:
        if type_.nullable:
            return lambda value: value is None or type(value) is python
        return lambda value: type(value) is python
    if type_.kind is Kind.LIST:
        return _list_fits(fits(type_.parameters[0]))
    if type_.kind is Kind.MAP:
        return _map_fits(fits(type_.parameters[0]), fits(type_.parameters[1]))
    if type_.name == "optional_type":
        return lambda value: type(value) is Optional
    if type_.kind is Kind.TYPE:
        return lambda value: isinstance(value, Type)
    name = type_.name
    return lambda value: type_of(value).name == name


def _list_fits(element: Fits | None) -> Fits:
    def check(value: Value) -> bool:
        # cel-go checks only the first element, too.
        return isinstance(value, LISTS) and (element is None or not value or element(value[0]))

    return check


def _map_fits(key: Fits | None, value: Fits | None) -> Fits:
    def check(candidate: Value) -> bool:
        if not isinstance(candidate, MAPS):
            return False
        if not candidate or (key is None and value is None):
            return True
        first = next(iter(candidate))
        return (key is None or key(first)) and (value is None or value(_first_value(candidate, first)))

    return check


def _first_value(mapping: Mapping[Value, Value], key: Value) -> Value:
    return mapping[key]


def signature_fits(parameters: Sequence[Type], static: Sequence[Type]) -> Callable[[Sequence[Value]], bool] | None:
    """
    Return a function that checks that arguments have the types of parameters.

    @param static: The static types of the arguments.
    @return: C{None} if no check is needed.
    """
    checks = [
        (index, check)
        for index, (parameter, known) in enumerate(zip(parameters, static, strict=True))
        if not is_certain(known) and (check := fits(parameter)) is not None
    ]
    if not checks:
        return None
    if len(checks) == 1:
        [(only, fit)] = checks
        return lambda args: fit(args[only])
    return lambda args: all(check(args[index]) for index, check in checks)


def no_overload(function: str, args: Sequence[Value]) -> str:
    """Return cel-go's error message for arguments that match no overload."""
    return f"no such overload: {function}({', '.join(type_of(arg).name for arg in args)})"
