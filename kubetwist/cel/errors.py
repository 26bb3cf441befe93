"""Errors of the compilation and evaluation of expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import frozen

if TYPE_CHECKING:
    from kubetwist.cel.types import Type


class CelError(Exception):
    """
    A CEL error: the operation has no result.

    Functions raise it. C{&&}, C{||} and the macros that expand to them may absorb it.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Cancelled(Exception):
    """An evaluation was cancelled; no operator absorbs this error."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class CostLimitExceeded(Cancelled):
    """The cost of an evaluation exceeds its limit."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class Interrupted(Cancelled):
    """The time of an evaluation exceeds its limit."""

    def __init__(self) -> None:
        super().__init__("operation interrupted")


class ConstantError(Exception):
    """The evaluation of a constant subexpression fails."""


class EvaluationError(Exception):
    """
    The evaluation of an expression failed.

    @ivar message: The error message of cel-go.
    @ivar cost: The cost until the failure.
    @ivar cost_exceeded: Whether the cost limit was exceeded.
    @ivar interrupted: Whether the time limit was exceeded.
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
    An error in an expression, with its position.

    @ivar line: The line, counted from 1.
    @ivar column: The column in code points, counted from 0.
    """

    message: str
    line: int
    column: int


class CompileErrors(Exception):
    """
    An expression cannot be compiled.

    C{str()} of the exception is the text of cel-go: every issue with its line of the expression.
    """

    def __init__(self, issues: Sequence[Issue], text: str) -> None:
        super().__init__(text)
        self.issues = tuple(issues)


class ProgramError(CompileErrors):
    """
    An expression is well-typed, but the evaluation of a constant subexpression fails: C{int('x')}.

    It has no issues. cel-go reports this error when the program is created, after the output type was checked.

    @ivar output_type: The type of the expression.
    """

    def __init__(self, text: str, output_type: Type) -> None:
        super().__init__((), text)
        self.output_type = output_type


def no_such_overload() -> CelError:
    """Return the error for an operation that is not defined for its operands."""
    return CelError("no such overload")
