"""
Sets of fields in the form of FieldsV1.

A set is a dictionary from path elements (L{kubetwist.schema.merge.fieldpath}) to nodes, which are dictionaries of the
same form. An empty node is a member of the set without children. In other nodes, the key C{"."} marks a member. So
C{{"f:data": {".": {}, "f:a": {}}}} contains C{data} and C{data.a}, and C{{"f:data": {"f:a": {}}}} only the latter. The
whole object is never a member: the empty dictionary is the empty set.

Sets are immutable, and results share parts with the arguments. All functions need canonical sets, which L{decode}
makes of sets from clients.
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

#: A member without children; also the empty set.
LEAF: Final[FieldSet] = {}


def make_node(children: FieldSet, member: bool) -> FieldSet | None:
    """Return the node of a path element with these children, or L{None} if it is neither a member nor has children."""
    if not children:
        return LEAF if member else None
    return {SELF: LEAF, **children} if member else children


def is_member(node: FieldSet) -> bool:
    """Return whether a node is a member."""
    return not node or SELF in node


def without_self(node: FieldSet) -> FieldSet:
    """Return a node as a set, without its membership mark."""
    return (
        {path_element: child for path_element, child in node.items() if path_element != SELF} if SELF in node else node
    )


def field_set_from_paths(paths: Iterable[Iterable[str]]) -> FieldSet:
    """Return the set with these paths of path elements."""
    result: FieldSet = LEAF
    for path in paths:
        node = LEAF
        for path_element in reversed(tuple(path)):
            node = {path_element: node}
        result = union(result, node)
    return result


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Yield all paths in a set in the order of structured-merge-diff: members of a level before their children."""
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
    node: FieldSet | None = fields
    for path_element in path:
        node = node.get(path_element) if node else None
        if node is None:
            return False
    return node is not None and is_member(node)


def contains(fields: FieldSet, members: FieldSet) -> bool:
    """Return whether all members of a set are in C{fields}."""
    for path_element, child in members.items():
        if path_element == SELF:
            # The node above was compared.
            continue
        node = fields.get(path_element)
        if node is None:
            return False
        if (
            child is not node
            and child != node
            and not ((is_member(node) or not is_member(child)) and contains(node, child))
        ):
            return False
    return True


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the union of two sets."""
    if not left or left is right:
        return right
    if not right:
        return left
    result = dict(left)
    for path_element, child in right.items():
        existing = result.get(path_element)
        if existing is None:
            result[path_element] = child
        elif existing is not child and existing != child:
            result[path_element] = _union_node(existing, child)
    return result


def _union_node(left: FieldSet, right: FieldSet) -> FieldSet:
    if not left:
        left = {SELF: LEAF}
    elif not right:
        right = {SELF: LEAF}
    return union(left, right)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the intersection of two sets."""
    if left is right:
        return left
    result = {}
    for path_element, child in left.items():
        other_node = right.get(path_element)
        if other_node is not None and path_element != SELF:
            if child is other_node or child == other_node:
                result[path_element] = child
                continue
            node = make_node(intersection(child, other_node), is_member(child) and is_member(other_node))
            if node is not None:
                result[path_element] = node
    return result


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return C{left} without the members of C{right}; children of these members remain."""
    result = left
    for path_element, other_node in right.items():
        child = left.get(path_element)
        if child is None or path_element == SELF:
            continue
        if child is other_node or child == other_node:
            node = None
        else:
            remaining, was_member = difference(child, other_node), is_member(child)
            member = was_member and not is_member(other_node)
            if remaining is child and member == was_member:
                continue
            node = make_node(without_self(remaining), member)
        if result is left:
            result = dict(left)
        if node is None:
            del result[path_element]
        else:
            result[path_element] = node
    return result


def recursive_difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return C{left} without the members of C{right} and their children."""
    result = left
    for path_element, other_node in right.items():
        child = left.get(path_element)
        if child is None or path_element == SELF:
            continue
        node = None
        if not is_member(other_node):
            remaining = recursive_difference(child, other_node)
            if remaining is child:
                continue
            node = make_node(without_self(remaining), is_member(child))
        if result is left:
            result = dict(left)
        if node is None:
            del result[path_element]
        else:
            result[path_element] = node
    return result


def leaves(fields: FieldSet) -> FieldSet:
    """Return the members without children."""
    return {
        path_element: leaves(child) if child else LEAF for path_element, child in fields.items() if path_element != SELF
    }


def sort_field_set(fields: FieldSet) -> FieldSet:
    """Return a set with its path elements in the order of structured-merge-diff; the same set if it has this order."""
    sent = list(fields)
    path_elements = sorted(sent)
    if path_elements and path_elements[-1][0] != "f":
        path_elements.sort(key=path_element_sort_key)
    if not any(fields.values()):
        # The fields of a map of strings, for example. Go's clients send maps in order.
        return fields if path_elements == sent else dict.fromkeys(path_elements, LEAF)
    result, same = {}, path_elements == sent
    for path_element in path_elements:
        child = ordered = fields[path_element]
        if child:
            ordered = sort_field_set(child)
            same = same and ordered is child
        result[path_element] = ordered
    return fields if same else result


def decode(fields: JSONValue) -> FieldSet:
    """
    Decode the FieldsV1 of a client.

    @raise InvalidPathElement: The value is invalid.
    """
    if fields is None:
        return LEAF
    if not isinstance(fields, dict):
        raise InvalidPathElement("not an object")
    node = _decode(fields)
    return LEAF if node is None else without_self(node)


def _decode(fields: JSONValue) -> FieldSet | None:
    """Decode a node; C{null} counts as an empty object."""
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
        node = _decode(child)
        if node is not None:
            result[canonical] = _union_node(result[canonical], node) if canonical in result else node
    return make_node(result, member or not result)
