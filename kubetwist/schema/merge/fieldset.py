"""
Sets of fields, as FieldsV1 writes them.

A set is a dictionary from steps (L{kubetwist.schema.merge.fieldpath}) to what is below them, which is a dictionary
again. An empty one is a field that is in the set, with nothing below; in others C{"."} says that the field itself is in
the set too. So C{{"f:data": {".": {}, "f:a": {}}}} is C{data} and C{data.a}, and C{{"f:data": {"f:a": {}}}} only the
latter. The whole object is never a member: at the top, an empty dictionary is the empty set.

Sets are never changed once made: results share parts with what they were made from. All functions take canonical
sets, which L{decode} makes of what clients wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ...api.jsontypes import JSONObject, JSONValue
from .fieldpath import (
    SELF,
    MalformedStep,
    canonical,
    step_order,
)

FieldSet = JSONObject

#: A field with nothing below it, and the empty set.
LEAF: Final[FieldSet] = {}


def node(below: FieldSet, member: bool) -> FieldSet | None:
    """Return the children under a step, without C{"."}; L{None} if there are none."""
    if not below:
        return LEAF if member else None
    return {SELF: LEAF, **below} if member else below


def is_member(found: FieldSet) -> bool:
    """Return whether the field that C{found} stands under is itself in the set."""
    return not found or SELF in found


def below(found: FieldSet) -> FieldSet:
    """Return C{found} without the field itself."""
    return {step: part for step, part in found.items() if step != SELF} if SELF in found else found


def of_paths(paths: Iterable[Iterable[str]]) -> FieldSet:
    """Return the set of some paths of steps."""
    result: FieldSet = LEAF
    for path in paths:
        found = LEAF
        for step in reversed(tuple(path)):
            found = {step: found}
        result = union(result, found)
    return result


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Return all paths in a set, in the order of the reference: members of a level before their children."""
    return _paths((), fields)


def _paths(prefix: tuple[str, ...], fields: FieldSet) -> Iterator[tuple[str, ...]]:
    steps = sorted((step for step in fields if step != SELF), key=step_order)
    for step in steps:
        if is_member(fields[step]):
            yield (*prefix, step)
    for step in steps:
        if fields[step]:
            yield from _paths((*prefix, step), fields[step])


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    """Return whether a path is in a set."""
    found: FieldSet | None = fields
    for step in path:
        found = found.get(step) if found else None
        if found is None:
            return False
    return found is not None and is_member(found)


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the union of two sets."""
    if not one or one is other:
        return other
    if not other:
        return one
    result = dict(one)
    for step, part in other.items():
        mine = result.get(step)
        if mine is None:
            result[step] = part
        elif mine is not part and mine != part:
            result[step] = _union_node(mine, part)
    return result


def _union_node(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one:
        one = {SELF: LEAF}
    elif not other:
        other = {SELF: LEAF}
    return union(one, other)


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return the intersection of two sets."""
    if one is other:
        return one
    result = {}
    for step, part in one.items():
        theirs = other.get(step)
        if theirs is not None and step != SELF:
            if part is theirs or part == theirs:
                result[step] = part
                continue
            found = node(intersection(part, theirs), is_member(part) and is_member(theirs))
            if found is not None:
                result[step] = found
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return C{one} without the members of C{other}; children of fields of C{other} stay."""
    result = one
    for step, theirs in other.items():
        part = one.get(step)
        if part is None or step == SELF:
            continue
        if part is theirs or part == theirs:
            found = None
        else:
            rest, was = difference(part, theirs), is_member(part)
            member = was and not is_member(theirs)
            if rest is part and member == was:
                continue
            found = node(below(rest), member)
        if result is one:
            result = dict(one)
        if found is None:
            del result[step]
        else:
            result[step] = found
    return result


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return C{one} without the members of C{other} and their children."""
    result = one
    for step, theirs in other.items():
        part = one.get(step)
        if part is None or step == SELF:
            continue
        found = None
        if not is_member(theirs):
            rest = recursive_difference(part, theirs)
            if rest is part:
                continue
            found = node(below(rest), is_member(part))
        if result is one:
            result = dict(one)
        if found is None:
            del result[step]
        else:
            result[step] = found
    return result


def leaves(fields: FieldSet) -> FieldSet:
    """Return the members without children."""
    return {step: leaves(part) if part else LEAF for step, part in fields.items() if step != SELF}


def ordered(fields: FieldSet) -> FieldSet:
    """Return the same set with its steps in the order in which the reference writes them."""
    if len(fields) < 2:
        return {step: ordered(part) if part else LEAF for step, part in fields.items()}
    steps = sorted(fields)
    if steps[-1][0] != "f":
        steps.sort(key=step_order)
    return {step: ordered(part) if (part := fields[step]) else LEAF for step in steps}


def decode(fields: JSONValue) -> FieldSet:
    """
    Return the set that a client's FieldsV1 stands for.

    @raise MalformedStep: The value is invalid.
    """
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise MalformedStep("not an object")
    found = _decode(fields)
    return LEAF if found is None else below(found)


def _decode(fields: JSONValue) -> FieldSet | None:
    """Return the children under a step; C{null} counts as none."""
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise MalformedStep("expect an object")
    member = False
    result: FieldSet = {}
    for step, part in fields.items():
        if step == SELF:
            member = True
            continue
        known = canonical(step)
        if known is None:
            continue
        found = _decode(part)
        if found is not None:
            result[known] = _union_node(result[known], found) if known in result else found
    return node(result, member or not result)
