"""
Attributes: names with their selections and indices.

cel-go evaluates C{a.b[c].d} as one attribute: a variable or another operand, and a list of qualifiers (cel-go,
C{interpreter/attributes.go}). Each qualifier costs 1. The attribute itself also costs 1, unless it is a part of another
attribute or a branch of a conditional.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from kubetwist.cel.ast import Call, Expr, Ident, Literal, Select
from kubetwist.cel.compiling import ExpressionPlanner
from kubetwist.cel.errors import CelError
from kubetwist.cel.frame import Frame, Interpretable
from kubetwist.cel.standard.operators import lookup, select
from kubetwist.cel.types import is_optional
from kubetwist.cel.values import MISSING, NONE, Optional, Value

_INDICES: Final = frozenset({"_[_]", "_[?_]"})


@frozen
class Qualifier:
    """
    A selection or index that is applied to a value.

    @ivar key: The constant key.
    @ivar compute_key: Computes the key if it is not constant.
    @ivar optional: Whether the value may be missing.
    @ivar test: Whether only the presence of the value is tested.
    """

    key: Value
    compute_key: Interpretable | None
    optional: bool = False
    test: bool = False


def is_attribute(planner: ExpressionPlanner, expr: Expr) -> bool:
    """Return whether an expression is an attribute; constants are not."""
    if planner.constant(expr) is not MISSING:
        return False
    if isinstance(expr, (Ident, Select)):
        return True
    return isinstance(expr, Call) and expr.function in (*_INDICES, "_?._", "_?_:_")


def attribute(planner: ExpressionPlanner, expr: Expr, standalone: bool) -> Interpretable:
    """
    Compile an attribute that is not a conditional.

    @param planner: The compiler of the expression.
    @param expr: The attribute.
    @param standalone: Whether it is not a part of another attribute, which adds a cost.
    """
    qualifiers: list[Qualifier] = []
    base = expr
    while (operand := _operand(planner, base)) is not None:
        qualifiers.append(_qualifier(planner, base))
        base = operand
    qualifiers.reverse()
    attribute_cost = 0
    if standalone:
        conditional = isinstance(base, Call) and base.function == "_?_:_" and is_attribute(planner, base)
        attribute_cost = (0 if conditional else 1) - (1 if qualifiers and qualifiers[-1].test else 0)
    if isinstance(base, Ident) or planner.is_name(base):
        slot = planner.local(planner.name(base))
        if slot is not None and planner.is_lazy_local(slot):
            return _general(planner.lazy_local(slot), qualifiers, attribute_cost)
        return _named(planner.name(base), slot, qualifiers, attribute_cost, is_optional(planner.type(base)))
    root = planner.plan_branch(base) if is_attribute(planner, base) else planner.plan(base)
    return _general(root, qualifiers, attribute_cost)


def _operand(planner: ExpressionPlanner, expr: Expr) -> Expr | None:
    """Return the operand of the last qualifier, or C{None} if the expression does not end in a qualifier."""
    if planner.is_name(expr) or planner.constant(expr) is not MISSING:
        return None
    if isinstance(expr, Select):
        return expr.operand
    if isinstance(expr, Call) and (expr.function in _INDICES or expr.function == "_?._"):
        return expr.args[0]
    return None


def _qualifier(planner: ExpressionPlanner, expr: Expr) -> Qualifier:
    if isinstance(expr, Select):
        return Qualifier(expr.field, None, test=expr.test_only)
    assert isinstance(expr, Call)
    index = expr.args[1]
    if expr.function == "_?._":
        assert isinstance(index, Literal)
        return Qualifier(index.value, None, optional=True)
    optional = expr.function == "_[?_]"
    constant_key = planner.constant(index)
    if constant_key is not MISSING:
        return Qualifier(constant_key, None, optional)
    compute_key = planner.plan_branch(index) if is_attribute(planner, index) else planner.plan(index)
    return Qualifier(None, compute_key, optional)


def _named(
    name: str, slot: int | None, qualifiers: Sequence[Qualifier], attribute_cost: int, optional: bool
) -> Interpretable:
    """Compile an attribute that begins with a variable."""
    if slot is not None:
        return _of_local(slot, qualifiers, attribute_cost, optional)

    def root(frame: Frame) -> Value:
        try:
            return frame.vars[name]
        except KeyError:
            raise CelError(f"no such attribute(s): {name}") from None

    if optional or not _are_plain(qualifiers):
        return _general(root, qualifiers, attribute_cost)
    keys = tuple(qualifier.key for qualifier in qualifiers)
    cost = attribute_cost + len(keys)
    slow = _general(root, qualifiers, attribute_cost)
    if qualifiers and qualifiers[-1].test:
        return _tested(root, keys, cost, slow)
    if not keys:
        return _variable(name, root, cost)
    if len(keys) == 1:
        [key] = keys

        def single_key(frame: Frame) -> Value:
            try:
                value = frame.vars[name][key]
            except (KeyError, TypeError):
                return slow(frame)
            frame.cost += cost
            return value

        return single_key

    def many(frame: Frame) -> Value:
        try:
            value = frame.vars[name]
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            return slow(frame)
        frame.cost += cost
        return value

    return many


def _variable(name: str, root: Interpretable, cost: int) -> Interpretable:
    def variable(frame: Frame) -> Value:
        frame.cost += cost
        try:
            return frame.vars[name]
        except KeyError:
            return root(frame)

    return variable


def _tested(root: Interpretable, keys: tuple[Value, ...], cost: int, slow: Interpretable) -> Interpretable:
    """Compile C{has(a.b.c)}."""
    *parents, last = keys

    def tested(frame: Frame) -> Value:
        try:
            value = root(frame)
            for key in parents:
                value = value[key]
        except (KeyError, TypeError):
            return slow(frame)
        if type(value) is not dict:
            return slow(frame)
        frame.cost += cost
        return last in value

    return tested


def _of_local(slot: int, qualifiers: Sequence[Qualifier], attribute_cost: int, optional: bool) -> Interpretable:
    """Compile an attribute that begins with a comprehension variable."""
    if not qualifiers:

        def local(frame: Frame) -> Value:
            frame.cost += attribute_cost
            return frame.locals[slot]

        return local

    def root(frame: Frame) -> Value:
        return frame.locals[slot]

    slow = _general(root, qualifiers, attribute_cost)
    if optional or not _are_plain(qualifiers):
        return slow
    keys = tuple(qualifier.key for qualifier in qualifiers)
    cost = attribute_cost + len(keys)
    if qualifiers[-1].test:
        return _tested(root, keys, cost, slow)

    def path(frame: Frame) -> Value:
        value = frame.locals[slot]
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            return slow(frame)
        frame.cost += cost
        return value

    return path


def _are_plain(qualifiers: Sequence[Qualifier]) -> bool:
    """Return whether Python's C{[]} is sufficient for all qualifiers: constant string keys that must be present."""
    return all(type(qualifier.key) is str and not qualifier.optional for qualifier in qualifiers)


def _general(root: Interpretable, qualifiers: Sequence[Qualifier], attribute_cost: int) -> Interpretable:
    """Compile an attribute in the general form."""
    if len(qualifiers) == 1 and not qualifiers[0].optional and not qualifiers[0].test:
        return _single(root, qualifiers[0], attribute_cost)

    def walk(frame: Frame) -> Value:
        frame.cost += attribute_cost
        value = root(frame)
        wrapped = type(value) is Optional
        if wrapped:
            if not value.present:
                return False if qualifiers and qualifiers[-1].test else value
            if not qualifiers:
                return value
            value = value.value
        for qualifier in qualifiers:
            wrapped = wrapped or qualifier.optional
            if not wrapped:
                frame.cost += 1
            key = qualifier.key if qualifier.compute_key is None else qualifier.compute_key(frame)
            if not wrapped:
                if qualifier.test:
                    return lookup(value, key) is not MISSING
                value = select(value, key)
                continue
            value = lookup(value, key)
            if qualifier.test:
                frame.cost += 1
                return value is not MISSING
            if value is MISSING:
                return False if qualifiers[-1].test else NONE
            frame.cost += 1
        return Optional(value) if wrapped else value

    return walk


def _single(root: Interpretable, qualifier: Qualifier, attribute_cost: int) -> Interpretable:
    """Compile C{x[i]} and similar qualifiers."""
    key_of, constant = qualifier.compute_key, qualifier.key

    def single(frame: Frame) -> Value:
        frame.cost += attribute_cost
        value = root(frame)
        if type(value) is Optional:
            if not value.present:
                return value
            result = lookup(value.value, constant if key_of is None else key_of(frame))
            if result is MISSING:
                return NONE
            frame.cost += 1
            return Optional(result)
        frame.cost += 1
        key = constant if key_of is None else key_of(frame)
        if type(value) is list and type(key) is int and 0 <= key < len(value):
            return value[key]
        return select(value, key)

    return single
