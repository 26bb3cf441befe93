"""
List types of structured-merge-diff: atomic lists, sets of scalars, and maps of items with keys.

The latter two are associative: the path element of an item does not depend on its position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from ...api.go.text import go_text
from ...api.jsonequality import same_value
from ...api.jsontypes import JSONObject, JSONValue
from .fieldpath import (
    SELF,
    format_path_element,
    key_path_element,
    value_path_element,
)
from .fieldset import (
    LEAF,
    FieldSet,
    is_member,
)
from .types import (
    Changes,
    MergeType,
    TypedError,
    ValidationError,
    keep_empty_container,
)

#: Value of a key that is missing in an item and has no default.
ABSENT = object()
#: Maximum length of cached keys, which clients choose.
MAX_CACHED_KEY_LENGTH = 256


class AtomicList(MergeType):
    """
    A list that is owned as a whole.

    @ivar item: The type of its items.
    """

    __slots__ = ("item",)

    def __init__(self, item: MergeType | None = None) -> None:
        self.atomic = True
        self.item = item

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.element_types}."""
        return () if self.item is None else (self.item,)

    def is_untyped(self) -> bool:
        """See L{MergeType.is_untyped}."""
        return self.item is None

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        if value.__class__ is not list:
            return value is None
        item = self.item
        return item is None or all(map(item.accepts, value))

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.validate}."""
        if value is None:
            return []
        if value.__class__ is not list:
            return [("", f"expected list, got &{{{go_text(value)}}}")]
        item = self.item
        if item is None:
            return []
        errors = []
        for index, item_value in enumerate(value):
            errors += [(f"[{index}]{path}", message) for path, message in item.validate(item_value, duplicates)]
        return errors

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconcile_field_set}."""
        return LEAF


class AssociativeList(MergeType):
    """A list whose items are identified by their keys or values."""

    __slots__ = ()

    def path_element(self, item: JSONValue) -> str:
        """
        Return the path element of an item.

        @raise TypedError: The item has none.
        """
        raise NotImplementedError

    def item_added_fields(self, item: JSONValue) -> FieldSet:
        """Return the set below the path element of an added item."""
        return LEAF

    def compare_items(self, old: JSONValue, new: JSONValue) -> Changes:
        """Return the changes between two different items with the same path element."""
        return LEAF, None

    def item_field_set(self, item: JSONValue) -> FieldSet:
        """Return the fields of an item that its applier owns."""
        return LEAF

    def merge_item(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """Merge an applied item into a live one."""
        return applied

    def remove_from_item(self, item: JSONValue, fields: FieldSet) -> JSONValue:
        """Return an item without the fields in a set."""
        return item

    def validate_item(self, item: JSONValue, duplicates: bool) -> list[ValidationError]:
        """Validate an item and return the errors."""
        return []

    def _items(self, value: JSONValue) -> dict[str, list[JSONValue]]:
        """Return the items by path element."""
        if value.__class__ is not list:
            raise TypedError(f"expected list, got &{{{go_text(value)}}}")
        result: dict[str, list[JSONValue]] = {}
        path_element = self.path_element
        for index, item in enumerate(value):
            try:
                element_key = path_element(item)
            except TypedError as error:
                raise TypedError(f"element {index}: {error}") from None
            if element_key in result:
                result[element_key].append(item)
            else:
                result[element_key] = [item]
        return result

    def _all_fields(self, value: JSONValue) -> FieldSet:
        return {
            path_element: LEAF if len(items) > 1 else self.item_added_fields(items[0])
            for path_element, items in self._items(value).items()
        }

    def added_fields(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added_fields}."""
        return {SELF: LEAF, **self._all_fields(value)} if value else LEAF

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{MergeType.compare}."""
        if not old:
            return (self._all_fields(new), None) if new else (LEAF, None)
        if not new:
            return None, self._all_fields(old)
        old_get, after, contains_untyped = self._items(old), self._items(new), self.contains_untyped()
        changed: FieldSet = {}
        removed: FieldSet = {}
        for path_element, items in after.items():
            old_items = old_get.get(path_element)
            if old_items is None:
                changed[path_element] = LEAF if len(items) > 1 else self.item_added_fields(items[0])
            elif old_items != items or (contains_untyped and not same_value(old_items, items)):
                changed_fields, removed_fields = self._compare_repeated_items(old_items, items)
                if changed_fields is not None:
                    changed[path_element] = changed_fields
                if removed_fields is not None:
                    removed[path_element] = removed_fields
        for path_element, items in old_get.items():
            if path_element not in after:
                removed[path_element] = LEAF if len(items) > 1 else self.item_added_fields(items[0])
        return changed or None, removed or None

    def _compare_repeated_items(self, old: list[JSONValue], new: list[JSONValue]) -> Changes:
        """Return the changes of items with the same path element, which are owned together as a whole if repeated."""
        if len(old) == 1:
            return self.compare_items(old[0], new[0]) if len(new) == 1 else (LEAF, self.item_added_fields(old[0]))
        return (self.item_added_fields(new[0]), LEAF) if len(new) == 1 else (LEAF, None)

    def to_field_set(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.to_field_set}."""
        result = {}
        for path_element, items in self._items(value).items():
            fields_of_item = self.item_field_set(items[0]) if len(items) == 1 else LEAF
            result[path_element] = {SELF: LEAF, **fields_of_item} if fields_of_item else LEAF
        return result

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """
        See L{MergeType.merge}.

        Items of only one list keep their position relative to the shared items, which get the order of C{applied}.
        """
        if not live:
            return applied
        if not applied:
            return live
        applied_items = self._items(applied)
        live_items = self._items(live)
        steps = list(live_items) if len(live_items) == len(live) else [self.path_element(item) for item in live]
        applied_elements = list(applied_items)
        shared_elements = iter([path_element for path_element in applied_elements if path_element in live_items])
        next_shared = next(shared_elements, None)
        result: list[JSONValue] = []
        merged: set[str] = set()
        pending = applied_index = 0
        while pending < len(steps) or applied_index < len(applied_elements):
            if pending < len(steps):
                path_element = steps[pending]
                if applied_index < len(applied_elements):
                    if path_element == applied_elements[applied_index]:
                        merged.add(path_element)
                        result.append(self._merge_repeated(live_items[path_element], applied_items[path_element]))
                        pending += 1
                        applied_index += 1
                        next_shared = next(shared_elements, None)
                        continue
                    if path_element in applied_items and next_shared is not None and next_shared != path_element:
                        pending += 1
                        continue
                if path_element not in applied_items:
                    result.append(live[pending])
                    pending += 1
                    continue
                if path_element in merged:
                    pending += 1
            if applied_index < len(applied_elements):
                path_element = applied_elements[applied_index]
                merged.add(path_element)
                result.append(
                    self._merge_repeated(live_items[path_element], applied_items[path_element])
                    if path_element in live_items
                    else applied_items[path_element][0]
                )
                applied_index += 1
                if next_shared == path_element:
                    next_shared = next(shared_elements, None)
        return result

    def _merge_repeated(self, live: list[JSONValue], applied: list[JSONValue]) -> JSONValue:
        """Merge an applied item into the live one, or replace repeated live items."""
        return self.merge_item(live[0], applied[0]) if len(live) == 1 else applied[0]

    def remove_items(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.remove_items}."""
        if not value or value.__class__ is not list:
            return None
        result = []
        for item in value:
            fields_of_item = fields.get(self.path_element(item))
            if fields_of_item is None:
                result.append(item)
            elif not is_member(fields_of_item):
                result.append(keep_empty_container(item, self.remove_from_item(item, fields_of_item)))
        return result or None

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.validate}."""
        if value is None:
            return []
        if value.__class__ is not list:
            return [("", f"expected list, got &{{{go_text(value)}}}")]
        errors: list[ValidationError] = []
        seen = set()
        for index, item in enumerate(value):
            try:
                path_element = self.path_element(item)
            except TypedError as error:
                errors.append(("", f"element {index}: {error}"))
                break
            if path_element in seen and not duplicates:
                errors.append(("", f"duplicate entries for key {format_path_element(path_element)}"))
            seen.add(path_element)
            item_errors = self.validate_item(item, duplicates)
            if item_errors:
                errors += [(f"{format_path_element(path_element)}{path}", message) for path, message in item_errors]
        return errors


#: Python classes of values that cannot be items of a set.
_NOT_SET_MEMBERS = frozenset((dict, list, type(None)))


class SetList(AssociativeList):
    """
    A list of separately owned scalars (C{x-kubernetes-list-type: set}).

    @ivar item: The type of the items.
    """

    __slots__ = ("item",)

    def __init__(self, item: MergeType) -> None:
        self.atomic = False
        self.item = item

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.element_types}."""
        return (self.item,)

    def path_element(self, item: JSONValue) -> str:
        """See L{AssociativeList.path_element}."""
        if item.__class__ is dict:
            raise TypedError("associative list without keys has an element that's a map type")
        if item.__class__ is list:
            raise TypedError("not supported: associative list with lists as elements")
        if item is None:
            raise TypedError("associative list without keys has an element that's an explicit null")
        return value_path_element(item)

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        if value.__class__ is not list:
            return value is None
        classes = {item.__class__ for item in value}
        return classes.isdisjoint(_NOT_SET_MEMBERS) and all(map(self.item.accepts, value))

    def validate_item(self, item: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{AssociativeList.validate_item}."""
        return self.item.validate(item, duplicates)


class MapList(AssociativeList):
    """
    A list of structs that are identified by keys (C{x-kubernetes-list-type: map}).

    @ivar item: The type of the items.
    @ivar keys: The names of the key fields.
    """

    __slots__ = ("_defaults", "item", "keys")

    def __init__(self, item: MergeType, keys: Sequence[str]) -> None:
        self.atomic = False
        self.item = item
        self.keys = tuple(keys)
        self.define({})

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.element_types}."""
        return (self.item,)

    def define(self, defaults: JSONObject) -> None:
        """Set the default values of keys, for items without these keys."""
        self._defaults = tuple((name, defaults.get(name, ABSENT)) for name in sorted(self.keys))

    def path_element(self, item: JSONValue) -> str:
        """See L{AssociativeList.path_element}."""
        if item.__class__ is not dict:
            description = "a null element" if item is None else "non-map elements"
            raise TypedError(f"associative list with keys may not have {description}")
        parts: list[JSONValue] = []
        make: Callable[..., str] = _cached_path_element
        for name, default in self._defaults:
            value = item.get(name, default)
            if value is not ABSENT:
                parts += (name, value)
                if value.__class__ is str and len(value) > MAX_CACHED_KEY_LENGTH:
                    make = _path_element
        if not parts:
            names = " ".join(f'"{name}"' for name in self.keys)
            raise TypedError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        try:
            return make(*parts)
        except TypeError:
            # Keys that are lists or maps are not hashable.
            return _path_element(*parts)

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        if value.__class__ is not list:
            return value is None
        keys = () if any(default is not ABSENT for _, default in self._defaults) else self.keys
        for item in value:
            if item.__class__ is not dict or (keys and not any(key in item for key in keys)):
                return False
        return all(map(self.item.accepts, value))

    def item_added_fields(self, item: JSONValue) -> FieldSet:
        """See L{AssociativeList.item_added_fields}."""
        return self.item.added_fields(item)

    def compare_items(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{AssociativeList.compare_items}."""
        return self.item.compare(old, new)

    def item_field_set(self, item: JSONValue) -> FieldSet:
        """See L{AssociativeList.item_field_set}."""
        return self.item.to_field_set(item)

    def merge_item(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{AssociativeList.merge_item}."""
        return self.item.merge(live, applied)

    def remove_from_item(self, item: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{AssociativeList.remove_from_item}."""
        return self.item.remove_items(item, fields)

    def validate_item(self, item: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{AssociativeList.validate_item}."""
        return self.item.validate(item, duplicates)

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.ensure_named_fields_are_members}."""
        return {
            path_element: self.item.ensure_named_fields_are_members(child)
            if child and path_element[0] == "k"
            else child
            for path_element, child in fields.items()
        }

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconcile_field_set}."""
        result = fields
        for path_element, child in fields.items():
            if child and (reconciled := self.item.reconcile_field_set(child)) is not child:
                if result is fields:
                    result = dict(fields)
                result[path_element] = reconciled
        return result


def _path_element(*parts: JSONValue) -> str:
    return key_path_element(dict(zip(parts[::2], parts[1::2], strict=True)))


# The same keys occur repeatedly, even within one request. The size is sufficient for the longest lists. "typed"
# distinguishes values of different types that are equal in Python.
_cached_path_element = lru_cache(maxsize=1 << 15, typed=True)(_path_element)
