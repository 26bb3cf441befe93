"""Calls of functions: which overload, with what check of the arguments, at what price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kubetwist.api.patterns import PatternError, compiled
from kubetwist.cel.ast import Call, Expr
from kubetwist.cel.checker import Resolution
from kubetwist.cel.compiling import StepCompiler
from kubetwist.cel.errors import CelError, ConstantError
from kubetwist.cel.estimates import Meter
from kubetwist.cel.frame import Frame, Step
from kubetwist.cel.functions import Overload
from kubetwist.cel.metering import meter_of
from kubetwist.cel.runtimetypes import fits, is_certain, no_overload, signature_fits
from kubetwist.cel.standard.operators import GENERIC
from kubetwist.cel.types import Type
from kubetwist.cel.values import Value

#: Functions whose own complaint about arguments is the short one.
_TERSE: Final = frozenset({"contains", "startsWith", "endsWith"})
#: Functions whose second argument is a regular expression.
_WITH_PATTERN: Final = frozenset({"matches", "find", "findAll"})


def call_step(compiler: StepCompiler, expr: Call) -> Step:
    """Compile a call that no operator's rule covers."""
    resolution = compiler.resolution(expr)
    arguments: list[Expr] = list(expr.args)
    if resolution.member:
        assert expr.target is not None
        arguments.insert(0, expr.target)
    static = [compiler.type(argument) for argument in arguments]
    steps = [compiler.step(argument) for argument in arguments]
    single = resolution.overloads[0] if len(resolution.overloads) == 1 else None
    if single is not None and single.lazy:
        return _lazy(single, steps)
    call = _quick(compiler, resolution, arguments) or _implementation(compiler, resolution, static)
    meter = meter_of(compiler.model, resolution)
    # Functions that are chosen at run time, and those of many arguments, stop at the first argument that fails.
    eager = len(steps) > 2 or (single is None and resolution.function not in GENERIC)
    if isinstance(meter, int):
        return _priced(call, steps, meter, eager)
    return _metered(call, steps, meter, eager)


def spend_on(steps: Sequence[Step], frame: Frame) -> list[Value]:
    """
    Evaluate operands whose values are unused, for their cost, as the reference does.

    @return: The values, with L{_FAILED} for those that failed.
    """
    found = []
    for step in steps:
        try:
            found.append(step(frame))
        except CelError:
            found.append(_FAILED)
    return found


#: Stands for the value of an argument that failed; it counts as one wherever sizes are asked.
_FAILED: Final = object()


def _metered(call: Callable[..., Value], steps: Sequence[Step], meter: Meter, eager: bool) -> Step:
    """Compile a call whose cost depends on its arguments or its result."""

    def metered(frame: Frame) -> Value:
        args: list[Value] = []
        try:
            for step in steps:
                args.append(step(frame))
            result = call(*args)
        except CelError:
            if not eager or len(args) == len(steps):
                if len(args) < len(steps):
                    args += [_FAILED, *spend_on(steps[len(args) + 1 :], frame)]
                frame.spend(_price(meter, args))
            raise
        frame.spend(meter(args, result) or 0)
        return result

    return metered


def _price(meter: Meter, args: Sequence[Value]) -> int:
    """Return the cost of a call that failed."""
    try:
        return meter(args, _FAILED) or 0
    except (TypeError, AttributeError, ValueError):
        return 1


def _priced(call: Callable[..., Value], steps: Sequence[Step], cost: int, eager: bool) -> Step:
    """Compile a call with a fixed cost."""
    if len(steps) == 1:
        [only] = steps

        def unary(frame: Frame) -> Value:
            frame.cost += cost
            return call(only(frame))

        return unary
    if len(steps) == 2 and not eager:
        left, right = steps

        def binary(frame: Frame) -> Value:
            frame.cost += cost
            try:
                first = left(frame)
            except CelError:
                spend_on((right,), frame)
                raise
            return call(first, right(frame))

        return binary

    def variadic(frame: Frame) -> Value:
        args = [step(frame) for step in steps]
        frame.spend(cost)
        return call(*args)

    return variadic


def _lazy(overload: Overload, steps: Sequence[Step]) -> Step:
    first, *rest = steps
    call = overload.call

    def lazy(frame: Frame) -> Value:
        return call(first(frame), *[lambda step=step: step(frame) for step in rest])

    return lazy


def _implementation(compiler: StepCompiler, resolution: Resolution, static: Sequence[Type]) -> Callable[..., Value]:
    """Return the function that computes the result, with checks of types known only at run time."""
    name = resolution.function
    single = resolution.overloads[0] if len(resolution.overloads) == 1 else None
    if single is not None and all(map(is_certain, static)):
        return single.call
    generic = GENERIC.get(name)
    if generic is not None:
        return generic
    if single is not None:
        return _guarded(name, single, static)
    return _dispatched(name, compiler.functions[name], len(static))


def _guarded(name: str, overload: Overload, static: Sequence[Type]) -> Callable[..., Value]:
    check = signature_fits(overload.parameters, static)
    call = overload.call
    if check is None or not overload.guarded:
        return call
    accepts, terse = check, name in _TERSE

    def guarded(*args: Value) -> Value:
        if not accepts(args):
            raise CelError("no such overload" if terse else no_overload(name, args))
        return call(*args)

    return guarded


def _dispatched(name: str, overloads: Sequence[Overload], count: int) -> Callable[..., Value]:
    """Return the first overload that takes the arguments."""
    candidates = [
        (overload.call, [fits(parameter) if overload.guarded else None for parameter in overload.parameters])
        for overload in overloads
        if len(overload.parameters) == count
    ]

    def dispatched(*args: Value) -> Value:
        for call, checks in candidates:
            if all(check is None or check(arg) for check, arg in zip(checks, args, strict=True)):
                return call(*args)
        raise CelError(no_overload(name, args))

    return dispatched


def _quick(compiler: StepCompiler, resolution: Resolution, arguments: Sequence[Expr]) -> Callable[..., Value] | None:
    """
    Compile C{matches} with a constant expression, which is compiled now.

    @raise ConstantError: It is none; nor may it be that in the other functions that take one.
    """
    if resolution.function not in _WITH_PATTERN or len(arguments) < 2:
        return None
    pattern = compiler.constant(arguments[1])
    if type(pattern) is not str:
        return None
    try:
        search = compiled(pattern).search
    except PatternError as error:
        raise ConstantError(str(error)) from None
    if resolution.function != "matches" or not is_certain(compiler.type(arguments[0])):
        return None
    return lambda text, _: search(text) is not None
