"""Validators of checked expressions; see cel-go, C{cel/validator.go}."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kubetwist.api.patterns import PatternError, compile_pattern
from kubetwist.cel.ast import Call, Expr, ListExpr, Literal, MapExpr, children, walk
from kubetwist.cel.checker import Checked
from kubetwist.cel.errors import CelError
from kubetwist.cel.standard.times import SECOND, parse_duration, parse_timestamp, timestamp_of
from kubetwist.cel.types import Kind, Type
from kubetwist.cel.unify import format_cel_type
from kubetwist.cel.values import Value

#: Yields pairs of an invalid node and an error message.
Validator = Callable[[Checked], Iterator[tuple[Expr, str]]]

#: Functions whose arguments may contain literals with elements of different types.
_MIXED: Final = frozenset({"format"})


def _duration(value: Value) -> None:
    if type(value) is str:
        parse_duration(value)
    elif type(value) is int:
        raise CelError("")


def _timestamp(value: Value) -> None:
    if type(value) is str:
        parse_timestamp(value)
    elif type(value) is int:
        timestamp_of(value * SECOND)


def _pattern(value: Value) -> None:
    if type(value) is str:
        compile_pattern(value)


_LITERALS: Final[dict[str, Callable[[Value], None]]] = {
    "duration": _duration,
    "timestamp": _timestamp,
    "matches": _pattern,
}


def literal_arguments(checked: Checked) -> Iterator[tuple[Expr, str]]:
    """Report invalid literals of durations, timestamps and regular expressions."""
    for expr in walk(checked.root):
        if not isinstance(expr, Call) or not expr.args:
            continue
        check, argument = _LITERALS.get(expr.function), expr.args[0]
        if check is None or not isinstance(argument, Literal):
            continue
        try:
            check(argument.value)
        except (CelError, PatternError):
            yield argument, f"invalid {expr.function} argument"


def homogeneous_literals(checked: Checked) -> Iterator[tuple[Expr, str]]:
    """Report list and map literals whose elements have different types."""
    pending: list[Expr] = [checked.root]
    while pending:
        expr = pending.pop()
        if isinstance(expr, Call) and expr.function in _MIXED:
            continue
        if isinstance(expr, ListExpr):
            yield from _mixed(_element_types(checked, expr), once=True)
        elif isinstance(expr, MapExpr):
            keys = [(entry.key, checked.types[entry.key.id]) for entry in expr.entries]
            values = [
                (entry.value, _unwrapped(checked.types[entry.value.id], entry.optional)) for entry in expr.entries
            ]
            yield from _mixed(keys, once=False)
            yield from _mixed(values, once=False)
        pending.extend(children(expr))


def _element_types(checked: Checked, expr: ListExpr) -> list[tuple[Expr, Type]]:
    return [
        (element, _unwrapped(checked.types[element.id], index in expr.optional))
        for index, element in enumerate(expr.elements)
    ]


def _unwrapped(type_: Type, optional: bool) -> Type:
    return type_.parameters[0] if optional and type_.parameters else type_


def _mixed(elements: Sequence[tuple[Expr, Type]], once: bool) -> Iterator[tuple[Expr, str]]:
    for expr, type_ in elements[1:]:
        first = elements[0][1]
        if not _equivalent(first, type_):
            yield expr, f"expected type '{format_cel_type(first)}' but found '{format_cel_type(type_)}'"
            if once:
                return


def _equivalent(first: Type, second: Type) -> bool:
    return (
        first.kind is second.kind
        and (first.kind is Kind.TYPE_PARAM or first.name == second.name)
        and len(first.parameters) == len(second.parameters)
        and all(map(_equivalent, first.parameters, second.parameters))
    )


VALIDATORS: Final[tuple[Validator, ...]] = (literal_arguments, homogeneous_literals)
