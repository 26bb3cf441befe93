"""
Loops: what macros become.

The common macros are recognized by the form of their expansion and run as plain loops; all cost what the expansion
would, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from kubetwist.cel.ast import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr
from kubetwist.cel.compiling import StepCompiler
from kubetwist.cel.errors import CelError, no_such_overload
from kubetwist.cel.estimates import LIST_CREATE_COST
from kubetwist.cel.frame import Frame, Step
from kubetwist.cel.macros import MAP_INSERT, NOT_STRICTLY_FALSE
from kubetwist.cel.standard.operators import show_key
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
    """The value of a bound name, which is computed at its first use."""

    __slots__ = ("error", "known", "value")

    def __init__(self) -> None:
        self.known = False
        self.value: Value = None
        self.error: CelError | None = None

    def get(self, init: Step, frame: Frame) -> Value:
        """Return the value, computed at first use."""
        if not self.known:
            self.known = True
            try:
                self.value = init(frame)
            except CelError as error:
                self.error = error
        if self.error is not None:
            raise self.error
        return self.value


def comprehension(compiler: StepCompiler, expr: Comprehension) -> Step:
    """Compile a loop, or a binding, which has a loop's form."""
    if _is_binding(expr):
        return _binding(compiler, expr)
    over = compiler.step(expr.iter_range)
    initial = compiler.step(expr.accu_init)
    result = compiler.push(expr.accu_var)
    first = compiler.push(expr.iter_var)
    second = compiler.push(expr.iter_var2) if expr.iter_var2 else None
    source = _elements(over) if second is None else _pairs(over)
    loop = _quantifier(compiler, expr, source, first, second) or _collector(compiler, expr, source, first, second)
    if loop is not None:
        compiler.pop(3 if second is not None else 2)
        return loop
    condition, step = compiler.step(expr.condition), compiler.step(expr.step)
    compiler.pop(2 if second is not None else 1)
    outcome = compiler.step(expr.result)
    compiler.pop(1)
    return _fold(source, first, second, result, initial, condition, step, outcome)


def _is_binding(expr: Comprehension) -> bool:
    return (
        isinstance(expr.iter_range, ListExpr)
        and not expr.iter_range.elements
        and isinstance(expr.condition, Literal)
        and expr.condition.value is False
        and expr.accu_var != "@result"
    )


def _binding(compiler: StepCompiler, expr: Comprehension) -> Step:
    initial = compiler.step(expr.accu_init)
    slot = compiler.push(expr.accu_var, initial)
    result = compiler.step(expr.result)
    compiler.pop(1)

    def bound(frame: Frame) -> Value:
        before = frame.locals[slot]
        frame.locals[slot] = LazyValue()
        try:
            return result(frame)
        finally:
            frame.locals[slot] = before

    return bound


def _not_iterable(value: Value) -> CelError:
    name = _GO_TYPES.get(type(value), type(value).__name__)
    return CelError(f"got '{name}', expected iterable type")


def _elements(over: Step) -> Range:
    def elements(frame: Frame) -> Iterable[Value]:
        value = over(frame)
        if not isinstance(value, (*LISTS, *MAPS)):
            raise _not_iterable(value)
        found: Iterable[Value] = value
        return found

    return elements


def _pairs(over: Step) -> Range:
    def pairs(frame: Frame) -> Iterable[Value]:
        value = over(frame)
        if isinstance(value, MAPS):
            return value.items()
        if isinstance(value, LISTS):
            return enumerate(value)
        name = _GO_TYPES.get(type(value), type(value).__name__)
        raise CelError(f"unsupported comprehension range type: {name}")

    return pairs


def _assigner(first: int, second: int | None) -> Callable[[Frame, Value], None] | None:
    """Return the function that sets the variables of an iteration; C{None} for one variable, which loops set inline."""
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
    compiler: StepCompiler, expr: Comprehension, source: Range, first: int, second: int | None
) -> Step | None:
    """Compile C{all}, C{exists} and C{exists_one}."""
    initial, step = expr.accu_init, expr.step
    if not isinstance(initial, Literal) or not isinstance(step, Call):
        return None
    if _is_result(expr.result) and _is_call(expr.condition, NOT_STRICTLY_FALSE, 1):
        for value, function, check in ((True, "_&&_", 2), (False, "_||_", 3)):
            if initial.value is value and _is_call(step, function, 2) and _is_result(step.args[0]):
                predicate = compiler.step(step.args[1])
                return _until(source, _assigner(first, second), first, predicate, value, check)
    if (
        type(initial.value) is int
        and initial.value == 0
        and _is_call(step, "_?_:_", 3)
        and _is_call(step.args[1], "_+_", 2)
        and _is_result(step.args[2])
        and _is_call(expr.result, "_==_", 2)
    ):
        return _exactly_one(source, _assigner(first, second), first, compiler.step(step.args[0]))
    return None


def _until(
    source: Range,
    assign: Callable[[Frame, Value], None] | None,
    slot: int,
    predicate: Step,
    neutral: bool,
    check: int,
) -> Step:
    """
    Compile C{all} (neutral: true) and C{exists} (neutral: false): iterate until an element decides.

    @param check: The cost of checking the result before each iteration.
    """
    decisive = not neutral
    each = check + 1

    def until(frame: Frame) -> bool:
        error: CelError | None = None
        decided = False
        variables = frame.locals
        for element in source(frame):
            if decided:
                frame.cost += check
                break
            frame.cost += each
            if assign is None:
                variables[slot] = element
            else:
                assign(frame, element)
            try:
                found = predicate(frame)
            except CelError as raised:
                error = error or raised
            else:
                if found is decisive:
                    decided = True
                elif found is not neutral:
                    error = error or no_such_overload()
            frame.round()
        frame.cost += 1
        if decided:
            return decisive
        if error is not None:
            raise error
        return neutral

    return until


def _exactly_one(source: Range, assign: Callable[[Frame, Value], None] | None, slot: int, predicate: Step) -> Step:
    def exactly_one(frame: Frame) -> bool:
        count = 0
        variables = frame.locals
        for element in source(frame):
            if assign is None:
                variables[slot] = element
            else:
                assign(frame, element)
            found = predicate(frame)
            if found is True:
                frame.cost += 2
                count += 1
            elif found is not False:
                raise no_such_overload()
            frame.round()
        frame.cost += 2
        return count == 1

    return exactly_one


def _collector(
    compiler: StepCompiler, expr: Comprehension, source: Range, first: int, second: int | None
) -> Step | None:
    """Compile C{map}, C{filter}, C{transformList}, C{transformMap} and C{transformMapEntry}."""
    step, where = expr.step, None
    if not _is_result(expr.result) or not isinstance(expr.condition, Literal) or expr.condition.value is not True:
        return None
    if isinstance(step, Call) and _is_call(step, "_?_:_", 3) and _is_result(step.args[2]):
        where, step = compiler.step(step.args[0]), step.args[1]
    if not isinstance(step, Call) or not step.args or not _is_result(step.args[0]):
        return None
    rest = step.args[1:]
    if isinstance(expr.accu_init, ListExpr) and not expr.accu_init.elements and step.function == "_+_":
        [added] = rest
        if not isinstance(added, ListExpr) or len(added.elements) != 1 or added.optional:
            return None
        constant = compiler.constant(added) is not MISSING
        cost = 2 if constant else 2 + LIST_CREATE_COST
        element = compiler.step(added.elements[0])
        return _listed(source, _assigner(first, second), first, where, element, cost)
    if isinstance(expr.accu_init, MapExpr) and not expr.accu_init.entries and step.function == MAP_INSERT:
        parts = [compiler.step(argument) for argument in rest]
        return _mapped(source, _assigner(first, second), where, parts)
    return None


def _listed(
    source: Range,
    assign: Callable[[Frame, Value], None] | None,
    slot: int,
    where: Step | None,
    element: Step,
    cost: int,
) -> Step:
    def listed(frame: Frame) -> list[Value]:
        found: list[Value] = []
        variables = frame.locals
        for item in source(frame):
            if assign is None:
                variables[slot] = item
            else:
                assign(frame, item)
            if where is not None:
                wanted = where(frame)
                if wanted is not True:
                    if wanted is not False:
                        raise no_such_overload()
                    frame.round()
                    continue
            frame.cost += cost
            found.append(element(frame))
            frame.round()
        frame.cost += 1
        return found

    return listed


def _mapped(
    source: Range, assign: Callable[[Frame, Value], None] | None, where: Step | None, parts: list[Step]
) -> Step:
    assert assign is not None, "only macros of two variables make maps"

    def mapped(frame: Frame) -> dict[Value, Value]:
        found: dict[Value, Value] = {}
        for item in source(frame):
            assign(frame, item)
            if where is not None:
                wanted = where(frame)
                if wanted is not True:
                    if wanted is not False:
                        raise no_such_overload()
                    frame.round()
                    continue
            frame.cost += 2
            added = [part(frame) for part in parts]
            for key, value in [added] if len(added) == 2 else added[0].items():
                if find(found, key) is not MISSING:
                    raise CelError(f"insert failed: key {show_key(key)} already exists")
                found[key] = value
            frame.round()
        frame.cost += 1
        return found

    return mapped


def _fold(
    source: Range,
    first: int,
    second: int | None,
    result: int,
    initial: Step,
    condition: Step,
    step: Step,
    outcome: Step,
) -> Step:
    """Compile a loop that has no known form."""
    assign = _assigner(first, second)

    def fold(frame: Frame) -> Value:
        variables = frame.locals
        elements = source(frame)
        variables[result] = initial(frame)
        for element in elements:
            if assign is None:
                variables[first] = element
            else:
                assign(frame, element)
            if condition(frame) is False:
                break
            variables[result] = step(frame)
            frame.round()
        return outcome(frame)

    return fold
