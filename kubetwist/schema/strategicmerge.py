"""
Strategic merge patches, which merge lists by the keys that the types define.

Semantics and messages equal apimachinery's C{pkg/util/strategicpatch}. Items are found by hash tables, so that the time
is proportional to the length of the lists.
"""

from __future__ import annotations

from typing import Any

from ..api.decoding import json_type
from ..api.go.sort import stable_sort
from ..api.go.text import (
    go_string,
    go_text,
    go_type,
)
from ..api.jsontypes import JSONObject, JSONValue
from .nodes import ListNode, MapNode, StructNode, TypeNode
from .objecttype import ObjectType

_DIRECTIVE = "$patch"
_DELETE, _REPLACE, _MERGE = "delete", "replace", "merge"
_RETAIN_KEYS = "$retainKeys"
_DELETE_FROM_LIST = "$deleteFromPrimitiveList"
_ELEMENT_ORDER = "$setElementOrder"


class StrategicMergeError(Exception):
    """
    A patch that cannot be applied.

    @ivar code: The HTTP status: 400 for malformed directives, 422 for lists of lists, otherwise 500 (without a reason),
        as in kube-apiserver.
    @ivar message: The message for the client.
    """

    def __init__(self, message: str, code: int = 500) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def strategic_merge(obj: JSONObject, patch: JSONValue, object_type: ObjectType) -> JSONObject:
    """
    Apply a patch.

    @param obj: The current object; not modified.
    @param patch: The decoded patch; not modified.
    @param object_type: The type of the object.
    @return: A value that shares parts with C{obj} and C{patch}, and must be decoded by L{ObjectType.decode}.
    @raise StrategicMergeError: The patch or a directive is invalid.
    """
    if patch is None:
        return obj
    if not isinstance(patch, dict):
        message = f"cannot unmarshal {json_type(patch)} into Go value of type map[string]interface {{}}"
        raise StrategicMergeError(f"json: {message}", 400)
    return _merge_maps(obj, patch, object_type.root)


def _missing_merge_key(item: JSONValue, merge_key: str) -> StrategicMergeError:
    return StrategicMergeError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")


def _bad_directive(directive: JSONValue, item: JSONValue) -> StrategicMergeError:
    return StrategicMergeError(f"unknown patch type: {go_string(directive)} in map: {go_text(item)}")


def _bad_argument(expected: str, value: JSONValue) -> StrategicMergeError:
    return StrategicMergeError(f"expected a {expected}, but received a {go_type(value)}")


def _merge_maps(original: JSONObject, patch: JSONObject, node: TypeNode) -> JSONObject:
    if _DIRECTIVE in patch:
        directive = patch[_DIRECTIVE]
        if directive == _REPLACE:
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        if directive == _DELETE:
            return {}
        raise _bad_directive(directive, patch)
    merged = {**original}
    if _RETAIN_KEYS in patch:
        patch = {**patch}
        _retain_keys(merged, patch)
    ordered = [key for key in patch if key.startswith(_ELEMENT_ORDER)]
    if ordered:
        patch = {**patch}
        for key in ordered:
            _merge_ordered(merged, patch, key, node)
    for key, value in patch.items():
        deletes = key.startswith(_DELETE_FROM_LIST)
        if deletes:
            key = _directed_field(key, _DELETE_FROM_LIST, "primitive list")
        if value is None:
            merged.pop(key, None)
            continue
        current = merged.get(key, _ABSENT)
        if current.__class__ is not value.__class__:
            if not deletes:
                _set_value(merged, key, _without_nulls(value))
        elif isinstance(value, dict):
            child, strategy, _ = _field(node, key)
            merged[key] = value if strategy == _REPLACE else _merge_maps(current, value, child)
        elif isinstance(value, list):
            child, strategy, merge_key = _list_field(node, key)
            merged[key] = _merge_field(current, value, child, strategy, merge_key, deletes)
        else:
            merged[key] = value
    return merged


_ABSENT: Any = object()
_DROPPED: Any = object()


def _set_value(merged: JSONObject, key: str, value: JSONValue) -> None:
    value = _without_directives(value)
    if value is _DROPPED:
        merged.pop(key, None)
    else:
        merged[key] = value


def _without_nulls(value: JSONValue) -> JSONValue:
    """Return a value for an absent field, without nulls that delete fields."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def _without_directives(value: JSONValue) -> JSONValue:
    """Return a value without directives, or L{_DROPPED} if the value is a directive."""
    if isinstance(value, dict):
        if _DIRECTIVE in value:
            return _DROPPED
        cleaned = {key: _without_directives(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item is not _DROPPED}
    if isinstance(value, list):
        return [item for item in map(_without_directives, value) if item is not _DROPPED]
    return value


def _retain_keys(merged: JSONObject, patch: JSONObject) -> None:
    """Apply and remove C{$retainKeys}: only the named fields remain, and the patch may set only these."""
    error = StrategicMergeError("invalid patch format of retainKeys", 400)
    retained = patch.pop(_RETAIN_KEYS)
    if not isinstance(retained, list):
        raise error
    names = {name for name in retained if isinstance(name, str)}
    for key, value in patch.items():
        if value is not None and key not in names and not key.startswith((_DELETE_FROM_LIST, _ELEMENT_ORDER)):
            raise error
    for key in merged.keys() - names:
        del merged[key]


def _directed_field(key: str, prefix: str, message: str) -> str:
    """Return the field of a directive: C{ports} of C{$setElementOrder/ports}."""
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        raise StrategicMergeError(f"invalid patch format of {message}", 400)
    return name


def _field(node: TypeNode, key: str) -> tuple[TypeNode, str, str]:
    """Return the type, the patch strategy and the merge key of a field."""
    if not isinstance(node, StructNode):
        # Go's types for arbitrary JSON are structs without JSON fields.
        kind = {ListNode: "slice", MapNode: "map"}.get(type(node))
        if kind is not None:
            raise StrategicMergeError(f"merging an object in json but data type is not struct, instead is: {kind}")
        field = None
    else:
        field = node.fields.get(key)
    if field is None:
        name = node.go_type.rpartition(".")[2]
        raise StrategicMergeError(f'unable to find api field in struct {name} for the json field "{key}"')
    return field.node, next(iter(field.strategies - {"retainKeys"}), ""), field.merge_key


def _list_field(node: TypeNode, key: str) -> tuple[TypeNode, str, str]:
    """Return the item type, the patch strategy and the merge key of a list field."""
    child, strategy, merge_key = _field(node, key)
    if not isinstance(child, ListNode):
        raise StrategicMergeError("expected slice or array type, but got: struct")
    return child.item, strategy, merge_key


def _merge_field(
    original: list[JSONValue], patch: list[JSONValue], node: TypeNode, strategy: str, merge_key: str, deletes: bool
) -> list[JSONValue]:
    if strategy != _MERGE and not deletes:
        return patch
    if not original and not patch:
        return original
    if _item_type(original, patch) is not dict:
        if deletes:
            deleted = set(patch)
            return [item for item in original if item not in deleted]
        merged = list(dict.fromkeys([*original, *patch]))
        return _sort_merged(merged, patch, original, "")
    if not merge_key:
        kind = {StructNode: "struct", MapNode: "map"}.get(type(node), "string")
        raise StrategicMergeError(f"cannot merge lists without merge key for {kind}")
    original, patch = _special_items(original, patch, merge_key)
    merged = _merge_items(original, patch, node, merge_key)
    return _sort_merged(merged, patch, original, merge_key)


def _item_type(*lists: list[JSONValue]) -> type:
    """
    Return the common type of all items.

    @raise StrategicMergeError: The types differ (500), there are no items (500), or the first is a list (422).
    """
    items = [item for items_ in lists for item in items_]
    if not items:
        raise StrategicMergeError("no elements in any of the given slices")
    if items[0].__class__ is list:
        raise StrategicMergeError("the server rejected our request due to an error in our request", 422)
    if len({*map(type, items)}) > 1:
        raise StrategicMergeError(f"list element types are not identical: {go_text(list(lists))}")
    return type(items[0])


def _identity(item: JSONValue, merge_key: str) -> JSONValue:
    """Return the identity of a list item, which distinguishes C{1}, C{1.0} and C{true} as Go does."""
    value = item[merge_key] if merge_key else item
    return (value.__class__, repr(value) if isinstance(value, (dict, list)) else value)


def _identities(items: list[JSONValue], merge_key: str) -> list[JSONValue]:
    if merge_key:
        for item in items:
            if not isinstance(item, dict):
                raise _bad_argument("map[string]interface {}", item)
            if merge_key not in item:
                raise _missing_merge_key(item, merge_key)
    return [_identity(item, merge_key) for item in items]


def _special_items(
    original: list[JSONValue], patch: list[JSONValue], merge_key: str
) -> tuple[list[JSONValue], list[JSONValue]]:
    """Apply the directives among the items; return the remaining items of both lists."""
    ordinary: list[JSONValue] = []
    deleted = set()
    replaces = False
    for item in patch:
        if _DIRECTIVE not in item:
            ordinary.append(item)
            continue
        directive = item[_DIRECTIVE]
        if directive == _DELETE:
            if merge_key not in item:
                raise _missing_merge_key(item, merge_key)
            deleted.add(_identity(item, merge_key))
        elif directive == _REPLACE:
            replaces = True
        elif directive == _MERGE:
            raise StrategicMergeError("merging lists cannot yet be specified in the patch")
        else:
            raise _bad_directive(directive, item)
    if replaces:
        return ordinary, []
    if deleted:
        original = [item for item in original if merge_key not in item or _identity(item, merge_key) not in deleted]
    return original, ordinary


def _merge_items(original: list[JSONValue], patch: list[JSONValue], node: TypeNode, merge_key: str) -> list[JSONValue]:
    """Merge each item of the patch into the first item with its key, or append it."""
    merged = original.copy()
    positions: dict[JSONValue, int] = {}
    for position, item in enumerate(original):
        if merge_key in item:
            positions.setdefault(_identity(item, merge_key), position)
    for item in patch:
        if merge_key not in item:
            raise _missing_merge_key(item, merge_key)
        position = positions.setdefault(_identity(item, merge_key), len(merged))
        if position < len(merged):
            merged[position] = _merge_maps(merged[position], item, node)
        else:
            merged.append(item)
    return merged


def _sort_merged(
    merged: list[JSONValue], order: list[JSONValue], live: list[JSONValue], merge_key: str
) -> list[JSONValue]:
    """
    Sort merged items: those in C{order} in that order, the rest as in C{live}.

    The rest comes as early as possible without preceding a live item that was before it. Items in neither list, which
    an empty order causes, are sorted by the comparison of C{normalizeSliceOrder}.

    @param merged: The items to sort.
    @param order: Items in the desired order.
    @param live: The items before the patch.
    @param merge_key: The merge key; empty for lists of scalars.
    """
    ranks: dict[JSONValue, int] = {}
    for rank, identity in enumerate(_identities(order, merge_key)):
        ranks.setdefault(identity, rank)
    positions: dict[JSONValue, int] = {}
    ordered: list[tuple[int, int, JSONValue]] = []
    unordered: list[tuple[int, int, JSONValue]] = []
    identities = _identities(merged, merge_key)
    for position, identity in enumerate(_identities(live, merge_key)):
        positions.setdefault(identity, position)
    for item, identity in zip(merged, identities, strict=True):
        position = positions.get(identity, -1)
        if identity in ranks:
            ordered.append((ranks[identity], position, item))
        else:
            unordered.append((position, position, item))
    ordered.sort(key=_rank)
    if all(position >= 0 for position, _, _ in unordered):
        unordered.sort(key=_rank)
    else:
        stable_sort(unordered, _precedes)
    result = []
    emitted = 0
    for _, position, item in ordered:
        while emitted < len(unordered) and 0 <= unordered[emitted][1] < position:
            result.append(unordered[emitted][2])
            emitted += 1
        result.append(item)
    result += [item for _, _, item in unordered[emitted:]]
    return result


def _rank(entry: tuple[int, int, JSONValue]) -> int:
    return entry[0]


def _precedes(one: tuple[int, int, JSONValue], other: tuple[int, int, JSONValue]) -> bool:
    """Compare as C{normalizeSliceOrder} does: an item without a rank is both before and after every item."""
    return one[0] < other[0] or one[0] < 0 or other[0] < 0


def _merge_ordered(merged: JSONObject, patch: JSONObject, directive: str, node: TypeNode) -> None:
    """Apply a C{$setElementOrder} directive together with its list, and remove both from the patch."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise _bad_argument("[]interface {}", order)
    key = _directed_field(directive, _ELEMENT_ORDER, "setElementOrder list")
    live, change = merged.get(key, _ABSENT), patch.get(key, _ABSENT)
    for value in (live, change):
        if value is not _ABSENT and not isinstance(value, list):
            raise _bad_argument("[]interface {}", value)
    child, strategy, merge_key = _list_field(node, key)
    if change is not _ABSENT:
        _check_order(change, order, merge_key)
    if change is _ABSENT:
        if live is _ABSENT:
            return
        result = live
    elif live is _ABSENT:
        result = _without_directives(change)
    else:
        result = _merge_field(live, change, child, strategy, merge_key, False)
    current = [] if live is _ABSENT else live
    if merge_key:
        _check_partition(result, order, merge_key)
    if _item_type(current, [] if change is _ABSENT else change) is dict and not merge_key:
        raise _missing_merge_key(order, merge_key)
    merged[key] = _sort_merged(result, order, current, merge_key)
    patch.pop(key, None)


def _check_partition(merged: list[JSONValue], order: list[JSONValue], merge_key: str) -> None:
    """
    Validate each item as C{partitionMapsByPresentInList} does.

    @raise StrategicMergeError: An item, or an item of the order that is compared with it, is not a map or has no key.
    """
    identities = _identities(merged, merge_key)
    for index, ordered in enumerate(order):
        if not isinstance(ordered, dict):
            current = {_identity(one, merge_key) for one in order[:index] if merge_key in one}
            if any(identity not in current for identity in identities):
                raise StrategicMergeError(f"value for key {index} is not a map")
            return


def _check_order(change: list[JSONValue], order: list[JSONValue], merge_key: str) -> None:
    """Check that all items that are not deleted are in the order list and in its order."""
    if not order or not change:
        return
    if merge_key:
        for item in change:
            if not isinstance(item, dict):
                raise _bad_argument("map[string]interface {}", item)
        checked = [item for item in change if _DIRECTIVE not in item]
    else:
        checked = change
    position = 0
    for identity in _identities(order, merge_key):
        if position == len(checked):
            return
        if merge_key and merge_key not in checked[position]:
            raise _missing_merge_key(checked[position], merge_key)
        if _identity(checked[position], merge_key) == identity:
            position += 1
    if position < len(checked):
        raise StrategicMergeError(
            f"The order in patch list:\n{go_text(change)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
        )
