"""
Comprehensions, the expansions of macros.

The expansions of the standard macros are recognized by their form and run as plain loops. Their cost equals the cost of
evaluating the expansion node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kubetwist.cel.ast import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr
from kubetwist.cel.compiling import ExpressionPlanner
from kubetwist.cel.errors import CelError, no_such_overload
from kubetwist.cel.estimates import LIST_CREATE_COST
from kubetwist.cel.frame import Frame, Interpretable
from kubetwist.cel.macros import MAP_INSERT, NOT_STRICTLY_FALSE
from kubetwist.cel.standard.operators import format_key
from kubetwist.cel.values import (
    LISTS,
    MAPS,
    MISSING,
    Duration,
    Optional,
    Timestamp,
    UInt,
    Value,
    find,
)

Range = Callable[[Frame], Iterable[Value]]

_GO_TYPES: Final[dict[type, str]] = {
    bool: "types.Bool",
    bytes: "types.Bytes",
    float: "types.Double",
    Duration: "types.Duration",
    int: "types.Int",
    type(None): "types.Null",
    Optional: "*types.Optional",
    str: "types.String",
    Timestamp: "types.Timestamp",
    UInt: "types.Uint",
}


class LazyValue:
    """The value of a bound variable, which is computed at first use."""

    __slots__ = ("error", "is_computed", "value")

    def __init__(self) -> None:
        self.is_computed = False
        self.value: Value = None
        self.error: CelError | None = None

    def get(self, init: Interpretable, frame: Frame) -> Value:
        """Return the value, or raise the error of its computation."""
        if not self.is_computed:
            self.is_computed = True
            try:
                self.value = init(frame)
            except CelError as error:
                self.error = error
        if self.error is not None:
            raise self.error
        return self.value


def comprehension(planner: ExpressionPlanner, expr: Comprehension) -> Interpretable:
    """Compile a comprehension, or a C{cel.bind()}, which expands to one."""
    if _is_binding(expr):
        return _binding(planner, expr)
    iter_range = planner.plan(expr.iter_range)
    initial = planner.plan(expr.accu_init)
    result = planner.push(expr.accu_var)
    first = planner.push(expr.iter_var)
    second = planner.push(expr.iter_var2) if expr.iter_var2 else None
    elements_of = _elements(iter_range) if second is None else _pairs(iter_range)
    loop = _quantifier(planner, expr, elements_of, first, second) or _collector(
        planner, expr, elements_of, first, second
    )
    if loop is not None:
        planner.pop(3 if second is not None else 2)
        return loop
    condition, step = planner.plan(expr.condition), planner.plan(expr.step)
    planner.pop(2 if second is not None else 1)
    outcome = planner.plan(expr.result)
    planner.pop(1)
    return _fold(elements_of, first, second, result, initial, condition, step, outcome)


def _is_binding(expr: Comprehension) -> bool:
    return (
        isinstance(expr.iter_range, ListExpr)
        and not expr.iter_range.elements
        and isinstance(expr.condition, Literal)
        and expr.condition.value is False
        and expr.accu_var != "@result"
    )


def _binding(planner: ExpressionPlanner, expr: Comprehension) -> Interpretable:
    initial = planner.plan(expr.accu_init)
    slot = planner.push(expr.accu_var, initial)
    result = planner.plan(expr.result)
    planner.pop(1)

    def bound(frame: Frame) -> Value:
        previous = frame.locals[slot]
        frame.locals[slot] = LazyValue()
        try:
            return result(frame)
        finally:
            frame.locals[slot] = previous

    return bound


def _not_iterable(value: Value) -> CelError:
    name = _GO_TYPES.get(type(value), type(value).__name__)
    return CelError(f"got '{name}', expected iterable type")


def _elements(iter_range: Interpretable) -> Range:
    def elements(frame: Frame) -> Iterable[Value]:
        value = iter_range(frame)
        if not isinstance(value, (*LISTS, *MAPS)):
            raise _not_iterable(value)
        result: Iterable[Value] = value
        return result

    return elements


def _pairs(iter_range: Interpretable) -> Range:
    def pairs(frame: Frame) -> Iterable[Value]:
        value = iter_range(frame)
        if isinstance(value, MAPS):
            return value.items()
        if isinstance(value, LISTS):
            return enumerate(value)
        name = _GO_TYPES.get(type(value), type(value).__name__)
        raise CelError(f"unsupported comprehension range type: {name}")

    return pairs


def _assigner(first: int, second: int | None) -> Callable[[Frame, Value], None] | None:
    """Return a function that sets both iteration variables; C{None} for a single variable, which loops set inline."""
    if second is None:
        return None

    def assign(frame: Frame, pair: Value) -> None:
        frame.locals[first], frame.locals[second] = pair

    return assign


def _is_result(expr: Expr) -> bool:
    return isinstance(expr, Ident) and expr.name == "@result"


def _is_call(expr: Expr, function: str, count: int) -> bool:
    return isinstance(expr, Call) and expr.function == function and len(expr.args) == count


def _quantifier(
    planner: ExpressionPlanner, expr: Comprehension, elements_of: Range, first: int, second: int | None
) -> Interpretable | None:
    """Compile C{all}, C{exists} and C{exists_one}."""
    initial, step = expr.accu_init, expr.step
    if not isinstance(initial, Literal) or not isinstance(step, Call):
        return None
    if _is_result(expr.result) and _is_call(expr.condition, NOT_STRICTLY_FALSE, 1):
        for value, function, check in ((True, "_&&_", 2), (False, "_||_", 3)):
            if initial.value is value and _is_call(step, function, 2) and _is_result(step.args[0]):
                predicate = planner.plan(step.args[1])
                return _short_circuit(elements_of, _assigner(first, second), first, predicate, value, check)
    if (
        type(initial.value) is int
        and initial.value == 0
        and _is_call(step, "_?_:_", 3)
        and _is_call(step.args[1], "_+_", 2)
        and _is_result(step.args[2])
        and _is_call(expr.result, "_==_", 2)
    ):
        return _exactly_one(elements_of, _assigner(first, second), first, planner.plan(step.args[0]))
    return None


def _short_circuit(
    elements_of: Range,
    assign: Callable[[Frame, Value], None] | None,
    slot: int,
    predicate: Interpretable,
    neutral: bool,
    check: int,
) -> Interpretable:
    """
    Compile C{all} (neutral: true) or C{exists} (neutral: false), which end at the first decisive element.

    @param elements_of: Returns the elements of the range.
    @param assign: Sets the iteration variables; C{None} for a single variable in C{slot}.
    @param slot: The slot of the first iteration variable.
    @param predicate: The predicate.
    @param neutral: The result of the predicate that does not end the loop.
    @param check: The cost of checking the result before each iteration.
    """
    decisive = not neutral
    iteration_cost = check + 1

    def short_circuit(frame: Frame) -> bool:
        error: CelError | None = None
        decided = False
        variables = frame.locals
        for element in elements_of(frame):
            if decided:
                frame.cost += check
                break
            frame.cost += iteration_cost
            if assign is None:
                variables[slot] = element
            else:
                assign(frame, element)
            try:
                result = predicate(frame)
            except CelError as raised:
                error = error or raised
            else:
                if result is decisive:
                    decided = True
                elif result is not neutral:
                    error = error or no_such_overload()
            frame.next_iteration()
        frame.cost += 1
        if decided:
            return decisive
        if error is not None:
            raise error
        return neutral

    return short_circuit


def _exactly_one(
    elements_of: Range, assign: Callable[[Frame, Value], None] | None, slot: int, predicate: Interpretable
) -> Interpretable:
    def exactly_one(frame: Frame) -> bool:
        count = 0
        variables = frame.locals
        for element in elements_of(frame):
            if assign is None:
                variables[slot] = element
            else:
                assign(frame, element)
            result = predicate(frame)
            if result is True:
                frame.cost += 2
                count += 1
            elif result is not False:
                raise no_such_overload()
            frame.next_iteration()
        frame.cost += 2
        return count == 1

    return exactly_one


def _collector(
    planner: ExpressionPlanner, expr: Comprehension, elements_of: Range, first: int, second: int | None
) -> Interpretable | None:
    """Compile C{map}, C{filter}, C{transformList}, C{transformMap} and C{transformMapEntry}."""
    step, predicate = expr.step, None
    if not _is_result(expr.result) or not isinstance(expr.condition, Literal) or expr.condition.value is not True:
        return None
    if isinstance(step, Call) and _is_call(step, "_?_:_", 3) and _is_result(step.args[2]):
        predicate, step = planner.plan(step.args[0]), step.args[1]
    if not isinstance(step, Call) or not step.args or not _is_result(step.args[0]):
        return None
    rest = step.args[1:]
    if isinstance(expr.accu_init, ListExpr) and not expr.accu_init.elements and step.function == "_+_":
        [entry_values] = rest
        if not isinstance(entry_values, ListExpr) or len(entry_values.elements) != 1 or entry_values.optional:
            return None
        constant = planner.constant(entry_values) is not MISSING
        cost = 2 if constant else 2 + LIST_CREATE_COST
        element = planner.plan(entry_values.elements[0])
        return _collect_list(elements_of, _assigner(first, second), first, predicate, element, cost)
    if isinstance(expr.accu_init, MapExpr) and not expr.accu_init.entries and step.function == MAP_INSERT:
        operands = [planner.plan(argument) for argument in rest]
        return _collect_map(elements_of, _assigner(first, second), predicate, operands)
    return None


def _collect_list(
    elements_of: Range,
    assign: Callable[[Frame, Value], None] | None,
    slot: int,
    predicate: Interpretable | None,
    element: Interpretable,
    cost: int,
) -> Interpretable:
    def collect_list(frame: Frame) -> list[Value]:
        result: list[Value] = []
        variables = frame.locals
        for item in elements_of(frame):
            if assign is None:
                variables[slot] = item
            else:
                assign(frame, item)
            if predicate is not None:
                keep = predicate(frame)
                if keep is not True:
                    if keep is not False:
                        raise no_such_overload()
                    frame.next_iteration()
                    continue
            frame.cost += cost
            result.append(element(frame))
            frame.next_iteration()
        frame.cost += 1
        return result

    return collect_list


def _collect_map(
    elements_of: Range,
    assign: Callable[[Frame, Value], None] | None,
    predicate: Interpretable | None,
    operands: list[Interpretable],
) -> Interpretable:
    assert assign is not None, "only macros of two variables make maps"

    def collect_map(frame: Frame) -> dict[Value, Value]:
        result: dict[Value, Value] = {}
        for item in elements_of(frame):
            assign(frame, item)
            if predicate is not None:
                keep = predicate(frame)
                if keep is not True:
                    if keep is not False:
                        raise no_such_overload()
                    frame.next_iteration()
                    continue
            frame.cost += 2
            entry_values = [part(frame) for part in operands]
            for key, value in [entry_values] if len(entry_values) == 2 else entry_values[0].items():
                if find(result, key) is not MISSING:
                    raise CelError(f"insert failed: key {format_key(key)} already exists")
                result[key] = value
            frame.next_iteration()
        frame.cost += 1
        return result

    return collect_map


def _fold(
    elements_of: Range,
    first: int,
    second: int | None,
    result: int,
    initial: Interpretable,
    condition: Interpretable,
    step: Interpretable,
    outcome: Interpretable,
) -> Interpretable:
    """Compile a comprehension of any other form."""
    assign = _assigner(first, second)

    def fold(frame: Frame) -> Value:
        variables = frame.locals
        elements = elements_of(frame)
        variables[result] = initial(frame)
        for element in elements:
            if assign is None:
                variables[first] = element
            else:
                assign(frame, element)
            if condition(frame) is False:
                break
            variables[result] = step(frame)
            frame.next_iteration()
        return outcome(frame)

    return fold
