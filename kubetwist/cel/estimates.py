"""Estimated sizes and costs: ranges of unsigned 64-bit numbers that saturate at the maximum."""

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
    """Return the product of a number and a factor, rounded up, at most L{MAX}."""
    product = math.ceil(float(number) * factor)
    return product if product < MAX else MAX


class Estimate(NamedTuple):
    """Minimum and maximum of a size or a cost."""

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
        """Return the smallest range that contains both ranges."""
        return Estimate(min(self.min, other.min), max(self.max, other.max))


def fixed(number: int) -> Estimate:
    """Return a range that contains one number."""
    return Estimate(number, number)


UNKNOWN: Final = Estimate(0, MAX)
ONE: Final = fixed(1)


@frozen
class CallEstimate:
    """
    The estimated cost of a call without its arguments.

    @ivar size: The size of the result, if it is a string, bytes, list or map and its size can be estimated.
    """

    cost: Estimate
    size: Estimate | None = None


class AstNode(Protocol):
    """A subexpression, as passed to cost estimators."""

    @property
    def path(self) -> tuple[str, ...] | None:
        """Return the path below a variable, C{("self", "items", "@items")}, or C{None} for computed values."""

    @property
    def type(self) -> Type:
        """Return the type."""

    @property
    def literal(self) -> Value:
        """Return the value of a literal, or L{kubetwist.cel.values.MISSING} for other expressions."""

    @property
    def computed_size(self) -> Estimate | None:
        """Return the size, or C{None} if neither the expression nor the caller's schema defines it."""

    @property
    def size(self) -> Estimate:
        """Return the size, or L{UNKNOWN}."""

    def element(self) -> AstNode | None:
        """Return a node for the elements of a list or the keys of a map, or C{None} for other types."""


FunctionEstimator = Callable[[AstNode | None, Sequence[AstNode]], CallEstimate | None]
FunctionTracker = Callable[[Sequence[Value], Value], int | None]


class CostModel(Protocol):
    """
    Costs of functions, which take precedence over the defaults of cel-go.

    Both methods are called when an expression is compiled, never while it is evaluated.
    """

    def call_cost(self, function: str, overload: str) -> FunctionTracker | int | None:
        """
        Return the cost of a call at run time.

        @param overload: The id of the overload, or C{""} if it is chosen at run time.
        @return: The fixed cost, a function that returns the cost for the arguments (the target first) and the result,
            or C{None} for the default. The function, too, may return C{None} for the default.
        """

    def estimate_call_cost(
        self, function: str, overload: str, target: AstNode | None, arguments: Sequence[AstNode]
    ) -> CallEstimate | None:
        """
        Estimate the cost of a call.

        @param function: The name of the function.
        @param overload: The id of the overload.
        @param target: The target of a member function, otherwise C{None}.
        @param arguments: The other arguments.
        @return: C{None} for the default.
        """
