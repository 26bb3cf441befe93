"""Errors of expressions, in compilation and evaluation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from kubetwist.cel.types import Type


class CelError(Exception):
    """
    An error as CEL knows it: the result of an operation that has none.

    Functions raise it; C{&&}, C{||} and the macros built on them may absorb it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Cancelled(Exception):
    """An evaluation that was given up; nothing in an expression absorbs it."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CostLimitExceeded(Cancelled):
    """An evaluation cost more than it may."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Interrupted(Cancelled):
    """An evaluation took more time than it may."""

    def __init__(self) -> None:
        super().__init__("operation interrupted")


class ConstantError(Exception):
    """A constant part of an expression has no value."""


class EvaluationError(Exception):
    """
    An expression has no result.

    @ivar message: The message of the reference.
    @ivar cost: The cost spent until then.
    @ivar cost_exceeded: Whether the limit on its cost was the reason.
    @ivar interrupted: Whether the limit on its time was the reason.
    """

    def __init__(self, message: str, cost: int, cost_exceeded: bool = False, interrupted: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.cost = cost
        self.cost_exceeded = cost_exceeded
        self.interrupted = interrupted


@frozen
class Issue:
    """
    One thing that is wrong with the text of an expression.

    @ivar line: Of the text, counted from 1.
    @ivar column: In that line, in code points, counted from 0.
    """

    message: str
    line: int
    column: int


class CompileErrors(Exception):
    """
    An expression cannot be compiled.

    C{str()} of it is what the reference prints: every issue with the line that it is in.
    """

    def __init__(self, issues: Sequence[Issue], text: str) -> None:
        super().__init__(text)
        self.issues = tuple(issues)


class ProgramError(CompileErrors):
    """
    An expression is right by its types, but a constant part of it has no value: C{int('x')}.

    There are no issues; the reference finds this later than those, and says it differently. It looks at the type
    of the whole before.

    @ivar output_type: That type.
    """

    def __init__(self, text: str, output_type: Type) -> None:
        super().__init__((), text)
        self.output_type = output_type


def no_such_overload() -> CelError:
    """Return an operation that is not defined for these values."""
    return CelError("no such overload")
