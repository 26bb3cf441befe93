"""The interface of L{kubetwist.cel.compiler.Compiler} for the parts of the compiler."""

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
    """Compiles subexpressions."""

    @property
    def model(self) -> CostModel | None:
        """Return the cost model of calls; L{None} if costs are not tracked."""

    @property
    def functions(self) -> Mapping[str, Sequence[Overload]]:
        """Return the overloads of all functions, by name."""

    def plan(self, expr: Expr) -> Interpretable:
        """Compile an expression that is evaluated for itself."""

    def plan_branch(self, expr: Expr) -> Interpretable:
        """Compile an expression that is evaluated as a piece of an attribute."""

    def type(self, expr: Expr) -> Type:
        """Return the type of an expression."""

    def is_name(self, expr: Expr) -> bool:
        """Return whether an expression is the name of a variable, perhaps a dotted one."""

    def name(self, expr: Expr) -> str:
        """Return the full name of a variable."""

    def resolution(self, expr: Call) -> Resolution:
        """Return what a call may reach."""

    def constant(self, expr: Expr) -> Value:
        """
        Return the value of a constant expression; L{MISSING<kubetwist.cel.values.MISSING>} if it is none.

        @raise ConstantError: It is constant, but has no value.
        """

    def push(self, name: str, lazy: Interpretable | None = None) -> int:
        """Assign a slot to a variable; with C{lazy}, its value is computed when it is first used."""

    def pop(self, count: int) -> None:
        """Remove the variables that were pushed last."""

    def local(self, name: str) -> int | None:
        """Return the slot of a variable of a comprehension; L{None} for other names."""

    def is_lazy_local(self, slot: int) -> bool:
        """Return whether the value of a slot is computed at its first use."""

    def lazy_local(self, slot: int) -> Interpretable:
        """Return what computes the value of such a slot."""
