"""
Types of structured-merge-diff: scalars, structs, maps and untyped values.

L{MergeType} is the interface of all types. Lists are in L{kubetwist.schema.merge.lists}.
L{kubetwist.schema.merge.builder} builds types from schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ...api.go.text import (
    go_syntax,
    go_text,
    go_type,
)
from ...api.jsonequality import same_value
from ...api.jsontypes import JSONValue
from .fieldpath import SELF
from .fieldset import (
    LEAF,
    FieldSet,
    is_member,
    make_node,
    union,
    without_self,
)

#: Changes below a path element: fields added or modified, and fields removed; L{None} if there are none.
Changes = tuple[FieldSet | None, FieldSet | None]

#: A path and an error message.
ValidationError = tuple[str, str]


#: Maximum number and length of the names whose path elements are kept.
_MAX_KEPT: Final = 4096
_MAX_KEPT_LENGTH: Final = 64


class _PathElements(dict[str, str]):
    """The path elements of names, which objects share: C{"f:data"} of C{"data"}."""

    def __missing__(self, name: str) -> str:
        path_element = f"f:{name}"
        if len(name) <= _MAX_KEPT_LENGTH:
            if len(self) >= _MAX_KEPT:
                self.clear()
            self[name] = path_element
        return path_element


_path_element_of: Final = _PathElements().__getitem__


class TypedError(ValueError):
    """A value does not have its type; the messages equal structured-merge-diff's."""

    @classmethod
    def from_errors(cls, errors: list[ValidationError]) -> TypedError:
        """Return the exception for C{errors}."""
        texts = [f"{path}: {message}" if path else message for path, message in errors]
        if len(texts) == 1:
            return cls(texts[0])
        return cls("\n".join(["errors:", *(f"  {text}" for text in texts)]))


class MergeType:
    """
    A type of values with owned fields.

    Methods modify neither values nor sets, and results share parts with the arguments. Values must be valid, as checked
    by L{validate}; otherwise methods may raise L{TypedError}.

    @ivar atomic: Whether values are owned as a whole.
    """

    __slots__ = ("_contains_untyped", "atomic")

    atomic: bool
    _contains_untyped: bool | None

    def element_types(self) -> Iterable[MergeType]:
        """Return the types of fields, elements or items."""
        return ()

    def is_untyped(self) -> bool:
        """
        Return whether values may have any type, so that different values may be equal in Python.

        Untyped scalars do not count: they are strings with a format, or numbers or strings, but never booleans.
        """
        return False

    def contains_untyped(self) -> bool:
        """Return whether this type or a nested type is untyped; the result is cached."""
        cached = self.cached_contains_untyped()
        if cached is None:
            seen: set[MergeType] = set()
            cached = self._contains_untyped = _reaches_untyped(self, seen)
            if not cached:
                for kind in seen:
                    kind._contains_untyped = False
        return cached

    def cached_contains_untyped(self) -> bool | None:
        """Return the cached result of L{contains_untyped}, or L{None} if it was not computed yet."""
        return getattr(self, "_contains_untyped", None)

    def mark_typed(self) -> None:
        """Record that untyped values of this type are never compared."""
        self._contains_untyped = False

    def resolve(self, value: JSONValue) -> MergeType:
        """Return the type of a value, for types with a choice."""
        return self

    def added_fields(self, value: JSONValue) -> FieldSet:
        """Return the set below the path element of an added value."""
        return LEAF

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """Return the changes between two different values."""
        return LEAF, None

    def to_field_set(self, value: JSONValue) -> FieldSet:
        """Return the fields of C{value} that its applier owns."""
        return LEAF

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """Merge C{applied} into C{live}."""
        return applied

    def remove_items(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """
        Remove the fields, and the items of lists and maps, that are in C{fields}.

        @return: The remaining value; L{None} if nothing remains. A map or list within C{value} that loses all its
            content without being in C{fields} itself remains, empty (structured-merge-diff, C{typed/remove.go}).
        """
        return value

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """
        Validate a value and return the errors.

        @param duplicates: Whether items of a list may have the same key.
        """
        return []

    def accepts(self, value: JSONValue) -> bool:
        """
        Return whether L{validate} with C{duplicates} finds no errors; faster, without error messages.
        """
        return not self.validate(value, True)

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """Return C{fields} with all struct fields that have children as members."""
        return fields

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """Return C{fields} adapted to the type, which may have become atomic after they were recorded."""
        return fields


def _reaches_untyped(root: MergeType, seen: set[MergeType]) -> bool:
    """Return whether an untyped type can be reached from C{root}; C{seen} collects the visited types."""
    pending = [root]
    while pending:
        kind = pending.pop()
        cached = kind.cached_contains_untyped()
        if kind in seen or cached is False:
            continue
        if cached or kind.is_untyped():
            return True
        seen.add(kind)
        pending += kind.element_types()
    return False


def keep_empty_container(value: JSONValue, rest: JSONValue) -> JSONValue:
    """Return C{rest}, or an empty container of the type of C{value} if C{rest} is L{None} and C{value} a container."""
    if rest is None and (value.__class__ is dict or value.__class__ is list):
        return value.__class__()
    return rest


_CLASSES: Final = {
    "string": frozenset((str, type(None))),
    "numeric": frozenset((int, float, type(None))),
    "boolean": frozenset((bool, type(None))),
    "untyped": frozenset((str, int, float, bool, type(None))),
}


class Scalar(MergeType):
    """
    A scalar type.

    @ivar kind: C{numeric}, C{string}, C{boolean} or C{untyped}.
    """

    __slots__ = ("classes", "kind")

    def __init__(self, kind: str) -> None:
        self.atomic = True
        self.kind = kind
        #: Python classes of valid values.
        self.classes = _CLASSES[kind]

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        return value.__class__ in self.classes

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.validate}."""
        if value is None:
            return []
        if self.kind == "string":
            if value.__class__ is not str:
                return [("", f"expected string, got &value.valueUnstructured{{Value:{go_syntax(value)}}}")]
        elif self.kind == "numeric":
            if value.__class__ is not int and value.__class__ is not float:
                return [("", f"expected numeric (int or float), got {go_type(value)}")]
        elif self.kind == "boolean":
            if value.__class__ is not bool:
                return [("", f"expected boolean, got &{{{go_text(value)}}}")]
        elif value.__class__ is dict or value.__class__ is list:
            return [("", f"expected any scalar, got &{{{go_text(value)}}}")]
        return []


class MapType(MergeType):
    """
    A struct, a map, or a struct with additional fields (C{schema.Map} in structured-merge-diff).

    L{define} completes the type, so that types can be recursive.

    @ivar fields: The types of declared fields.
    @ivar element: The type of all other fields; L{None} if other fields are not allowed.
    """

    __slots__ = ("_leaf_element", "_path_elements", "_scalar_classes", "element", "fields")

    def __init__(self, atomic: bool) -> None:
        self.atomic = atomic
        self.define({}, None)

    def define(self, fields: Mapping[str, MergeType], element: MergeType | None) -> None:
        """Set the types of the fields."""
        self.fields = fields
        self.element = element
        self._contains_untyped = None
        #: The path element and, unless values are atomic, the type of each field.
        self._path_elements = {name: (f"f:{name}", None if kind.atomic else kind) for name, kind in fields.items()}
        self._leaf_element = not fields and element is not None and element.atomic
        #: Python classes of valid values, for fields that are scalars.
        self._scalar_classes = {name: kind.classes for name, kind in fields.items() if isinstance(kind, Scalar)}

    def as_atomic(self) -> MapType:
        """Return the atomic variant of the type."""
        return AtomicMapType(self)

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.element_types}."""
        return [*self.fields.values(), *(() if self.element is None else (self.element,))]

    def field(self, name: str) -> MergeType | None:
        """Return the type of a field."""
        return self.fields.get(name, self.element)

    def _path_element(self, name: str) -> tuple[str, MergeType | None]:
        """Return the path element and the type of a field that is not declared, as in C{_path_elements}."""
        element = self.element
        if element is None:
            raise TypedError(f".{name}: field not declared in schema")
        return f"f:{name}", None if element.atomic else element

    def added_fields(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added_fields}."""
        if not value or self.atomic:
            return LEAF
        return {SELF: LEAF, **self._all_fields(value)}

    def _all_fields(self, value: JSONValue) -> FieldSet:
        """Return all fields below C{value}."""
        if value.__class__ is not dict:
            raise TypedError(f"expected map, got &{{{go_text(value)}}}")
        if self._leaf_element:
            return dict.fromkeys(map(_path_element_of, value), LEAF)
        steps = self._path_elements
        result = {}
        for name, item in value.items():
            path_element, kind = steps.get(name) or self._path_element(name)
            result[path_element] = LEAF if kind is None or not item else kind.added_fields(item)
        return result

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{MergeType.compare}."""
        if self.atomic or not (old or new):
            return LEAF, None
        if not old:
            return self._all_fields(new), None
        if not new:
            return None, self._all_fields(old)
        if old.__class__ is not dict or new.__class__ is not dict:
            raise TypedError(f"expected map, got &{{{go_text(old if new.__class__ is dict else new)}}}")
        steps, old_get, contains_untyped = self._path_elements, old.get, self._contains_untyped
        if contains_untyped is None:
            contains_untyped = self.contains_untyped()
        if self._leaf_element and not contains_untyped:
            # Maps of strings, without calls for their values.
            return (
                {f"f:{name}": LEAF for name, item in new.items() if name not in old or old[name] != item} or None,
                {f"f:{name}": LEAF for name in old if name not in new} or None,
            )
        changed: FieldSet = {}
        removed: FieldSet = {}
        for name, item in new.items():
            old_item = old_get(name, self)
            if old_item is item or (
                old_item == item and not (contains_untyped and self._differs_by_type(name, old_item, item))
            ):
                continue
            path_element, kind = steps.get(name) or self._path_element(name)
            if kind is None:
                changed[path_element] = LEAF
            elif old_item is self:
                changed[path_element] = kind.added_fields(item) if item else LEAF
            else:
                changed_fields, removed_fields = kind.compare(old_item, item)
                if changed_fields is not None:
                    changed[path_element] = changed_fields
                if removed_fields is not None:
                    removed[path_element] = removed_fields
        if not old.keys() <= new.keys():
            for name in old:
                if name not in new:
                    item, (path_element, kind) = old[name], steps.get(name) or self._path_element(name)
                    removed[path_element] = kind.added_fields(item) if kind is not None and item else LEAF
        return changed or None, removed or None

    def _differs_by_type(self, name: str, old: JSONValue, new: JSONValue) -> bool:
        """Return whether the values of a field differ although they are equal in Python."""
        kind = self.field(name)
        return kind is not None and kind.contains_untyped() and not same_value(old, new)

    def to_field_set(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.to_field_set}."""
        if self.atomic or not value:
            return LEAF
        result = {}
        for name, item in value.items():
            path_element, kind = self._path_elements.get(name) or self._path_element(name)
            kind = kind and kind.resolve(item)
            if kind is None or kind.atomic:
                result[path_element] = LEAF
                continue
            # Unlike an empty map, an empty list has no owner.
            member = item is None or (not item and item.__class__ is dict) or name not in self.fields
            stands = make_node(kind.to_field_set(item) if item else LEAF, member)
            if stands is not None:
                result[path_element] = stands
        return result

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{MergeType.merge}."""
        if self.atomic or not live:
            return applied
        if not applied:
            return live
        fields, element, live_get = self.fields, self.element, live.get
        result = None
        for name, item in applied.items():
            live_item = live_get(name, self)
            kind = fields.get(name, element)
            if live_item is not self and kind is not None and not kind.atomic:
                item = kind.merge(live_item, item)
            # Unchanged parts are shared, which need not be compared later. Other equal values may differ in their type.
            if item is live_item or (item.__class__ is str and item == live_item):
                continue
            if result is None:
                result = dict(live)
            result[name] = item
        return live if result is None else result

    def remove_items(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.remove_items}."""
        if self.atomic or not value or value.__class__ is not dict:
            return None
        result = {}
        for name, item in value.items():
            node = fields.get(f"f:{name}")
            if node is None:
                result[name] = item
            elif not is_member(node):
                kind = self.field(name)
                result[name] = item if kind is None else keep_empty_container(item, kind.remove_items(item, node))
        return result or None

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        if value.__class__ is not dict:
            return value is None
        fields, element, scalars = self.fields, self.element, self._scalar_classes
        for name, item in value.items():
            classes = scalars.get(name)
            if classes is not None:
                if item.__class__ not in classes:
                    return False
                continue
            kind = fields.get(name, element)
            if kind is None or not kind.accepts(item):
                return False
        return True

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.validate}."""
        if value is None:
            return []
        if value.__class__ is not dict:
            return [("", f"expected map, got &{{{go_text(value)}}}")]
        errors: list[ValidationError] = []
        scalars = self._scalar_classes
        for name, item in value.items():
            classes = scalars.get(name)
            if classes is not None and item.__class__ in classes:
                continue
            kind = self.field(name)
            if kind is None:
                errors.append((f".{name}", "field not declared in schema"))
                break
            found = kind.validate(item, duplicates)
            if found:
                errors += [(f".{name}{path}", message) for path, message in found]
        return errors

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.ensure_named_fields_are_members}."""
        result = {}
        for path_element, child in fields.items():
            if child:
                name = path_element[2:]
                kind = self.field(name) if path_element[0] == "f" else None
                child = child if kind is None else kind.ensure_named_fields_are_members(child)
                if SELF not in child and path_element[0] == "f" and name in self.fields:
                    child = {SELF: LEAF, **child}
            result[path_element] = child
        return result

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconcile_field_set}."""
        if not fields:
            return fields
        if self.atomic:
            return LEAF
        result = fields
        for path_element, child in fields.items():
            kind = self.field(path_element[2:]) if child and path_element[0] == "f" else None
            if kind is not None and (reconciled := kind.reconcile_field_set(child)) is not child:
                if result is fields:
                    result = dict(fields)
                result[path_element] = reconciled
        return result


class AtomicMapType(MapType):
    """A struct that is atomic at one field, but granular elsewhere."""

    __slots__ = ("_type",)

    def __init__(self, kind: MapType) -> None:
        super().__init__(True)
        self._type = kind

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.element_types}."""
        return (self._type,)

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        return self._type.accepts(value)

    def field(self, name: str) -> MergeType | None:
        """See L{Record.field}."""
        return self._type.field(name)


class AtomType(MergeType):
    """
    An untyped value: a scalar, list or map (C{schema.Atom} in structured-merge-diff).

    @ivar scalar: The type of scalars.
    @ivar items: The type of lists.
    @ivar map_type: The type of maps.
    """

    __slots__ = ("items", "map_type", "scalar")

    def __init__(self, scalar: MergeType, items: MergeType, map_type: MapType) -> None:
        self.atomic = items.atomic and map_type.atomic
        self.scalar = scalar
        self.items = items
        self.map_type = map_type

    def is_untyped(self) -> bool:
        """See L{MergeType.is_untyped}."""
        return True

    def resolve(self, value: JSONValue) -> MergeType:
        """See L{MergeType.resolve}."""
        if value.__class__ is dict or value is None:
            return self.map_type
        return self.items if value.__class__ is list else self.scalar

    def _is_granular(self, value: JSONValue) -> bool:
        """Return whether a value has separately owned fields or items."""
        return bool(value) and not self.resolve(value).atomic

    def added_fields(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added_fields}."""
        return self.resolve(value).added_fields(value)

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{MergeType.compare}."""
        old_item, reconciled = self.resolve(old), self.resolve(new)
        if old_item is reconciled:
            return old_item.compare(old, new)
        removed = without_self(old_item.added_fields(old)) if self._is_granular(old) else None
        added_fields = without_self(reconciled.added_fields(new)) if self._is_granular(new) else None
        if removed is None or added_fields is None:
            added_fields = union(added_fields, {SELF: LEAF}) if added_fields else LEAF
        return added_fields, removed

    def to_field_set(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.to_field_set}."""
        return self.resolve(value).to_field_set(value)

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{MergeType.merge}."""
        reconciled = self.resolve(applied)
        return reconciled.merge(live, applied) if self.resolve(live) is reconciled else applied

    def remove_items(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.remove_items}."""
        return self.resolve(value).remove_items(value, fields)

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.accepts}."""
        return self.resolve(value).accepts(value)

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.validate}."""
        return self.resolve(value).validate(value, duplicates)

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.ensure_named_fields_are_members}."""
        return self.items.ensure_named_fields_are_members(self.map_type.ensure_named_fields_are_members(fields))

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconcile_field_set}; sets of a type without declared fields need no change."""
        return self.map_type.reconcile_field_set(fields) if self.map_type.fields else fields
