"""
What expressions may cost where nothing else can be done meanwhile.

A server evaluates most expressions at once, since that takes some microseconds. One that turns out to cost more is
given up, and is evaluated from its beginning where it does not keep others waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, TypeVar

_Result = TypeVar("_Result")

#: What evaluations may cost together within L{briefly}: some milliseconds.
BRIEF_COST: Final = 5_000
#: What each costs besides.
CALL_COST: Final = 5


class TakesLong(Exception):
    """An evaluation costs more than it may within L{briefly}; nothing was changed, and it may be made elsewhere."""


class Allowance:
    """
    What may be spent.

    @ivar left: Below zero, nothing more is evaluated.
    """

    __slots__ = ("left",)

    def __init__(self, cost: int) -> None:
        self.left = cost


#: What the evaluations of the code that runs may cost; L{None} where only their own limits count.
allowance: Final[ContextVar[Allowance | None]] = ContextVar("allowance", default=None)


def briefly(function: Callable[..., _Result], *arguments: object) -> _Result:
    """
    Call a function whose evaluations may not cost much.

    @raise TakesLong: They would.
    """
    token = allowance.set(Allowance(BRIEF_COST))
    try:
        return function(*arguments)
    finally:
        allowance.reset(token)
