"""
Functions on lists, version 3 of cel-go's extension: C{slice}, C{flatten}, C{sort}, C{lists.range}, C{reverse}, ...

See google/cel-go, C{ext/lists.go}.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cmp_to_key
from typing import Final

from kubetwist.cel.ast import Builder, Call, Comprehension, Expr, Ident, ListExpr, Macro, MacroError, Select
from kubetwist.cel.errors import CelError, CostLimitExceeded
from kubetwist.cel.estimates import (
    LIST_CREATE_COST,
    MAX,
    STRING_TRAVERSAL_FACTOR,
    AstNode,
    CallEstimate,
    Estimate,
    FunctionEstimator,
    fixed,
)
from kubetwist.cel.functions import Library, function, member, overload
from kubetwist.cel.library._valueset import ValueSet
from kubetwist.cel.library.kubelists import COMPARABLE, is_comparable, order
from kubetwist.cel.macros import bind
from kubetwist.cel.types import DYN, INT, list_of, type_parameter
from kubetwist.cel.values import LISTS as LIST_TYPES
from kubetwist.cel.values import Value, size_for_cost, type_of

#: Maximum length of a range: the cost limit of an evaluation.
_MAX_RANGE_LENGTH: Final = 1_000_000

_T: Final = type_parameter("T")
_LIST: Final = list_of(_T)


def _slice(values: Sequence[Value], start: int, end: int) -> Sequence[Value]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if len(values) < end:
        raise CelError(f"cannot slice({start}, {end}), list is length {len(values)}")
    return [values[index] for index in range(start, end)]


def _flatten(values: Sequence[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Value] = []
    pending = [(iter(values), depth)]
    while pending:
        rest, depth = pending[-1]
        for value in rest:
            if depth and isinstance(value, LIST_TYPES):
                pending.append((iter(value), depth - 1))
                break
            flat.append(value)
        else:
            pending.pop()
    return flat


def _sort(values: Sequence[Value]) -> Sequence[Value]:
    return _sort_by_keys(values, values)


def _sort_by_keys(values: Sequence[Value], keys: Sequence[Value]) -> Sequence[Value]:
    if len(values) != len(keys):
        raise CelError(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    # Read each element only once, since some lists convert elements on every access.
    keys = list(keys)
    if not is_comparable(keys[0]):
        raise CelError("list elements must be comparable")
    kind = type_of(keys[0])
    if len(keys) > 1 and any(type_of(key) != kind for key in keys):
        raise CelError("list elements must have the same type")

    def by_key(one: int, other: int) -> int:
        return order(keys[one], keys[other]) or 0

    indices = sorted(range(len(keys)), key=cmp_to_key(by_key))
    return [values[index] for index in indices]


def _range(count: int) -> list[int]:
    if count > _MAX_RANGE_LENGTH:
        # cel-go builds the list and then fails because of its cost.
        raise CostLimitExceeded
    return list(range(count))


def _reverse(values: Sequence[Value]) -> list[Value]:
    return list(reversed(values))


def _distinct(values: Sequence[Value]) -> list[Value]:
    seen = ValueSet()
    unique: list[Value] = []
    for value in values:
        if value not in seen:
            seen.add(value)
            unique.append(value)
    return unique


def _expand_sort_by(builder: Builder, target: Expr | None, args: Sequence[Expr]) -> Expr | None:
    """C{list.sortBy(e, key)}: C{cel.bind(input, list, input.@sortByAssociatedKeys(input.map(e, key)))}."""
    assert target is not None, "it is a member"
    if not isinstance(target, (ListExpr, Select, Ident, Comprehension, Call)):
        problem = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        raise MacroError(problem, target)
    variable, key = args
    if not isinstance(variable, Ident):
        raise MacroError("argument is not an identifier", variable)
    if variable.name in (builder.accumulator, "__result__"):
        raise MacroError("iteration variable overwrites accumulator variable", variable)
    name = "@__sortBy_input__"
    keys = builder.fold(
        builder.ident(name),
        variable.name,
        builder.list_of(),
        builder.literal(True),
        builder.call("_+_", builder.result(), builder.list_of(key)),
        builder.result(),
    )
    return bind(builder, name, target, builder.member("@sortByAssociatedKeys", builder.ident(name), keys))


# Costs: functions that return a list cost a call, a list creation, and the number of elements times a factor.


def _allocating(factor: float, size: Estimate) -> CallEstimate:
    return CallEstimate(size.multiply_by_cost_factor(factor).add(fixed(1 + LIST_CREATE_COST)), size)


def _literal_size(node: AstNode, default: int) -> int:
    value = node.literal
    return max(value, 0) if type(value) is int else default


def _estimate_slice(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
    if target is None or len(arguments) != 2:
        return None
    length = _literal_size(arguments[1], target.size.max) - _literal_size(arguments[0], 0)
    return _allocating(1, fixed(length & MAX))


def _estimate_range(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
    if target is not None or len(arguments) != 1:
        return None
    return _allocating(1, fixed(_literal_size(arguments[0], MAX)))


def _estimate_reverse(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
    return None if target is None or arguments else _allocating(1, target.size)


def _estimate_flatten(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
    if target is None or len(arguments) > 1:
        return None
    depth = _literal_size(arguments[0], MAX) if arguments else 1
    return _allocating(float(depth), target.size)


def _estimate_distinct(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
    return None if target is None or arguments else _allocating(2.0, target.size.multiply(target.size))


def _sort_factor(kind: str) -> float:
    return 2.0 + (STRING_TRAVERSAL_FACTOR if kind in ("string", "bytes") else 0)


def _estimate_sort(kind: str) -> FunctionEstimator:
    def estimator(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
        if target is None or arguments:
            return None
        return _allocating(_sort_factor(kind), target.size.multiply(target.size))

    return estimator


def _estimate_sort_by(kind: str) -> FunctionEstimator:
    def estimator(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
        if target is None or len(arguments) != 1:
            return None
        return _allocating(_sort_factor(kind), arguments[0].size.multiply(arguments[0].size))

    return estimator


def _allocation_cost(factor: float, size: int) -> int:
    return int(float(size) * factor) + 1 + LIST_CREATE_COST


def _track_result(arguments: Sequence[Value], result: Value) -> int:
    return _allocation_cost(1, size_for_cost(result))


def _track_flatten(arguments: Sequence[Value], result: Value) -> int:
    depth = float(arguments[1]) if len(arguments) == 2 else 1.0
    return _allocation_cost(depth, size_for_cost(arguments[0]))


def _track_comparisons(index: int) -> Callable[[Sequence[Value], Value], int]:
    def tracker(arguments: Sequence[Value], result: Value) -> int:
        values = arguments[index]
        size = len(values)
        kind = type_of(values[0]).name if size else ""
        return _allocation_cost(_sort_factor(kind), size * size)

    return tracker


LISTS: Final = Library(
    "cel.lib.ext.lists",
    [
        function(
            "slice",
            member("list_slice", (_LIST, INT, INT), _LIST, _slice, tracker=_track_result, estimator=_estimate_slice),
        ),
        function(
            "flatten",
            member(
                "list_flatten",
                (list_of(_LIST),),
                _LIST,
                _flatten,
                guarded=False,
                tracker=_track_flatten,
                estimator=_estimate_flatten,
            ),
            member(
                "list_flatten_int",
                (list_of(DYN), INT),
                list_of(DYN),
                _flatten,
                guarded=False,
                tracker=_track_flatten,
                estimator=_estimate_flatten,
            ),
        ),
        function(
            "sort",
            *(
                member(
                    f"list_{type_.name}_sort",
                    (list_of(type_),),
                    list_of(type_),
                    _sort,
                    tracker=_track_comparisons(0),
                    estimator=_estimate_sort(kind),
                )
                for kind, type_ in COMPARABLE
            ),
        ),
        function(
            "@sortByAssociatedKeys",
            *(
                member(
                    f"list_{type_.name}_sortByAssociatedKeys",
                    (_LIST, list_of(type_)),
                    _LIST,
                    _sort_by_keys,
                    tracker=_track_comparisons(1),
                    estimator=_estimate_sort_by(kind),
                )
                for kind, type_ in COMPARABLE
            ),
        ),
        function(
            "lists.range",
            overload("lists_range", (INT,), list_of(INT), _range, tracker=_track_result, estimator=_estimate_range),
        ),
        function(
            "reverse",
            member("list_reverse", (_LIST,), _LIST, _reverse, tracker=_track_result, estimator=_estimate_reverse),
        ),
        function(
            "distinct",
            member(
                "list_distinct", (_LIST,), _LIST, _distinct, tracker=_track_comparisons(0), estimator=_estimate_distinct
            ),
        ),
    ],
    macros=[Macro("sortBy", 2, True, _expand_sort_by)],
)
