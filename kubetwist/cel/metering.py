"""Costs of calls at run time: cel-go's C{interpreter/runtimecost.go}."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.cel.checker import Resolution
from kubetwist.cel.estimates import CostModel, Meter
from kubetwist.cel.values import OpaqueValue, Value, size_for_cost


def tenth(size: int) -> int:
    """Return the cost of traversing a string of some length."""
    return (size + 9) // 10


def _through_first(args: Sequence[Value], result: Value) -> int:
    return tenth(size_for_cost(args[0]))


def _in_list(args: Sequence[Value], result: Value) -> int:
    return size_for_cost(args[1])


def _smaller(args: Sequence[Value], result: Value) -> int:
    return tenth(min(size_for_cost(args[0]), size_for_cost(args[1])))


def _both(args: Sequence[Value], result: Value) -> int:
    return tenth(size_for_cost(args[0]) + size_for_cost(args[1]))


def _matching(args: Sequence[Value], result: Value) -> int:
    # An expensive expression may be matched against an empty text.
    return tenth(1 + size_for_cost(args[0])) * ((size_for_cost(args[1]) + 3) // 4)


def _searching(args: Sequence[Value], result: Value) -> int:
    return tenth(size_for_cost(args[0])) * tenth(size_for_cost(args[1]))


_METERS: Final[dict[str, Callable[[Sequence[Value], Value], int]]] = {
    "in_list": _in_list,
    "matches_string": _matching,
    "contains_string": _searching,
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _through_first,
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
        _smaller,
    ),
    **dict.fromkeys(("add_string", "add_bytes"), _both),
}


def meter_of(model: CostModel | None, resolution: Resolution) -> Meter | int:
    """Return the cost of a call: a number, or a function of arguments and result."""
    overloads = resolution.overloads
    single = overloads[0] if len(overloads) == 1 else None
    own = None if single is None else single.meter
    id = "" if single is None else single.id
    given = None if model is None else model.meter(resolution.function, id)
    default: Meter | int = _METERS.get(id, 1)
    return _first(own, _first(given, default))


def _first(preferred: Meter | int | None, otherwise: Meter | int) -> Meter | int:
    """Return a meter that uses the first of two meters with a result."""
    if preferred is None:
        return otherwise
    if isinstance(preferred, int):
        return preferred
    chosen = preferred

    def meter(args: Sequence[Value], result: Value) -> int:
        cost = chosen(args, result)
        if cost is None:
            cost = otherwise if isinstance(otherwise, int) else otherwise(args, result)
            assert cost is not None
        return cost

    return meter


def comparison_cost(model: CostModel | None, function: str) -> Callable[[Value, Value], int]:
    """Return the cost of C{==} or C{!=} of two values."""
    given = None if model is None else model.meter(function, "equals" if function == "_==_" else "not_equals")

    def cost(left: Value, right: Value) -> int:
        if given is not None and isinstance(left, OpaqueValue):
            price = given if isinstance(given, int) else given((left, right), None)
            if price is not None:
                return price
        smaller = min(size_for_cost(left), size_for_cost(right))
        return (smaller + 9) // 10

    return cost
