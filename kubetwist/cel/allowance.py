"""
Limit on the cost of expressions that are evaluated in the reactor's thread.

Most evaluations take some microseconds and run immediately. A more expensive one is cancelled, and repeated from the
start in the computation thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeVar

from ..api.requestscope import RequestScope

_Result = TypeVar("_Result")

#: Cost limit of all evaluations within one L{with_allowance}: some milliseconds.
MAX_REACTOR_COST: Final = 5_000
#: Fixed cost of each evaluation.
EVALUATION_BASE_COST: Final = 5


class AllowanceExceeded(Exception):
    """An evaluation exceeds the allowance of L{with_allowance}. It can be repeated in a thread."""


class Allowance:
    """
    An allowance for the cost of evaluations.

    @ivar remaining: The remaining cost; if it is negative, evaluations are rejected.
    """

    __slots__ = ("remaining",)

    def __init__(self, cost: int) -> None:
        self.remaining = cost


#: Allowance of the current context; L{None} if only the limits of each evaluation apply.
current_allowance: Final[ContextVar[Allowance | None]] = ContextVar("current_allowance", default=None)


def with_allowance(function: Callable[..., _Result], *arguments: object) -> _Result:
    """
    Call a function with an allowance for the cost of its evaluations.

    @raise AllowanceExceeded: The evaluations exceed the allowance.
    """
    token = current_allowance.set(Allowance(MAX_REACTOR_COST))
    try:
        return function(*arguments)
    finally:
        current_allowance.reset(token)


async def compute_rules(
    scope: RequestScope, size: int, function: Callable[..., _Result], *arguments: object
) -> _Result:
    """
    Call a function that may evaluate expressions: immediately for small objects, otherwise in the computation thread.

    Expensive evaluations for a small object are cancelled and repeated in the thread.

    @param scope: The scope of the request.
    @param size: Bytes of JSON that the function reads besides the body of the request.
    @param function: Accesses only its arguments and immutable objects. It may be called twice with the same arguments.
    @param arguments: The arguments of the function.
    @return: The result of the function.
    """
    in_thread = scope.in_thread
    if in_thread is None:
        return function(*arguments)
    if not scope.is_large(size):
        try:
            return with_allowance(function, *arguments)
        except AllowanceExceeded:
            pass
    result: _Result = await in_thread(function, *arguments)
    return result
