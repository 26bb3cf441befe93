"""
Functions on lists as sets: C{sets.contains}, C{sets.equivalent}, C{sets.intersects}.

See google/cel-go, C{ext/sets.go}.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubetwist.cel.estimates import ONE, AstNode, CallEstimate, FunctionEstimator, FunctionTracker
from kubetwist.cel.functions import Library, Overload, function, overload
from kubetwist.cel.library._valueset import ValueSet
from kubetwist.cel.types import BOOL, list_of, type_parameter
from kubetwist.cel.values import Value, size_for_cost


def contains(values: Sequence[Value], subset: Sequence[Value]) -> bool:
    """Return whether every element of the second list is in the first."""
    members = ValueSet(values)
    return all(value in members for value in subset)


def _equivalent(one: Sequence[Value], other: Sequence[Value]) -> bool:
    return contains(one, other) and contains(other, one)


def _intersects(one: Sequence[Value], other: Sequence[Value]) -> bool:
    members = ValueSet(other)
    return any(value in members for value in one)


def _estimator(factor: float) -> FunctionEstimator:
    def estimator(target: AstNode | None, arguments: Sequence[AstNode]) -> CallEstimate | None:
        if len(arguments) != 2:
            return None
        return CallEstimate(arguments[0].size.multiply(arguments[1].size).multiply_by_cost_factor(factor).add(ONE))

    return estimator


def _tracker(factor: int) -> FunctionTracker:
    def tracker(arguments: Sequence[Value], result: Value) -> int:
        return 1 + size_for_cost(arguments[0]) * size_for_cost(arguments[1]) * factor

    return tracker


_LIST: Final = list_of(type_parameter("T"))


def _overload(name: str, call: object, factor: int) -> Overload:
    return overload(
        f"list_sets_{name}_list",
        (_LIST, _LIST),
        BOOL,
        call,  # type: ignore[arg-type]
        tracker=_tracker(factor),
        estimator=_estimator(factor),
    )


SETS: Final = Library(
    "cel.lib.ext.sets",
    [
        function("sets.contains", _overload("contains", contains, 1)),
        # Each list must contain the other.
        function("sets.equivalent", _overload("equivalent", _equivalent, 2)),
        function("sets.intersects", _overload("intersects", _intersects, 1)),
    ],
)
