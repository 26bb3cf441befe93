"""Costs of calls at run time; see cel-go, C{interpreter/runtimecost.go}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.cel.checker import Resolution
from kubetwist.cel.estimates import CostModel, FunctionTracker
from kubetwist.cel.values import OpaqueValue, Value, size_for_cost


def string_traversal_cost(size: int) -> int:
    """Return the cost of traversing a string of C{size} characters."""
    return (size + 9) // 10


def _traverse_first(args: Sequence[Value], result: Value) -> int:
    return string_traversal_cost(size_for_cost(args[0]))


def _in_list(args: Sequence[Value], result: Value) -> int:
    return size_for_cost(args[1])


def _traverse_shorter(args: Sequence[Value], result: Value) -> int:
    return string_traversal_cost(min(size_for_cost(args[0]), size_for_cost(args[1])))


def _traverse_both(args: Sequence[Value], result: Value) -> int:
    return string_traversal_cost(size_for_cost(args[0]) + size_for_cost(args[1]))


def _regex_match(args: Sequence[Value], result: Value) -> int:
    # An expensive regular expression costs something for an empty string, too.
    return string_traversal_cost(1 + size_for_cost(args[0])) * ((size_for_cost(args[1]) + 3) // 4)


def _contains(args: Sequence[Value], result: Value) -> int:
    return string_traversal_cost(size_for_cost(args[0])) * string_traversal_cost(size_for_cost(args[1]))


_TRACKERS: Final[dict[str, Callable[[Sequence[Value], Value], int]]] = {
    "in_list": _in_list,
    "matches_string": _regex_match,
    "contains_string": _contains,
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _traverse_first,
    ),
    **dict.fromkeys(
        (
            *(
                f"{word}_{type_}"
                for word in ("less", "greater", "less_equals", "greater_equals")
                for type_ in ("string", "bytes")
            ),
            "equals",
            "not_equals",
        ),
        _traverse_shorter,
    ),
    **dict.fromkeys(("add_string", "add_bytes"), _traverse_both),
}


def call_cost(model: CostModel | None, resolution: Resolution) -> FunctionTracker | int:
    """Return the fixed cost of a call, or a function that returns it for the arguments and the result."""
    overloads = resolution.overloads
    single = overloads[0] if len(overloads) == 1 else None
    overload_tracker = None if single is None else single.tracker
    id = "" if single is None else single.id
    model_cost = None if model is None else model.call_cost(resolution.function, id)
    engine_cost: FunctionTracker | int = _TRACKERS.get(id, 1)
    return _prefer(overload_tracker, _prefer(model_cost, engine_cost))


def _prefer(preferred: FunctionTracker | int | None, otherwise: FunctionTracker | int) -> FunctionTracker | int:
    """Return the cost that C{preferred} gives, or C{otherwise} where it gives none."""
    if preferred is None:
        return otherwise
    if isinstance(preferred, int):
        return preferred
    first = preferred

    def track(args: Sequence[Value], result: Value) -> int:
        cost = first(args, result)
        if cost is None:
            cost = otherwise if isinstance(otherwise, int) else otherwise(args, result)
            assert cost is not None
        return cost

    return track


def comparison_cost(model: CostModel | None, function: str) -> Callable[[Value, Value], int]:
    """Return a function that returns the cost of C{==} or C{!=} for two values."""
    model_cost = None if model is None else model.call_cost(function, "equals" if function == "_==_" else "not_equals")

    def cost(left: Value, right: Value) -> int:
        if model_cost is not None and isinstance(left, OpaqueValue):
            tracked = model_cost if isinstance(model_cost, int) else model_cost((left, right), None)
            if tracked is not None:
                return tracked
        smaller = min(size_for_cost(left), size_for_cost(right))
        return (smaller + 9) // 10

    return cost
