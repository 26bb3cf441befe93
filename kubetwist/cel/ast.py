"""Syntax trees of expressions, after macro expansion."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, frozen

from .values import Value


@define(eq=False)
class Expr:
    """
    A node.

    @ivar id: The id, unique in the tree, by which positions and types are stored.
    """

    id: int


@define(eq=False)
class Literal(Expr):
    """A constant value."""

    value: Any


@define(eq=False)
class Ident(Expr):
    """An identifier; the leading dot of C{.name} selects the outermost scope."""

    name: str


@define(eq=False)
class Select(Expr):
    """C{operand.field}, or with C{test_only} the presence test C{has(operand.field)}."""

    operand: Expr
    field: str
    test_only: bool = False


@define(eq=False)
class Call(Expr):
    """A call of a function or operator (C{_+_}); with a target C{target.f(x)}."""

    function: str
    target: Expr | None
    args: list[Expr]


@define(eq=False)
class ListExpr(Expr):
    """C{[a, ?b]}; C{optional} has the indices of optional elements."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@define(eq=False)
class Entry:
    """An entry of a map, whose key is an expression, or a field of a message, whose key is its name."""

    id: int
    key: Any
    value: Expr
    optional: bool = False


@define(eq=False)
class MapExpr(Expr):
    """C{{key: value, ?key: optional}}."""

    entries: list[Entry]


@define(eq=False)
class StructExpr(Expr):
    """C{Type.Name{field: value}}."""

    type_name: str
    entries: list[Entry]


@define(eq=False)
class Comprehension(Expr):
    """
    A fold over the elements of a range, to which macros are expanded.

    @ivar iter_var2: The second variable, for the value, if C{iter_var} is for the index or key; otherwise empty.
    """

    iter_range: Expr
    iter_var: str
    iter_var2: str
    accu_var: str
    accu_init: Expr
    condition: Expr
    step: Expr
    result: Expr


def children(expr: Expr) -> Iterator[Expr]:
    """Return the child nodes of a node, in the order in which they are checked."""
    if isinstance(expr, Select):
        yield expr.operand
    elif isinstance(expr, Call):
        if expr.target is not None:
            yield expr.target
        yield from expr.args
    elif isinstance(expr, ListExpr):
        yield from expr.elements
    elif isinstance(expr, (MapExpr, StructExpr)):
        for entry in expr.entries:
            if isinstance(entry.key, Expr):
                yield entry.key
            yield entry.value
    elif isinstance(expr, Comprehension):
        yield expr.iter_range
        yield expr.accu_init
        yield expr.condition
        yield expr.step
        yield expr.result


def walk(expr: Expr) -> Iterator[Expr]:
    """Return a node and its descendants in depth-first order, without recursion."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))


class MacroError(Exception):
    """A macro cannot be expanded; the parser reports the error at the position of C{expr}."""

    def __init__(self, message: str, expr: Expr) -> None:
        super().__init__(message)
        self.message = message
        self.expr = expr


class Builder:
    """
    Factory of nodes with new ids, for macros.

    @ivar accumulator: The name of the accumulator variable of comprehensions.
    """

    accumulator = "@result"

    def __init__(self, next_id: Callable[[], int], copy_id: Callable[[int], int]) -> None:
        """
                @param next_id: Returns a new id with the position of the macro call.
        @param copy_id: Returns a new id with the position of the node of another id.
        """
        self._next_id = next_id
        self._copy_id = copy_id

    def literal(self, value: Value) -> Literal:
        """Return a constant."""
        return Literal(self._next_id(), value)

    def ident(self, name: str) -> Ident:
        """Return an identifier."""
        return Ident(self._next_id(), name)

    def result(self) -> Ident:
        """Return the identifier of the accumulator."""
        return Ident(self._next_id(), self.accumulator)

    def select(self, operand: Expr, field: str, test_only: bool = False) -> Select:
        """Return a field selection or a presence test."""
        return Select(self._next_id(), operand, field, test_only)

    def call(self, function: str, *args: Expr) -> Call:
        """Return a call of a function or operator."""
        return Call(self._next_id(), function, None, list(args))

    def member(self, function: str, target: Expr, *args: Expr) -> Call:
        """Return a call on a target."""
        return Call(self._next_id(), function, target, list(args))

    def list_of(self, *elements: Expr) -> ListExpr:
        """Return a list."""
        return ListExpr(self._next_id(), [*elements])

    def map_of(self, *entries: tuple[Expr, Expr]) -> MapExpr:
        """Return a map."""
        return MapExpr(self._next_id(), [Entry(self._next_id(), key, value) for key, value in entries])

    def fold(
        self,
        iter_range: Expr,
        variable: str,
        init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        variable2: str = "",
        accumulator: str = accumulator,
    ) -> Comprehension:
        """
        Return a comprehension.

        @param iter_range: The list or map.
        @param variable: The name of the iteration variable.
        @param init: The initial value of the accumulator.
        @param condition: The condition for the next iteration.
        @param step: The new value of the accumulator.
        @param result: The result.
        @param variable2: The name of the second iteration variable; empty with one.
        @param accumulator: The name of the accumulator.
        """
        return Comprehension(
            self._next_id(), iter_range, variable, variable2, accumulator, init, condition, step, result
        )

    def copy(self, expr: Expr) -> Expr:
        """Return a deep copy of an expression with new ids, since an id must be unique in a tree."""
        new_id = self._copy_id(expr.id)
        if isinstance(expr, Literal):
            return Literal(new_id, expr.value)
        if isinstance(expr, Ident):
            return Ident(new_id, expr.name)
        if isinstance(expr, Select):
            return Select(new_id, self.copy(expr.operand), expr.field, expr.test_only)
        if isinstance(expr, Call):
            target = None if expr.target is None else self.copy(expr.target)
            return Call(new_id, expr.function, target, [self.copy(arg) for arg in expr.args])
        if isinstance(expr, ListExpr):
            return ListExpr(new_id, [self.copy(element) for element in expr.elements], expr.optional)
        if isinstance(expr, MapExpr):
            return MapExpr(new_id, self._copy_entries(expr.entries))
        if isinstance(expr, StructExpr):
            return StructExpr(new_id, expr.type_name, self._copy_entries(expr.entries))
        assert isinstance(expr, Comprehension)
        return Comprehension(
            new_id,
            self.copy(expr.iter_range),
            expr.iter_var,
            expr.iter_var2,
            expr.accu_var,
            self.copy(expr.accu_init),
            self.copy(expr.condition),
            self.copy(expr.step),
            self.copy(expr.result),
        )

    def _copy_entries(self, entries: Sequence[Entry]) -> list[Entry]:
        return [
            Entry(
                self._copy_id(entry.id),
                self.copy(entry.key) if isinstance(entry.key, Expr) else entry.key,
                self.copy(entry.value),
                entry.optional,
            )
            for entry in entries
        ]


Expand = Callable[[Builder, Expr | None, Sequence[Expr]], Expr | None]


@frozen
class Macro:
    """
    A macro.

    @ivar count: The number of arguments; C{None} for any number.
    @ivar member: Whether it is called on a target.
    @ivar expand: Returns the expansion for a target (C{None} without one) and the arguments, or C{None} to keep the
        call. Raises L{MacroError}.
    """

    name: str
    count: int | None
    member: bool
    expand: Expand
