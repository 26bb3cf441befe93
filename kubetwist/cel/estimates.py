"""Ranges of sizes and costs, as the static estimate reckons with them: 64 bits that stick at their maximum."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from attrs import frozen

from kubetwist.cel.types import Type
from kubetwist.cel.values import Value

MAX: Final = (1 << 64) - 1

# Factors of cel-go's common/cost.go.
STRING_TRAVERSAL_FACTOR: Final = 0.1
REGEX_LENGTH_FACTOR: Final = 0.25
SELECT_AND_IDENT_COST: Final = 1
CONST_COST: Final = 0
LIST_CREATE_COST: Final = 10
MAP_CREATE_COST: Final = 30
STRUCT_CREATE_COST: Final = 40


def scale(number: int, factor: float) -> int:
    """Return a number times a factor, rounded up, at most L{MAX}."""
    product = math.ceil(float(number) * factor)
    return product if product < MAX else MAX


class Estimate(NamedTuple):
    """The least and the most that a size or cost may be."""

    min: int
    max: int

    def add(self, other: Estimate) -> Estimate:
        """Return the sum."""
        return Estimate(min(self.min + other.min, MAX), min(self.max + other.max, MAX))

    def multiply(self, other: Estimate) -> Estimate:
        """Return the product."""
        return Estimate(min(self.min * other.min, MAX), min(self.max * other.max, MAX))

    def multiply_by_cost_factor(self, factor: float) -> Estimate:
        """Return the product with a factor, rounded up."""
        return Estimate(scale(self.min, factor), scale(self.max, factor))

    def union(self, other: Estimate) -> Estimate:
        """Return the range that holds both."""
        return Estimate(min(self.min, other.min), max(self.max, other.max))


def fixed(number: int) -> Estimate:
    """Return a range of one number."""
    return Estimate(number, number)


UNKNOWN: Final = Estimate(0, MAX)
ONE: Final = fixed(1)


@frozen
class CallEstimate:
    """
    The estimated cost of a call without its arguments.

    @ivar size: Of its result, where that is a string, bytes, list or map and something is known.
    """

    cost: Estimate
    size: Estimate | None = None


class AstNode(Protocol):
    """A part of an expression, as estimates see it."""

    @property
    def path(self) -> tuple[str, ...] | None:
        """Return the path in the variables: C{("self", "items", "@items")}; C{None} for computed values."""

    @property
    def type(self) -> Type:
        """Return the type."""

    @property
    def literal(self) -> Value:
        """Return the value of a literal; L{kubetwist.cel.values.MISSING} for anything else."""

    @property
    def computed_size(self) -> Estimate | None:
        """Return the size, if the expression or the caller's schema gives it."""

    @property
    def size(self) -> Estimate:
        """Return the size; L{UNKNOWN} if it is not given."""

    def element(self) -> AstNode | None:
        """Return a node for the elements, if it is a list (or has another type parameter)."""


FunctionEstimator = Callable[[AstNode | None, Sequence[AstNode]], CallEstimate | None]
FunctionTracker = Callable[[Sequence[Value], Value], int | None]


class CostModel(Protocol):
    """
    Prices of functions, asked before the engine's own.

    Both are asked when an expression is compiled, never while it is evaluated.
    """

    def call_cost(self, function: str, overload: str) -> FunctionTracker | int | None:
        """
        Return the cost of a call at run time.

        @param overload: The id of the overload, or C{""} if arguments are needed to choose among several.
        @return: The cost; or a function that returns it for the arguments (the target first) and the result, or
            C{None} for the engine's default; or C{None}.
        """

    def estimate_call_cost(
        self, function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
    ) -> CallEstimate | None:
        """Return the estimated cost of a call; C{None} for the engine's default."""
