"""Libraries: functions with their overloads, macros, types and constants."""

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

    @ivar id: The overload id of cel-go, by which costs are defined.
    @ivar parameters: Types of the arguments; the first is the target if C{member}.
    @ivar call: Computes the result from arguments of the right types; raises L{kubetwist.cel.errors.CelError}.
    @ivar member: Whether it is called as C{target.f(x)}, not as C{f(target, x)}.
    @ivar lazy: Whether C{call} gets all arguments but the first as callables without arguments, so that it can leave
        them unevaluated. The call itself then has no cost.
    @ivar guarded: Whether the types of the arguments are checked before C{call}; otherwise C{call} checks them.
    @ivar tracker: The cost of a call if the library defines it: a number, or a function of the arguments and the
        result (cel-go's C{OverloadCostTracker}).
    @ivar estimator: Estimates the cost of a call (cel-go's C{OverloadCostEstimate}).
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
    A set of declarations for environments.

    Several libraries may declare overloads of the same function.

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
    """
    Return an overload of a global function, called as C{f(x)}.

    @param id: The overload id of cel-go.
    @param parameters: Types of the arguments.
    @param result: The type of the result.
    @param call: Computes the result.
    @param lazy: See L{Overload}.
    @param guarded: See L{Overload}.
    @param tracker: See L{Overload}.
    @param estimator: See L{Overload}.
    """
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
    """
    Return an overload of a member function, called as C{target.f(x)}.

    @param id: The overload id of cel-go.
    @param parameters: Types of the target and the arguments.
    @param result: The type of the result.
    @param call: Computes the result.
    @param lazy: See L{Overload}.
    @param guarded: See L{Overload}.
    @param tracker: See L{Overload}.
    @param estimator: See L{Overload}.
    """
    return Overload(
        id, parameters, result, call, member=True, lazy=lazy, guarded=guarded, tracker=tracker, estimator=estimator
    )
