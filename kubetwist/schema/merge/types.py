"""
Types as field ownership sees them: which values are owned whole, and which by their parts.

L{MergeType} says what can be done with values of a type; here are the types of scalars, of what is owned whole, of
structs and maps, and of what may be several of these. Lists are in L{kubetwist.schema.merge.lists}; all are made from
schemas by L{kubetwist.schema.merge.builder}.
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

#: The changes under a step as L{MergeType.compare} returns them: fields added or modified, and fields removed.
Changes = tuple[FieldSet | None, FieldSet | None]

#: A path and an error.
ValidationError = tuple[str, str]


class TypedError(ValueError):
    """A value is not of its type, in the words of the reference."""

    @classmethod
    def from_errors(cls, errors: list[ValidationError]) -> TypedError:
        """Return the error for C{problems}."""
        texts = [f"{path}: {message}" if path else message for path, message in errors]
        if len(texts) == 1:
            return cls(texts[0])
        return cls("\n".join(["errors:", *(f"  {text}" for text in texts)]))


class MergeType:
    """
    A type, and what ownership makes of its values.

    Methods change neither values nor sets; results share parts with what they were made from. They take values of
    the type, which L{check} makes sure of, or raise L{TypedError}.

    @ivar leaf: Whether values are owned whole.
    """

    __slots__ = ("_contains_untyped", "atomic")

    atomic: bool
    _contains_untyped: bool | None

    def element_types(self) -> Iterable[MergeType]:
        """Return the types of the parts of values."""
        return ()

    def is_untyped(self) -> bool:
        """
        Return whether values may contain any type, so that Python's C{==} may consider different values equal.

        Untyped scalars do not count: each is a text of some format, or a number or a text, but never also a boolean.
        """
        return False

    def contains_untyped(self) -> bool:
        """Return whether this type, or one of its parts, is untyped; computed once."""
        known = self.cached_contains_untyped()
        if known is None:
            seen: set[MergeType] = set()
            known = self._contains_untyped = _reaches_untyped(self, seen)
            if not known:
                for kind in seen:
                    kind._contains_untyped = False
        return known

    def cached_contains_untyped(self) -> bool | None:
        """Return the cached result of L{contains_untyped}, or L{None} if it was not computed yet."""
        return getattr(self, "_contains_untyped", None)

    def mark_typed(self) -> None:
        """Record that untyped values of this type are never compared."""
        self._contains_untyped = False

    def resolve(self, value: JSONValue) -> MergeType:
        """Return the type of just this value, where there is a choice."""
        return self

    def added_fields(self, value: JSONValue) -> FieldSet:
        """Return the fields under the step to C{value}, which was added."""
        return LEAF

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """Return the changes from C{old} to C{new}, which is not equal to it."""
        return LEAF, None

    def to_field_set(self, value: JSONValue) -> FieldSet:
        """Return the fields below C{value} that its applier owns."""
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
        Return whether L{check} accepts a value, whose lists may have items with the same key, without listing problems.
        """
        return not self.validate(value, True)

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """Return C{fields} with all struct fields that have children."""
        return fields

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """Return C{fields} adapted to the type, which may have become atomic since they were recorded."""
        return fields


def _reaches_untyped(root: MergeType, seen: set[MergeType]) -> bool:
    """Return whether an untyped type can be reached from C{root}; C{seen} collects the visited types."""
    pending = [root]
    while pending:
        kind = pending.pop()
        known = kind.cached_contains_untyped()
        if kind in seen or known is False:
            continue
        if known or kind.is_untyped():
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
    Values without parts.

    @ivar kind: C{numeric}, C{string}, C{boolean} or C{untyped}.
    """

    __slots__ = ("classes", "kind")

    def __init__(self, kind: str) -> None:
        self.atomic = True
        self.kind = kind
        #: Classes of its values.
        self.classes = _CLASSES[kind]

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        return value.__class__ in self.classes

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.check}."""
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
    A struct, a map, or something of both.

    L{define} makes it complete, so that types may contain themselves.

    @ivar fields: The types of the fields that it declares.
    @ivar element: The type of all other fields; L{None} when there are no others.
    """

    __slots__ = ("_leaf_element", "_path_elements", "_scalar_classes", "element", "fields")

    def __init__(self, atomic: bool) -> None:
        self.atomic = atomic
        self.define({}, None)

    def define(self, fields: Mapping[str, MergeType], element: MergeType | None) -> None:
        """Return the fields that it contains."""
        self.fields = fields
        self.element = element
        self._contains_untyped = None
        #: By name the step, and the type unless values are owned whole.
        self._path_elements = {name: (f"f:{name}", None if kind.atomic else kind) for name, kind in fields.items()}
        self._leaf_element = not fields and element is not None and element.atomic
        #: Classes of values by name, for fields that are scalars.
        self._scalar_classes = {name: kind.classes for name, kind in fields.items() if isinstance(kind, Scalar)}

    def as_atomic(self) -> MapType:
        """Return the same type, owned as a whole."""
        return AtomicMapType(self)

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return [*self.fields.values(), *(() if self.element is None else (self.element,))]

    def field(self, name: str) -> MergeType | None:
        """Return the type of a field."""
        return self.fields.get(name, self.element)

    def _path_element(self, name: str) -> tuple[str, MergeType | None]:
        """As in C{_steps}, for fields that are not declared."""
        element = self.element
        if element is None:
            raise TypedError(f".{name}: field not declared in schema")
        return f"f:{name}", None if element.atomic else element

    def added_fields(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added}."""
        if not value or self.atomic:
            return LEAF
        return {SELF: LEAF, **self._all_fields(value)}

    def _all_fields(self, value: JSONValue) -> FieldSet:
        """Return all fields below C{value}."""
        if value.__class__ is not dict:
            raise TypedError(f"expected map, got &{{{go_text(value)}}}")
        if self._leaf_element:
            return {f"f:{name}": LEAF for name in value}
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
        steps, old_get, contains_untyped = self._path_elements, old.get, self.contains_untyped()
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
            for name, item in old.items():
                if name not in new:
                    path_element, kind = steps.get(name) or self._path_element(name)
                    removed[path_element] = kind.added_fields(item) if kind is not None and item else LEAF
        return changed or None, removed or None

    def _differs_by_type(self, name: str, old: JSONValue, new: JSONValue) -> bool:
        """Return whether the values of a field differ although they are equal in Python."""
        kind = self.field(name)
        return kind is not None and kind.contains_untyped() and not same_value(old, new)

    def to_field_set(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.owned}."""
        if self.atomic or not value:
            return LEAF
        result = {}
        for name, item in value.items():
            path_element, kind = self._path_elements.get(name) or self._path_element(name)
            kind = kind and kind.resolve(item)
            if kind is None or kind.atomic:
                result[path_element] = LEAF
                continue
            # An empty list has no owner, unlike an empty map.
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
        result = dict(live)
        for name, item in applied.items():
            kind = self.field(name)
            if name not in live or kind is None or kind.atomic:
                result[name] = item
            else:
                result[name] = kind.merge(live[name], item)
        return result

    def remove_items(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.without}."""
        if self.atomic or not value or value.__class__ is not dict:
            return None
        result = {}
        for name, item in value.items():
            found = fields.get(f"f:{name}")
            if found is None:
                result[name] = item
            elif not is_member(found):
                kind = self.field(name)
                result[name] = item if kind is None else keep_empty_container(item, kind.remove_items(item, found))
        return result or None

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
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
        """See L{MergeType.check}."""
        if value is None:
            return []
        if value.__class__ is not dict:
            return [("", f"expected map, got &{{{go_text(value)}}}")]
        errors: list[ValidationError] = []
        for name, item in value.items():
            kind = self.field(name)
            if kind is None:
                errors.append((f".{name}", "field not declared in schema"))
                break
            errors += [(f".{name}{path}", message) for path, message in kind.validate(item, duplicates)]
        return errors

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.named}."""
        result = {}
        for path_element, part in fields.items():
            if part:
                name = path_element[2:]
                kind = self.field(name) if path_element[0] == "f" else None
                part = part if kind is None else kind.ensure_named_fields_are_members(part)
                if SELF not in part and path_element[0] == "f" and name in self.fields:
                    part = {SELF: LEAF, **part}
            result[path_element] = part
        return result

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconciled}."""
        if not fields:
            return fields
        if self.atomic:
            return LEAF
        result = fields
        for path_element, part in fields.items():
            kind = self.field(path_element[2:]) if part and path_element[0] == "f" else None
            if kind is not None and (reconciled := kind.reconcile_field_set(part)) is not part:
                if result is fields:
                    result = dict(fields)
                result[path_element] = reconciled
        return result


class AtomicMapType(MapType):
    """A struct that is owned whole in one place, and by its fields elsewhere."""

    __slots__ = ("_type",)

    def __init__(self, kind: MapType) -> None:
        super().__init__(True)
        self._type = kind

    def element_types(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return (self._type,)

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        return self._type.accepts(value)

    def field(self, name: str) -> MergeType | None:
        """See L{Record.field}."""
        return self._type.field(name)


class AtomType(MergeType):
    """
    Values of several types.

    @ivar scalar: The type of scalars.
    @ivar items: The type of lists.
    @ivar record: The type of maps.
    """

    __slots__ = ("items", "map_type", "scalar")

    def __init__(self, scalar: MergeType, items: MergeType, map_type: MapType) -> None:
        self.atomic = items.atomic and map_type.atomic
        self.scalar = scalar
        self.items = items
        self.map_type = map_type

    def is_untyped(self) -> bool:
        """See L{MergeType.untyped}."""
        return True

    def resolve(self, value: JSONValue) -> MergeType:
        """See L{MergeType.of}."""
        if value.__class__ is dict or value is None:
            return self.map_type
        return self.items if value.__class__ is list else self.scalar

    def _is_granular(self, value: JSONValue) -> bool:
        """Return whether a value is owned by its parts."""
        return bool(value) and not self.resolve(value).atomic

    def added_fields(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added}."""
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
        """See L{MergeType.owned}."""
        return self.resolve(value).to_field_set(value)

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{MergeType.merge}."""
        reconciled = self.resolve(applied)
        return reconciled.merge(live, applied) if self.resolve(live) is reconciled else applied

    def remove_items(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.without}."""
        return self.resolve(value).remove_items(value, fields)

    def accepts(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        return self.resolve(value).accepts(value)

    def validate(self, value: JSONValue, duplicates: bool) -> list[ValidationError]:
        """See L{MergeType.check}."""
        return self.resolve(value).validate(value, duplicates)

    def ensure_named_fields_are_members(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.named}."""
        return self.items.ensure_named_fields_are_members(self.map_type.ensure_named_fields_are_members(fields))

    def reconcile_field_set(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconciled}; what anything goes in was never owned otherwise."""
        return self.map_type.reconcile_field_set(fields) if self.map_type.fields else fields
