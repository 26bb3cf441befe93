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
    InvalidPathElement,
    canonical_path_element,
    path_element_sort_key,
)

FieldSet = JSONObject

#: A field with nothing below it, and the empty set.
LEAF: Final[FieldSet] = {}


def make_node(children: FieldSet, member: bool) -> FieldSet | None:
    """Return the children under a step, without C{"."}; L{None} if there are none."""
    if not children:
        return LEAF if member else None
    return {SELF: LEAF, **children} if member else children


def is_member(found: FieldSet) -> bool:
    """Return whether the field that C{found} stands under is itself in the set."""
    return not found or SELF in found


def without_self(found: FieldSet) -> FieldSet:
    """Return C{found} without the field itself."""
    return (
        {path_element: child for path_element, child in found.items() if path_element != SELF}
        if SELF in found
        else found
    )


def field_set_from_paths(paths: Iterable[Iterable[str]]) -> FieldSet:
    """Return the set of some paths of steps."""
    result: FieldSet = LEAF
    for path in paths:
        found = LEAF
        for path_element in reversed(tuple(path)):
            found = {path_element: found}
        result = union(result, found)
    return result


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Return all paths in a set, in the order of the reference: members of a level before their children."""
    return _paths((), fields)


def _paths(prefix: tuple[str, ...], fields: FieldSet) -> Iterator[tuple[str, ...]]:
    path_elements = sorted((path_element for path_element in fields if path_element != SELF), key=path_element_sort_key)
    for path_element in path_elements:
        if is_member(fields[path_element]):
            yield (*prefix, path_element)
    for path_element in path_elements:
        if fields[path_element]:
            yield from _paths((*prefix, path_element), fields[path_element])


def has(fields: FieldSet, path: Iterable[str]) -> bool:
    """Return whether a path is in a set."""
    found: FieldSet | None = fields
    for path_element in path:
        found = found.get(path_element) if found else None
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
    for path_element, child in other.items():
        existing = result.get(path_element)
        if existing is None:
            result[path_element] = child
        elif existing is not child and existing != child:
            result[path_element] = _union_node(existing, child)
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
    for path_element, child in one.items():
        other_node = other.get(path_element)
        if other_node is not None and path_element != SELF:
            if child is other_node or child == other_node:
                result[path_element] = child
                continue
            found = make_node(intersection(child, other_node), is_member(child) and is_member(other_node))
            if found is not None:
                result[path_element] = found
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return C{one} without the members of C{other}; children of fields of C{other} stay."""
    result = one
    for path_element, other_node in other.items():
        child = one.get(path_element)
        if child is None or path_element == SELF:
            continue
        if child is other_node or child == other_node:
            found = None
        else:
            remaining, was_member = difference(child, other_node), is_member(child)
            member = was_member and not is_member(other_node)
            if remaining is child and member == was_member:
                continue
            found = make_node(without_self(remaining), member)
        if result is one:
            result = dict(one)
        if found is None:
            del result[path_element]
        else:
            result[path_element] = found
    return result


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """Return C{one} without the members of C{other} and their children."""
    result = one
    for path_element, other_node in other.items():
        child = one.get(path_element)
        if child is None or path_element == SELF:
            continue
        found = None
        if not is_member(other_node):
            remaining = recursive_difference(child, other_node)
            if remaining is child:
                continue
            found = make_node(without_self(remaining), is_member(child))
        if result is one:
            result = dict(one)
        if found is None:
            del result[path_element]
        else:
            result[path_element] = found
    return result


def leaves(fields: FieldSet) -> FieldSet:
    """Return the members without children."""
    return {
        path_element: leaves(child) if child else LEAF for path_element, child in fields.items() if path_element != SELF
    }


def sort_field_set(fields: FieldSet) -> FieldSet:
    """Return the same set with its steps in the order in which the reference writes them."""
    if len(fields) < 2:
        return {path_element: sort_field_set(child) if child else LEAF for path_element, child in fields.items()}
    path_elements = sorted(fields)
    if path_elements[-1][0] != "f":
        path_elements.sort(key=path_element_sort_key)
    return {
        path_element: sort_field_set(child) if (child := fields[path_element]) else LEAF
        for path_element in path_elements
    }


def decode(fields: JSONValue) -> FieldSet:
    """
    Return the set that a client's FieldsV1 stands for.

    @raise InvalidPathElement: The value is invalid.
    """
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise InvalidPathElement("not an object")
    found = _decode(fields)
    return LEAF if found is None else without_self(found)


def _decode(fields: JSONValue) -> FieldSet | None:
    """Return the children under a step; C{null} counts as none."""
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise InvalidPathElement("expect an object")
    member = False
    result: FieldSet = {}
    for path_element, child in fields.items():
        if path_element == SELF:
            member = True
            continue
        canonical = canonical_path_element(path_element)
        if canonical is None:
            continue
        found = _decode(child)
        if found is not None:
            result[canonical] = _union_node(result[canonical], found) if canonical in result else found
    return make_node(result, member or not result)
