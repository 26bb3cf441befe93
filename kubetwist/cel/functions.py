"""The contents of a library: functions with their overloads, macros, type names, constants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import field, frozen

from kubetwist.cel.ast import Macro
from kubetwist.cel.estimates import FunctionEstimator, FunctionTracker
from kubetwist.cel.types import Type
from kubetwist.cel.values import Value


def _types(types: Iterable[Type]) -> tuple[Type, ...]:
    return tuple(types)


@frozen
class Overload:
    """
    One signature of a function.

    @ivar id: As in the reference: it is in the keys of prices.
    @ivar parameters: Types of the arguments; the first is the target if C{member}.
    @ivar call: What computes the result from arguments that fit the types. It raises
        L{kubetwist.cel.errors.CelError} where there is none.
    @ivar member: Called as C{target.f(x)}, not as C{f(target, x)}.
    @ivar lazy: All arguments but the first are given to C{call} as callables without arguments, so that it may leave
        them unevaluated. Nothing is charged for the call itself then.
    @ivar guarded: Whether C{call} relies on arguments of the right types; otherwise it sees to that itself.
    @ivar meter: What a call costs, where the library says so itself (cel-go's C{OverloadCostTracker}): a number, or
        from the arguments and the result.
    @ivar estimate: The estimated cost of a call (cel-go's C{OverloadCostEstimate}).
    """

    id: str
    parameters: tuple[Type, ...] = field(converter=_types)
    result: Type
    call: Callable[..., Value]
    member: bool = field(default=False, kw_only=True)
    lazy: bool = field(default=False, kw_only=True)
    guarded: bool = field(default=True, kw_only=True)
    tracker: FunctionTracker | int | None = field(default=None, kw_only=True)
    estimator: FunctionEstimator | None = field(default=None, kw_only=True)


def _overloads(overloads: Iterable[Overload]) -> tuple[Overload, ...]:
    return tuple(overloads)


@frozen
class Function:
    """A function: overloads in the order in which they are tried."""

    name: str
    overloads: tuple[Overload, ...] = field(converter=_overloads)


def _functions(functions: Iterable[Function]) -> tuple[Function, ...]:
    return tuple(functions)


def _macros(macros: Iterable[Macro]) -> tuple[Macro, ...]:
    return tuple(macros)


@frozen
class Library:
    """
    A set of declarations that an environment may take up.

    Functions of one name may be spread over libraries; their overloads add up.

    @ivar types: Types that may be named in expressions (C{type(x) == net.IP}), by name.
    @ivar constants: Names with a type and a value.
    """

    name: str
    functions: tuple[Function, ...] = field(default=(), converter=_functions)
    macros: tuple[Macro, ...] = field(default=(), converter=_macros)
    types: Mapping[str, Type] = field(factory=dict)
    constants: Mapping[str, tuple[Type, Value]] = field(factory=dict)


def function(name: str, *overloads: Overload) -> Function:
    """Return a function and its overloads."""
    return Function(name, overloads)


def overload(
    id: str,
    parameters: tuple[Type, ...],
    result: Type,
    call: Callable[..., Value],
    *,
    lazy: bool = False,
    guarded: bool = True,
    tracker: FunctionTracker | int | None = None,
    estimator: FunctionEstimator | None = None,
) -> Overload:
    """Return a signature called as C{f(x)}."""
    return Overload(id, parameters, result, call, lazy=lazy, guarded=guarded, tracker=tracker, estimator=estimator)


def member(
    id: str,
    parameters: tuple[Type, ...],
    result: Type,
    call: Callable[..., Value],
    *,
    lazy: bool = False,
    guarded: bool = True,
    tracker: FunctionTracker | int | None = None,
    estimator: FunctionEstimator | None = None,
) -> Overload:
    """Return a signature called as C{target.f(x)}; the first parameter is the target."""
    return Overload(
        id, parameters, result, call, member=True, lazy=lazy, guarded=guarded, tracker=tracker, estimator=estimator
    )
