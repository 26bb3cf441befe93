"""The syntax tree of an expression, after its macros were expanded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, frozen

from .values import Value


@define(eq=False)
class Expr:
    """
    A node.

    @ivar id: Unique in its tree; positions and types are kept by it.
    """

    id: int


@define(eq=False)
class Literal(Expr):
    """A constant: the value itself."""

    value: Any


@define(eq=False)
class Ident(Expr):
    """A name; C{.name} is kept with its dot, which asks for the outermost."""

    name: str


@define(eq=False)
class Select(Expr):
    """C{operand.field}, or with C{test_only} whether it is there: C{has(operand.field)}."""

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
    """C{[a, ?b]}; C{optional} has the indices of elements that may be missing."""

    elements: list[Expr]
    optional: frozenset[int] = frozenset()


@define(eq=False)
class Entry:
    """One entry of a map or field of a message; its key is an expression or a field's name."""

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
    A fold, which macros become: over the elements of a range, from an initial value, step by step.

    @ivar iter_var2: With it, C{iter_var} is the index or key and this is the value; empty otherwise.
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
    """Return the nodes right below a node, in the order in which they are checked."""
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
    """Return a node and all below it, without recursion: parents before children, left before right."""
    pending = [expr]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(children(node))))


class MacroError(Exception):
    """A macro cannot be expanded; the parser reports it where the expression stands."""

    def __init__(self, message: str, expr: Expr) -> None:
        super().__init__(message)
        self.message = message
        self.expr = expr


class Builder:
    """
    Makes nodes with fresh ids, for macros.

    @ivar accumulator: The name under which comprehensions of macros keep their result.
    """

    accumulator = "@result"

    def __init__(self, next_id: Callable[[], int], copy_id: Callable[[int], int]) -> None:
        """
        Begin.

        @param next_id: Gives the id of a node that stands where the macro stands.
        @param new_copy: Gives an id that stands where the node of another id stands.
        """
        self._next_id = next_id
        self._copy_id = copy_id

    def literal(self, value: Value) -> Literal:
        """Return a constant."""
        return Literal(self._next_id(), value)

    def ident(self, name: str) -> Ident:
        """Return a name."""
        return Ident(self._next_id(), name)

    def result(self) -> Ident:
        """Return the accumulator."""
        return Ident(self._next_id(), self.accumulator)

    def select(self, operand: Expr, field: str, test_only: bool = False) -> Select:
        """Return a selection or a test for presence."""
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
        """Return a comprehension."""
        return Comprehension(
            self._next_id(), iter_range, variable, variable2, accumulator, init, condition, step, result
        )

    def copy(self, expr: Expr) -> Expr:
        """Return a copy of a whole expression with ids of its own: a node may be in a tree once only."""
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
    A call that is something else.

    @ivar count: The number of arguments; C{None} for any number.
    @ivar member: Whether it is called on a target.
    @ivar expand: Makes the expression from the target (C{None} if there is none) and the arguments; C{None} leaves the
        call as it is. It raises L{MacroError}.
    """

    name: str
    count: int | None
    member: bool
    expand: Expand
