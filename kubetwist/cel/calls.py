"""Function calls: choice of the overload, checks of the arguments, tracking of the cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.api.patterns import PatternError, compile_pattern
from kubetwist.cel.ast import Call, Expr
from kubetwist.cel.checker import Resolution
from kubetwist.cel.compiling import ExpressionPlanner
from kubetwist.cel.errors import CelError, ConstantError
from kubetwist.cel.estimates import FunctionTracker
from kubetwist.cel.frame import Frame, Interpretable
from kubetwist.cel.functions import Overload
from kubetwist.cel.runtimecost import call_cost
from kubetwist.cel.runtimetypes import fits, is_certain, no_overload, signature_fits
from kubetwist.cel.standard.operators import GENERIC
from kubetwist.cel.types import Type
from kubetwist.cel.values import Value

#: Functions whose error for arguments of the wrong type has no signature.
_SHORT_OVERLOAD_ERROR: Final = frozenset({"contains", "startsWith", "endsWith"})
#: Functions whose second argument is a regular expression.
_WITH_PATTERN: Final = frozenset({"matches", "find", "findAll"})


def plan_call(planner: ExpressionPlanner, expr: Call) -> Interpretable:
    """Compile a call that has no special rule."""
    resolution = planner.resolution(expr)
    arguments: list[Expr] = list(expr.args)
    if resolution.member:
        assert expr.target is not None
        arguments.insert(0, expr.target)
    static = [planner.type(argument) for argument in arguments]
    steps = [planner.plan(argument) for argument in arguments]
    single = resolution.overloads[0] if len(resolution.overloads) == 1 else None
    if single is not None and single.lazy:
        return _lazy(single, steps)
    call = _constant_regex(planner, resolution, arguments) or _implementation(planner, resolution, static)
    tracker = call_cost(planner.model, resolution)
    # Calls with dynamic dispatch or more than two arguments stop at the first argument that fails.
    eager = len(steps) > 2 or (single is None and resolution.function not in GENERIC)
    if isinstance(tracker, int):
        return _fixed_cost_call(call, steps, tracker, eager)
    return _tracked_call(call, steps, tracker, eager)


def evaluate_for_cost(steps: Sequence[Interpretable], frame: Frame) -> list[Value]:
    """
    Evaluate the remaining operands of a failed call, which add to the cost in cel-go.

    @return: The values, with L{_FAILED} for operands that failed.
    """
    values = []
    for step in steps:
        try:
            values.append(step(frame))
        except CelError:
            values.append(_FAILED)
    return values


#: Value of an argument that failed; its size is 1.
_FAILED: Final = object()


def _tracked_call(
    call: Callable[..., Value], steps: Sequence[Interpretable], tracker: FunctionTracker, eager: bool
) -> Interpretable:
    """Compile a call whose cost depends on its arguments or its result."""

    def tracked(frame: Frame) -> Value:
        args: list[Value] = []
        try:
            for step in steps:
                args.append(step(frame))
            result = call(*args)
        except CelError:
            if not eager or len(args) == len(steps):
                if len(args) < len(steps):
                    args += [_FAILED, *evaluate_for_cost(steps[len(args) + 1 :], frame)]
                frame.add_cost(_failed_call_cost(tracker, args))
            raise
        frame.add_cost(tracker(args, result) or 0)
        return result

    return tracked


def _failed_call_cost(tracker: FunctionTracker, args: Sequence[Value]) -> int:
    """Return the cost of a call whose arguments or implementation failed."""
    try:
        return tracker(args, _FAILED) or 0
    except (TypeError, AttributeError, ValueError):
        return 1


def _fixed_cost_call(
    call: Callable[..., Value], steps: Sequence[Interpretable], cost: int, eager: bool
) -> Interpretable:
    """Compile a call with a fixed cost."""
    if len(steps) == 1:
        [argument] = steps

        def unary(frame: Frame) -> Value:
            frame.cost += cost
            return call(argument(frame))

        return unary
    if len(steps) == 2 and not eager:
        left, right = steps

        def binary(frame: Frame) -> Value:
            frame.cost += cost
            try:
                first = left(frame)
            except CelError:
                evaluate_for_cost((right,), frame)
                raise
            return call(first, right(frame))

        return binary

    def variadic(frame: Frame) -> Value:
        args = [step(frame) for step in steps]
        frame.add_cost(cost)
        return call(*args)

    return variadic


def _lazy(overload: Overload, steps: Sequence[Interpretable]) -> Interpretable:
    first, *rest = steps
    call = overload.call

    def lazy(frame: Frame) -> Value:
        return call(first(frame), *[lambda step=step: step(frame) for step in rest])

    return lazy


def _implementation(planner: ExpressionPlanner, resolution: Resolution, static: Sequence[Type]) -> Callable[..., Value]:
    """Return the function that computes the result, with checks of the types that are known only at run time."""
    name = resolution.function
    single = resolution.overloads[0] if len(resolution.overloads) == 1 else None
    if single is not None and all(map(is_certain, static)):
        return single.call
    generic = GENERIC.get(name)
    if generic is not None:
        return generic
    if single is not None:
        return _checked_call(name, single, static)
    return _dispatch(name, planner.functions[name], len(static))


def _checked_call(name: str, overload: Overload, static: Sequence[Type]) -> Callable[..., Value]:
    check = signature_fits(overload.parameters, static)
    call = overload.call
    if check is None or not overload.guarded:
        return call
    matches, short = check, name in _SHORT_OVERLOAD_ERROR

    def checked(*args: Value) -> Value:
        if not matches(args):
            raise CelError("no such overload" if short else no_overload(name, args))
        return call(*args)

    return checked


def _dispatch(name: str, overloads: Sequence[Overload], count: int) -> Callable[..., Value]:
    """Return a function that calls the first overload that accepts the arguments."""
    candidates = [
        (overload.call, [fits(parameter) if overload.guarded else None for parameter in overload.parameters])
        for overload in overloads
        if len(overload.parameters) == count
    ]

    def dispatch(*args: Value) -> Value:
        for call, checks in candidates:
            if all(check is None or check(arg) for check, arg in zip(checks, args, strict=True)):
                return call(*args)
        raise CelError(no_overload(name, args))

    return dispatch


def _constant_regex(
    planner: ExpressionPlanner, resolution: Resolution, arguments: Sequence[Expr]
) -> Callable[..., Value] | None:
    """
    Return an implementation of C{matches} with a constant regular expression, which is compiled only once.

    @return: C{None} if another implementation is needed.
    @raise ConstantError: The constant argument of C{matches}, C{find} or C{findAll} is not a regular expression.
    """
    if resolution.function not in _WITH_PATTERN or len(arguments) < 2:
        return None
    pattern = planner.constant(arguments[1])
    if type(pattern) is not str:
        return None
    try:
        search = compile_pattern(pattern).search
    except PatternError as error:
        raise ConstantError(str(error)) from None
    if resolution.function != "matches" or not is_certain(planner.type(arguments[0])):
        return None
    return lambda text, _: search(text) is not None
