"""Calls of functions: which overload, with what check of the arguments, at what price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kubetwist.api.patterns import PatternError, compiled
from kubetwist.cel.ast import Call, Expr
from kubetwist.cel.checker import Resolution
from kubetwist.cel.errors import CelError, ConstantError
from kubetwist.cel.frame import Frame, Step
from kubetwist.cel.functions import Overload
from kubetwist.cel.metering import meter_of
from kubetwist.cel.runtimetypes import fits, is_certain, no_overload, signature_fits
from kubetwist.cel.standard.operators import GENERIC
from kubetwist.cel.types import Type
from kubetwist.cel.values import MISSING, Value

if TYPE_CHECKING:
    from kubetwist.cel.compiler import Compiler

#: Functions whose own complaint about arguments is the short one.
_TERSE = frozenset({"contains", "startsWith", "endsWith"})


def call_step(compiler: Compiler, expr: Call) -> Step:
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
    if isinstance(meter, int):
        return _priced(call, steps, meter)
    measure = meter

    def metered(frame: Frame) -> Value:
        args = [step(frame) for step in steps]
        result = call(*args)
        frame.spend(measure(args, result) or 0)
        return result

    return metered


def _priced(call: Callable[..., Any], steps: Sequence[Step], cost: int) -> Step:
    """A call of a fixed price."""
    if len(steps) == 1:
        [only] = steps

        def unary(frame: Frame) -> Value:
            frame.cost += cost
            return call(only(frame))

        return unary
    if len(steps) == 2:
        left, right = steps

        def binary(frame: Frame) -> Value:
            frame.cost += cost
            return call(left(frame), right(frame))

        return binary

    def variadic(frame: Frame) -> Value:
        frame.spend(cost)
        return call(*[step(frame) for step in steps])

    return variadic


def _lazy(overload: Overload, steps: Sequence[Step]) -> Step:
    first, *rest = steps
    call = overload.call

    def lazy(frame: Frame) -> Value:
        return call(first(frame), *[lambda step=step: step(frame) for step in rest])

    return lazy


def _implementation(compiler: Compiler, resolution: Resolution, static: Sequence[Type]) -> Callable[..., Any]:
    """What computes the result from arguments of whatever types they turn out to have."""
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


def _guarded(name: str, overload: Overload, static: Sequence[Type]) -> Callable[..., Any]:
    check = signature_fits(overload.parameters, static)
    call = overload.call
    if check is None:
        return call
    accepts, terse = check, name in _TERSE

    def guarded(*args: Value) -> Value:
        if not accepts(args):
            raise CelError("no such overload" if terse else no_overload(name, args))
        return call(*args)

    return guarded


def _dispatched(name: str, overloads: Sequence[Overload], count: int) -> Callable[..., Any]:
    """The first overload that takes the arguments."""
    candidates = [
        (overload.call, [fits(parameter) for parameter in overload.parameters])
        for overload in overloads
        if len(overload.parameters) == count
    ]

    def dispatched(*args: Value) -> Value:
        for call, checks in candidates:
            if all(check is None or check(arg) for check, arg in zip(checks, args, strict=True)):
                return call(*args)
        raise CelError(no_overload(name, args))

    return dispatched


def _quick(compiler: Compiler, resolution: Resolution, arguments: Sequence[Expr]) -> Callable[..., Any] | None:
    """C{matches} with a constant expression, which is compiled now."""
    if resolution.function != "matches" or len(arguments) != 2:
        return None
    pattern = compiler.constant(arguments[1])
    if pattern is MISSING or type(pattern) is not str or not is_certain(compiler.type(arguments[0])):
        return None
    try:
        search = compiled(pattern).search
    except PatternError as error:
        raise ConstantError(str(error)) from None
    return lambda text, _: search(text) is not None
