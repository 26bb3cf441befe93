"""
Compiler of checked expressions to closures.

Each subexpression becomes an L{Interpretable}, a function of the L{Frame}. It adds the cost of the subexpression and
reads only the variables that the value depends on. Constants are computed once, here, and cost nothing, as in cel-go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kubetwist.cel import attributes, comprehensions
from kubetwist.cel.ast import (
    Call,
    Comprehension,
    Entry,
    Expr,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
    StructExpr,
)
from kubetwist.cel.calls import evaluate_for_cost, plan_call
from kubetwist.cel.checker import Checked, Resolution
from kubetwist.cel.errors import CelError, ConstantError, no_such_overload
from kubetwist.cel.estimates import LIST_CREATE_COST, MAP_CREATE_COST, STRUCT_CREATE_COST, CostModel
from kubetwist.cel.frame import Frame, Interpretable
from kubetwist.cel.functions import Overload
from kubetwist.cel.runtimecost import comparison_cost
from kubetwist.cel.types import Kind, ObjectType, Type
from kubetwist.cel.values import MISSING, MixedMap, Optional, Value, equal, size_for_cost

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_SCALAR: Final = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.TIMESTAMP, Kind.DURATION})
_MEMBERS: Final = frozenset({str, int, bool})


class Compiler:
    """Compiler of one expression."""

    def __init__(self, checked: Checked, model: CostModel | None, functions: Mapping[str, Sequence[Overload]]) -> None:
        self.model = model
        self.functions = functions
        self.slots = 0
        self._checked = checked
        self._scopes: list[tuple[str, int]] = []
        self._lazy: dict[int, Interpretable] = {}
        self._constants: dict[int, Value] = {}
        self._steps: dict[type[Expr], Callable[[Value], Interpretable]] = {
            ListExpr: self._list,
            MapExpr: self._map,
            StructExpr: self._struct,
            Comprehension: lambda expr: comprehensions.comprehension(self, expr),
            Call: self._call,
            Ident: self._attribute,
            Select: self._attribute,
        }

    def compile(self) -> Interpretable:
        """Compile the whole expression."""
        return self.plan(self._checked.root)

    def plan(self, expr: Expr) -> Interpretable:
        """Compile a subexpression that is not a part of an attribute."""
        constant = self.constant(expr)
        if constant is not MISSING:
            return lambda frame: constant
        return self._steps[type(expr)](expr)

    def plan_branch(self, expr: Expr) -> Interpretable:
        """Compile a subexpression of an attribute, where a nested attribute adds no cost."""
        if not attributes.is_attribute(self, expr):
            return self.plan(expr)
        if isinstance(expr, Call) and expr.function == "_?_:_":
            return self._condition(expr)
        return attributes.attribute(self, expr, standalone=False)

    # Results of the checker

    def type(self, expr: Expr) -> Type:
        """Return the type of a subexpression."""
        return self._checked.types[expr.id]

    def is_name(self, expr: Expr) -> bool:
        """Return whether a subexpression is the name of a variable, possibly a qualified one."""
        resolved = self._checked.names.get(expr.id)
        return resolved is not None and resolved.value is MISSING and not isinstance(expr, StructExpr)

    def name(self, expr: Expr) -> str:
        """Return the full name of a variable."""
        return self._checked.names[expr.id].name

    def resolution(self, expr: Call) -> Resolution:
        """Return the candidate overloads of a call."""
        return self._checked.calls[expr.id]

    # Variables of comprehensions

    def push(self, name: str, lazy: Interpretable | None = None) -> int:
        """Assign a slot to a variable; with C{lazy}, its value is computed at first use."""
        slot = self.slots
        self.slots += 1
        self._scopes.append((name, slot))
        if lazy is not None:
            self._lazy[slot] = lazy
        return slot

    def pop(self, count: int) -> None:
        """Remove the C{count} variables that were pushed last."""
        del self._scopes[-count:]

    def local(self, name: str) -> int | None:
        """Return the slot of a comprehension variable, or C{None} for other names."""
        for candidate, slot in reversed(self._scopes):
            if candidate == name:
                return slot
        return None

    def is_lazy_local(self, slot: int) -> bool:
        """Return whether the value of a slot is computed at first use."""
        return slot in self._lazy

    def lazy_local(self, slot: int) -> Interpretable:
        """Return the L{Interpretable} that reads a slot with a lazy value."""
        initial = self._lazy[slot]

        def bound(frame: Frame) -> Value:
            holder: comprehensions.LazyValue = frame.locals[slot]
            return holder.get(initial, frame)

        return bound

    # Constants

    def constant(self, expr: Expr) -> Value:
        """
        Return the value of a constant subexpression, or L{MISSING} if it is not constant.

        @raise ConstantError: The subexpression is constant, but its evaluation fails.
        """
        if isinstance(expr, Literal):
            return expr.value
        if expr.id not in self._constants:
            self._constants[expr.id] = self._constant(expr)
        return self._constants[expr.id]

    def _constant(self, expr: Expr) -> Value:
        resolved = self._checked.names.get(expr.id)
        if resolved is not None and not isinstance(expr, StructExpr):
            return resolved.value
        if isinstance(expr, ListExpr):
            values = [self.constant(element) for element in expr.elements]
            return MISSING if expr.optional or any(value is MISSING for value in values) else values
        if isinstance(expr, MapExpr):
            return self._constant_map(expr)
        if isinstance(expr, Call) and expr.target is None and len(expr.args) == 1 and expr.function in _CONVERSIONS:
            if self.constant(expr.args[0]) is MISSING:
                return MISSING
            try:
                return plan_call(self, expr)(Frame({}, 0, 1 << 40, 1.0))
            except CelError as error:
                raise ConstantError(error.message) from None
        if isinstance(expr, Call) and expr.function == "@in":
            return self._constant_membership(expr)
        return MISSING

    def _constant_map(self, expr: MapExpr) -> Value:
        result: list[tuple[Value, Value]] = []
        for entry in expr.entries:
            key, value = self.constant(entry.key), self.constant(entry.value)
            if entry.optional or key is MISSING or value is MISSING:
                return MISSING
            result.append((_hashable(key), value))
        return MixedMap(result) if MixedMap.needed(key for key, _ in result) else dict(result)

    def _constant_membership(self, expr: Call) -> Value:
        """Return false for C{x in []} without evaluating x."""
        members = self.constant(expr.args[1])
        return False if type(members) is list and not members and self._is_list_membership(expr) else MISSING

    def _is_list_membership(self, expr: Call) -> bool:
        overloads = self.resolution(expr).overloads
        return len(overloads) == 1 and overloads[0].id == "in_list"

    # Subexpressions

    def _attribute(self, expr: Expr) -> Interpretable:
        return attributes.attribute(self, expr, standalone=True)

    def _call(self, expr: Call) -> Interpretable:
        function = expr.function if expr.target is None else ""
        if function == "_&&_":
            return _logical(self._operands(expr), decisive=False)
        if function == "_||_":
            return _logical(self._operands(expr), decisive=True)
        if function == "_?_:_":
            return self._condition(expr)
        if function in ("_[_]", "_[?_]", "_?._"):
            return self._attribute(expr)
        if function in ("_==_", "_!=_"):
            return self._comparison(expr, expr.args[0], expr.args[1])
        if function == "@in":
            result = self._membership(expr)
            if result is not None:
                return result
        return plan_call(self, expr)

    def _operands(self, expr: Call) -> list[Interpretable]:
        """Compile the operands of a chain of one logical operator, from left to right."""
        terms: list[Interpretable] = []
        pending: list[Expr] = [expr]
        while pending:
            operand = pending.pop()
            if isinstance(operand, Call) and operand.target is None and operand.function == expr.function:
                pending.extend(reversed(operand.args))
            else:
                terms.append(self.plan(operand))
        return terms

    def _condition(self, expr: Call) -> Interpretable:
        condition = self.plan(expr.args[0])
        true, false = self.plan_branch(expr.args[1]), self.plan_branch(expr.args[2])

        def choose(frame: Frame) -> Value:
            chosen = condition(frame)
            if chosen is True:
                return true(frame)
            if chosen is False:
                return false(frame)
            raise no_such_overload()

        return choose

    def _comparison(self, expr: Call, left: Expr, right: Expr) -> Interpretable:
        kinds = (self.type(left), self.type(right))
        expected = expr.function == "_==_"
        first, second = self.plan(left), self.plan(right)
        if all(type_.kind in _SCALAR and not type_.nullable for type_ in kinds) and kinds[0] == kinds[1]:
            return _scalar_comparison(first, second, expected)
        constant = self.constant(right)
        if type(constant) is str:
            return _text_comparison(first, constant, expected)
        cost = comparison_cost(self.model, expr.function)

        def compare(frame: Frame) -> bool:
            try:
                left_value = first(frame)
            except CelError:
                frame.cost += cost(None, *evaluate_for_cost((second,), frame))
                raise
            try:
                right_value = second(frame)
            except CelError:
                frame.cost += cost(left_value, None)
                raise
            frame.add_cost(cost(left_value, right_value))
            result = equal(left_value, right_value)
            if type(left_value) is not str:
                # Comparing nested values takes time that the cost does not include.
                frame.check_deadline()
            return result is expected

        return compare

    def _membership(self, expr: Call) -> Interpretable | None:
        """Compile C{x in [...]} for constants of one scalar type, which adds no cost."""
        members = self.constant(expr.args[1])
        if type(members) is not list or not self._is_list_membership(expr):
            return None
        kinds = {type(member) for member in members}
        if len(kinds) != 1 or not kinds <= _MEMBERS:
            return None
        [kind] = kinds
        constant = frozenset(members)
        value_of = self.plan(expr.args[0])
        if kind is not int:

            def within(frame: Frame) -> bool:
                value = value_of(frame)
                return type(value) is kind and value in constant

            return within

        def among(frame: Frame) -> bool:
            value = value_of(frame)
            return isinstance(value, (int, float)) and type(value) is not bool and value in constant

        return among

    # Aggregates

    def _list(self, expr: ListExpr) -> Interpretable:
        steps = [self.plan(element) for element in expr.elements]
        if not expr.optional:

            def build(frame: Frame) -> list[Value]:
                frame.cost += LIST_CREATE_COST
                return [step(frame) for step in steps]

            return build
        optional = expr.optional

        def build_some(frame: Frame) -> list[Value]:
            frame.cost += LIST_CREATE_COST
            result = []
            for index, step in enumerate(steps):
                value = step(frame)
                if index in optional:
                    if type(value) is not Optional:
                        raise CelError(f"cannot initialize optional list element from non-optional value {value}")
                    if not value.present:
                        continue
                    value = value.value
                result.append(value)
            return result

        return build_some

    def _map(self, expr: MapExpr) -> Interpretable:
        entries = [(self.plan(entry.key), self.plan(entry.value), entry.optional) for entry in expr.entries]

        if len(entries) > 1 and not all(_is_text(entry.key) for entry in expr.entries):
            return self._map_of_any(entries)

        def build(frame: Frame) -> dict[Value, Value]:
            frame.cost += MAP_CREATE_COST
            result: dict[Value, Value] = {}
            for key_of, value_of, optional in entries:
                key, value = _hashable(key_of(frame)), value_of(frame)
                _set_entry(result, key, value, optional)
            return result

        return build

    def _map_of_any(self, entries: Sequence[tuple[Interpretable, Interpretable, bool]]) -> Interpretable:
        """Compile a map whose keys may be both booleans and numbers."""

        def build(frame: Frame) -> Value:
            frame.cost += MAP_CREATE_COST
            items = [(_hashable(key_of(frame)), value_of(frame), optional) for key_of, value_of, optional in entries]
            mixed = MixedMap.needed(key for key, _, _ in items)
            parts: tuple[dict[Value, Value], dict[Value, Value]] = ({}, {})
            for key, value, optional in items:
                _set_entry(parts[mixed and type(key) is bool], key, value, optional)
            return MixedMap([*parts[0].items(), *parts[1].items()]) if mixed else parts[0]

        return build

    def _struct(self, expr: StructExpr) -> Interpretable:
        type_ = self._checked.types[expr.id]
        make = type_.make if isinstance(type_, ObjectType) else None
        entries: list[tuple[Entry, Interpretable]] = [(entry, self.plan(entry.value)) for entry in expr.entries]

        def build(frame: Frame) -> Value:
            frame.cost += STRUCT_CREATE_COST
            result: dict[Value, Value] = {}
            for entry, value_of in entries:
                _set_entry(result, entry.key, value_of(frame), entry.optional)
            return result if make is None else make(result)

        return build


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and type(expr.value) is str


def _hashable(key: Value) -> Value:
    try:
        hash(key)
    except TypeError:
        raise CelError("unsupported key type") from None
    return key


def _set_entry(result: dict[Value, Value], key: Value, value: Value, optional: bool) -> None:
    """Set an entry of a map, or remove it if the value is an empty optional."""
    if optional:
        if type(value) is not Optional:
            raise CelError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
        if not value.present:
            result.pop(key, None)
            return
        value = value.value
    result[key] = value


def _logical(terms: Sequence[Interpretable], decisive: bool) -> Interpretable:
    """Compile C{&&} (decisive: false) or C{||} (decisive: true); an operand with the decisive value absorbs errors."""
    neutral = not decisive
    if len(terms) == 2:
        left, right = terms

        def pair(frame: Frame) -> Value:
            try:
                value = left(frame)
            except CelError as raised:
                error = raised
            else:
                if value is decisive:
                    return decisive
                if value is neutral:
                    right_value = right(frame)
                    if right_value is decisive:
                        return decisive
                    if right_value is neutral:
                        return neutral
                    raise no_such_overload()
                error = no_such_overload()
            try:
                if right(frame) is decisive:
                    return decisive
            except CelError:
                pass
            raise error

        return pair

    def chain(frame: Frame) -> Value:
        error: CelError | None = None
        for operand in terms:
            try:
                value = operand(frame)
            except CelError as raised:
                error = error or raised
                continue
            if value is decisive:
                return decisive
            if value is not neutral:
                error = error or no_such_overload()
        if error is not None:
            raise error
        return neutral

    return chain


def _scalar_comparison(left: Interpretable, right: Interpretable, expected: bool) -> Interpretable:
    def compare(frame: Frame) -> bool:
        frame.cost += 1
        try:
            left_value = left(frame)
        except CelError:
            evaluate_for_cost((right,), frame)
            raise
        result: bool = left_value == right(frame)
        return result is expected

    return compare


def _text_comparison(value_of: Interpretable, text: str, expected: bool) -> Interpretable:
    length = len(text)
    cost_of_text = (length + 9) // 10

    def compare(frame: Frame) -> bool:
        try:
            value = value_of(frame)
        except CelError:
            frame.cost += min(cost_of_text, 1)
            raise
        if type(value) is str:
            size = len(value)
            frame.cost += cost_of_text if size >= length else (size + 9) // 10
            result: bool = value == text
            return result is expected
        # A value of another type never equals a string.
        frame.cost += (min(size_for_cost(value), length) + 9) // 10
        return not expected

    return compare
