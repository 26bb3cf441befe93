"""
From a checked expression to closures.

Every part becomes a function of the L{Frame}. It charges what the part costs and reads no more of the variables than
the value depends on. Constants are computed here, once, and cost nothing, as in the reference.
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
from kubetwist.cel.calls import call_step, spend_on
from kubetwist.cel.checker import Checked, Resolution
from kubetwist.cel.errors import CelError, ConstantError, no_such_overload
from kubetwist.cel.estimates import LIST_CREATE_COST, MAP_CREATE_COST, STRUCT_CREATE_COST, CostModel
from kubetwist.cel.frame import Frame, Step
from kubetwist.cel.functions import Overload
from kubetwist.cel.metering import comparison_cost
from kubetwist.cel.types import Kind, ObjectType, Type
from kubetwist.cel.values import MISSING, MixedMap, Optional, Value, equal, size_for_cost

_CONVERSIONS: Final = frozenset(
    {"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"}
)
_SCALAR: Final = frozenset({Kind.BOOL, Kind.INT, Kind.UINT, Kind.TIMESTAMP, Kind.DURATION})
_MEMBERS: Final = frozenset({str, int, bool})


class Compiler:
    """Compiles one expression."""

    def __init__(self, checked: Checked, model: CostModel | None, functions: Mapping[str, Sequence[Overload]]) -> None:
        self.model = model
        self.functions = functions
        self.slots = 0
        self._checked = checked
        self._scopes: list[tuple[str, int]] = []
        self._lazy: dict[int, Step] = {}
        self._constants: dict[int, Value] = {}
        self._steps: dict[type[Expr], Callable[[Value], Step]] = {
            ListExpr: self._list,
            MapExpr: self._map,
            StructExpr: self._struct,
            Comprehension: lambda expr: comprehensions.comprehension(self, expr),
            Call: self._call,
            Ident: self._attribute,
            Select: self._attribute,
        }

    def compile(self) -> Step:
        """Return the whole expression."""
        return self.step(self._checked.root)

    def step(self, expr: Expr) -> Step:
        """Compile a part that is evaluated on its own."""
        known = self.constant(expr)
        if known is not MISSING:
            return lambda frame: known
        return self._steps[type(expr)](expr)

    def branch(self, expr: Expr) -> Step:
        """Compile a part of an attribute: a nested attribute has no cost of its own there."""
        if not attributes.is_attribute(self, expr):
            return self.step(expr)
        if isinstance(expr, Call) and expr.function == "_?_:_":
            return self._condition(expr)
        return attributes.attribute(self, expr, whole=False)

    # Results of the checker

    def type(self, expr: Expr) -> Type:
        """Return the type of a part."""
        return self._checked.types[expr.id]

    def is_name(self, expr: Expr) -> bool:
        """Return whether a part is the name of a variable, perhaps a dotted one."""
        resolved = self._checked.names.get(expr.id)
        return resolved is not None and resolved.value is MISSING and not isinstance(expr, StructExpr)

    def name(self, expr: Expr) -> str:
        """Return the full name of a variable."""
        return self._checked.names[expr.id].name

    def resolution(self, expr: Call) -> Resolution:
        """Return the candidate overloads of a call."""
        return self._checked.calls[expr.id]

    # Variables of comprehensions

    def push(self, name: str, lazy: Step | None = None) -> int:
        """Give a variable a slot; with C{lazy} it is computed when it is first used."""
        slot = self.slots
        self.slots += 1
        self._scopes.append((name, slot))
        if lazy is not None:
            self._lazy[slot] = lazy
        return slot

    def pop(self, count: int) -> None:
        """Forget the variables that were pushed last."""
        del self._scopes[-count:]

    def local(self, name: str) -> int | None:
        """Return the slot of a variable, if it is one of a comprehension."""
        for candidate, slot in reversed(self._scopes):
            if candidate == name:
                return slot
        return None

    def is_lazy_local(self, slot: int) -> bool:
        """Return whether a slot holds something that is computed at its first use."""
        return slot in self._lazy

    def lazy_local(self, slot: int) -> Step:
        """Return the step that gets the value of such a slot."""
        initial = self._lazy[slot]

        def bound(frame: Frame) -> Value:
            holder: comprehensions.LazyValue = frame.locals[slot]
            return holder.get(initial, frame)

        return bound

    # Constants

    def constant(self, expr: Expr) -> Value:
        """
        Return the value of a constant part; L{MISSING} if it is not constant.

        @raise ConstantError: It is one, but has no value.
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
                return call_step(self, expr)(Frame({}, 0, 1 << 40, 1.0))
            except CelError as error:
                raise ConstantError(error.message) from None
        if isinstance(expr, Call) and expr.function == "@in":
            return self._constant_membership(expr)
        return MISSING

    def _constant_map(self, expr: MapExpr) -> Value:
        found: list[tuple[Value, Value]] = []
        for entry in expr.entries:
            key, value = self.constant(entry.key), self.constant(entry.value)
            if entry.optional or key is MISSING or value is MISSING:
                return MISSING
            found.append((_hashable(key), value))
        return MixedMap(found) if MixedMap.needed(key for key, _ in found) else dict(found)

    def _constant_membership(self, expr: Call) -> Value:
        """Return false for C{x in []} without evaluating x."""
        members = self.constant(expr.args[1])
        return False if type(members) is list and not members and self._is_list_membership(expr) else MISSING

    def _is_list_membership(self, expr: Call) -> bool:
        overloads = self.resolution(expr).overloads
        return len(overloads) == 1 and overloads[0].id == "in_list"

    # Parts

    def _attribute(self, expr: Expr) -> Step:
        return attributes.attribute(self, expr, whole=True)

    def _call(self, expr: Call) -> Step:
        function = expr.function if expr.target is None else ""
        if function == "_&&_":
            return _logical(self._terms(expr), decisive=False)
        if function == "_||_":
            return _logical(self._terms(expr), decisive=True)
        if function == "_?_:_":
            return self._condition(expr)
        if function in ("_[_]", "_[?_]", "_?._"):
            return self._attribute(expr)
        if function in ("_==_", "_!=_"):
            return self._comparison(expr, expr.args[0], expr.args[1])
        if function == "@in":
            found = self._membership(expr)
            if found is not None:
                return found
        return call_step(self, expr)

    def _terms(self, expr: Call) -> list[Step]:
        """Return the operands of a chain of one logical operator, from left to right."""
        terms: list[Step] = []
        pending: list[Expr] = [expr]
        while pending:
            term = pending.pop()
            if isinstance(term, Call) and term.target is None and term.function == expr.function:
                pending.extend(reversed(term.args))
            else:
                terms.append(self.step(term))
        return terms

    def _condition(self, expr: Call) -> Step:
        condition = self.step(expr.args[0])
        true, false = self.branch(expr.args[1]), self.branch(expr.args[2])

        def choose(frame: Frame) -> Value:
            chosen = condition(frame)
            if chosen is True:
                return true(frame)
            if chosen is False:
                return false(frame)
            raise no_such_overload()

        return choose

    def _comparison(self, expr: Call, left: Expr, right: Expr) -> Step:
        kinds = (self.type(left), self.type(right))
        wanted = expr.function == "_==_"
        first, second = self.step(left), self.step(right)
        if all(type_.kind in _SCALAR and not type_.nullable for type_ in kinds) and kinds[0] == kinds[1]:
            return _scalar_comparison(first, second, wanted)
        known = self.constant(right)
        if type(known) is str:
            return _text_comparison(first, known, wanted)
        cost = comparison_cost(self.model, expr.function)

        def compare(frame: Frame) -> bool:
            try:
                one = first(frame)
            except CelError:
                frame.cost += cost(None, *spend_on((second,), frame))
                raise
            try:
                other = second(frame)
            except CelError:
                frame.cost += cost(one, None)
                raise
            frame.spend(cost(one, other))
            found = equal(one, other)
            if type(one) is not str:
                # The depth of values does not add to the cost, but takes time.
                frame.look()
            return found is wanted

        return compare

    def _membership(self, expr: Call) -> Step | None:
        """Compile C{x in [...]} of constants of one simple type, which has no cost."""
        members = self.constant(expr.args[1])
        if type(members) is not list or not self._is_list_membership(expr):
            return None
        kinds = {type(member) for member in members}
        if len(kinds) != 1 or not kinds <= _MEMBERS:
            return None
        [kind] = kinds
        known = frozenset(members)
        value_of = self.step(expr.args[0])
        if kind is not int:

            def within(frame: Frame) -> bool:
                value = value_of(frame)
                return type(value) is kind and value in known

            return within

        def among(frame: Frame) -> bool:
            value = value_of(frame)
            return isinstance(value, (int, float)) and type(value) is not bool and value in known

        return among

    # Aggregates

    def _list(self, expr: ListExpr) -> Step:
        steps = [self.step(element) for element in expr.elements]
        if not expr.optional:

            def build(frame: Frame) -> list[Value]:
                frame.cost += LIST_CREATE_COST
                return [step(frame) for step in steps]

            return build
        optional = expr.optional

        def build_some(frame: Frame) -> list[Value]:
            frame.cost += LIST_CREATE_COST
            found = []
            for index, step in enumerate(steps):
                value = step(frame)
                if index in optional:
                    if type(value) is not Optional:
                        raise CelError(f"cannot initialize optional list element from non-optional value {value}")
                    if not value.present:
                        continue
                    value = value.value
                found.append(value)
            return found

        return build_some

    def _map(self, expr: MapExpr) -> Step:
        entries = [(self.step(entry.key), self.step(entry.value), entry.optional) for entry in expr.entries]

        if len(entries) > 1 and not all(_is_text(entry.key) for entry in expr.entries):
            return self._map_of_any(entries)

        def build(frame: Frame) -> dict[Value, Value]:
            frame.cost += MAP_CREATE_COST
            found: dict[Value, Value] = {}
            for key_of, value_of, optional in entries:
                key, value = _hashable(key_of(frame)), value_of(frame)
                _put(found, key, value, optional)
            return found

        return build

    def _map_of_any(self, entries: Sequence[tuple[Step, Step, bool]]) -> Step:
        """Return a map whose keys may be booleans and numbers."""

        def build(frame: Frame) -> Value:
            frame.cost += MAP_CREATE_COST
            items = [(_hashable(key_of(frame)), value_of(frame), optional) for key_of, value_of, optional in entries]
            mixed = MixedMap.needed(key for key, _, _ in items)
            parts: tuple[dict[Value, Value], dict[Value, Value]] = ({}, {})
            for key, value, optional in items:
                _put(parts[mixed and type(key) is bool], key, value, optional)
            return MixedMap([*parts[0].items(), *parts[1].items()]) if mixed else parts[0]

        return build

    def _struct(self, expr: StructExpr) -> Step:
        type_ = self._checked.types[expr.id]
        make = type_.make if isinstance(type_, ObjectType) else None
        entries: list[tuple[Entry, Step]] = [(entry, self.step(entry.value)) for entry in expr.entries]

        def build(frame: Frame) -> Value:
            frame.cost += STRUCT_CREATE_COST
            found: dict[Value, Value] = {}
            for entry, value_of in entries:
                _put(found, entry.key, value_of(frame), entry.optional)
            return found if make is None else make(found)

        return build


def _is_text(expr: Expr) -> bool:
    return isinstance(expr, Literal) and type(expr.value) is str


def _hashable(key: Value) -> Value:
    try:
        hash(key)
    except TypeError:
        raise CelError("unsupported key type") from None
    return key


def _put(found: dict[Value, Value], key: Value, value: Value, optional: bool) -> None:
    """Set an entry of a map; a missing optional value unsets it."""
    if optional:
        if type(value) is not Optional:
            raise CelError(f"cannot initialize optional entry '{key}' from non-optional value {value}")
        if not value.present:
            found.pop(key, None)
            return
        value = value.value
    found[key] = value


def _logical(terms: Sequence[Step], decisive: bool) -> Step:
    """Compile C{&&} (decisive: false) and C{||} (decisive: true), whose result may be known in spite of errors."""
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
                    other = right(frame)
                    if other is decisive:
                        return decisive
                    if other is neutral:
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
        for term in terms:
            try:
                value = term(frame)
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


def _scalar_comparison(left: Step, right: Step, wanted: bool) -> Step:
    def compare(frame: Frame) -> bool:
        frame.cost += 1
        try:
            one = left(frame)
        except CelError:
            spend_on((right,), frame)
            raise
        found: bool = one == right(frame)
        return found is wanted

    return compare


def _text_comparison(value_of: Step, text: str, wanted: bool) -> Step:
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
            found: bool = value == text
            return found is wanted
        # Whatever else it is, it is not this text.
        frame.cost += (min(size_for_cost(value), length) + 9) // 10
        return not wanted

    return compare
