"""Interface of L{kubetwist.cel.compiler.Compiler} for the modules that compile one kind of expression each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kubetwist.cel.ast import Call, Expr
from kubetwist.cel.checker import Resolution
from kubetwist.cel.estimates import CostModel
from kubetwist.cel.frame import Interpretable
from kubetwist.cel.functions import Overload
from kubetwist.cel.types import Type
from kubetwist.cel.values import Value


class ExpressionPlanner(Protocol):
    """Compiler of subexpressions."""

    @property
    def model(self) -> CostModel | None:
        """Return the cost model of calls, or L{None} if costs are not tracked."""

    @property
    def functions(self) -> Mapping[str, Sequence[Overload]]:
        """Return the overloads of all functions, by name."""

    def plan(self, expr: Expr) -> Interpretable:
        """Compile a subexpression that is not a part of an attribute."""

    def plan_branch(self, expr: Expr) -> Interpretable:
        """Compile a subexpression of an attribute, where a nested attribute adds no cost."""

    def type(self, expr: Expr) -> Type:
        """Return the type of an expression."""

    def is_name(self, expr: Expr) -> bool:
        """Return whether an expression is the name of a variable, possibly a qualified one."""

    def name(self, expr: Expr) -> str:
        """Return the full name of a variable."""

    def resolution(self, expr: Call) -> Resolution:
        """Return the candidate overloads of a call."""

    def constant(self, expr: Expr) -> Value:
        """
        Return the value of a constant expression, or L{MISSING<kubetwist.cel.values.MISSING>} if it is not constant.

        @raise ConstantError: The expression is constant, but its evaluation fails.
        """

    def push(self, name: str, lazy: Interpretable | None = None) -> int:
        """Assign a slot to a variable; with C{lazy}, its value is computed at first use."""

    def pop(self, count: int) -> None:
        """Remove the C{count} variables that were pushed last."""

    def local(self, name: str) -> int | None:
        """Return the slot of a comprehension variable, or L{None} for other names."""

    def is_lazy_local(self, slot: int) -> bool:
        """Return whether the value of a slot is computed at first use."""

    def lazy_local(self, slot: int) -> Interpretable:
        """Return the L{Interpretable} that reads a slot with a lazy value."""
