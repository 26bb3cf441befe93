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
    below,
    is_member,
    node,
    union,
)

#: The changes under a step as L{MergeType.compare} returns them: fields added or modified, and fields removed.
Changes = tuple[FieldSet | None, FieldSet | None]

#: A path and an error.
Problem = tuple[str, str]


class TypedError(ValueError):
    """A value is not of its type, in the words of the reference."""

    @classmethod
    def of(cls, problems: list[Problem]) -> TypedError:
        """Return the error for C{problems}."""
        texts = [f"{path}: {message}" if path else message for path, message in problems]
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

    __slots__ = ("_mixes", "leaf")

    leaf: bool
    _mixes: bool | None

    def parts(self) -> Iterable[MergeType]:
        """Return the types of the parts of values."""
        return ()

    def untyped(self) -> bool:
        """
        Return whether values may contain any type, so that Python's C{==} may consider different values equal.

        Untyped scalars do not count: each is a text of some format, or a number or a text, but never also a boolean.
        """
        return False

    def mixes(self) -> bool:
        """Return whether this type, or one of its parts, is untyped; computed once."""
        known = self.known_to_mix()
        if known is None:
            seen: set[MergeType] = set()
            known = self._mixes = _mixes_below(self, seen)
            if not known:
                for kind in seen:
                    kind._mixes = False
        return known

    def known_to_mix(self) -> bool | None:
        """Return the result of L{mixes}; L{None} if it is not known yet."""
        return getattr(self, "_mixes", None)

    def never_mixes(self) -> None:
        """Record that untyped values of this type are never compared."""
        self._mixes = False

    def of(self, value: JSONValue) -> MergeType:
        """Return the type of just this value, where there is a choice."""
        return self

    def added(self, value: JSONValue) -> FieldSet:
        """Return the fields under the step to C{value}, which was added."""
        return LEAF

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """Return the changes from C{old} to C{new}, which is not equal to it."""
        return LEAF, None

    def owned(self, value: JSONValue) -> FieldSet:
        """Return the fields below C{value} that its applier owns."""
        return LEAF

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """Merge C{applied} into C{live}."""
        return applied

    def without(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """
        Remove the fields, and the items of lists and maps, that are in C{fields}.

        @return: The remaining value; L{None} if nothing remains. A map or list within C{value} that loses all its
            content without being in C{fields} itself remains, empty (structured-merge-diff, C{typed/remove.go}).
        """
        return value

    def check(self, value: JSONValue, duplicates: bool) -> list[Problem]:
        """
        Validate a value and return the errors.

        @param duplicates: Whether items of a list may have the same key.
        """
        return []

    def fits(self, value: JSONValue) -> bool:
        """
        Return whether L{check} accepts a value, whose lists may have items with the same key, without listing problems.
        """
        return not self.check(value, True)

    def named(self, fields: FieldSet) -> FieldSet:
        """Return C{fields} with all struct fields that have children."""
        return fields

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """Return C{fields} adapted to the type, which may have become atomic since they were recorded."""
        return fields


def _mixes_below(root: MergeType, seen: set[MergeType]) -> bool:
    """Return whether an untyped type can be reached from C{root}; C{seen} collects the visited types."""
    left = [root]
    while left:
        kind = left.pop()
        known = kind.known_to_mix()
        if kind in seen or known is False:
            continue
        if known or kind.untyped():
            return True
        seen.add(kind)
        left += kind.parts()
    return False


def emptied(value: JSONValue, rest: JSONValue) -> JSONValue:
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
        self.leaf = True
        self.kind = kind
        #: Classes of its values.
        self.classes = _CLASSES[kind]

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        return value.__class__ in self.classes

    def check(self, value: JSONValue, duplicates: bool) -> list[Problem]:
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


class Record(MergeType):
    """
    A struct, a map, or something of both.

    L{define} makes it complete, so that types may contain themselves.

    @ivar fields: The types of the fields that it declares.
    @ivar element: The type of all other fields; L{None} when there are no others.
    """

    __slots__ = ("_leaf_element", "_scalars", "_steps", "element", "fields")

    def __init__(self, atomic: bool) -> None:
        self.leaf = atomic
        self.define({}, None)

    def define(self, fields: Mapping[str, MergeType], element: MergeType | None) -> None:
        """Return the fields that it contains."""
        self.fields = fields
        self.element = element
        self._mixes = None
        #: By name the step, and the type unless values are owned whole.
        self._steps = {name: (f"f:{name}", None if kind.leaf else kind) for name, kind in fields.items()}
        self._leaf_element = not fields and element is not None and element.leaf
        #: Classes of values by name, for fields that are scalars.
        self._scalars = {name: kind.classes for name, kind in fields.items() if isinstance(kind, Scalar)}

    def atomic(self) -> Record:
        """Return the same type, owned as a whole."""
        return AtomicRecord(self)

    def parts(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return [*self.fields.values(), *(() if self.element is None else (self.element,))]

    def field(self, name: str) -> MergeType | None:
        """Return the type of a field."""
        return self.fields.get(name, self.element)

    def _step(self, name: str) -> tuple[str, MergeType | None]:
        """As in C{_steps}, for fields that are not declared."""
        element = self.element
        if element is None:
            raise TypedError(f".{name}: field not declared in schema")
        return f"f:{name}", None if element.leaf else element

    def added(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added}."""
        if not value or self.leaf:
            return LEAF
        return {SELF: LEAF, **self._all(value)}

    def _all(self, value: JSONValue) -> FieldSet:
        """Return all fields below C{value}."""
        if value.__class__ is not dict:
            raise TypedError(f"expected map, got &{{{go_text(value)}}}")
        if self._leaf_element:
            return {f"f:{name}": LEAF for name in value}
        steps = self._steps
        result = {}
        for name, item in value.items():
            step, kind = steps.get(name) or self._step(name)
            result[step] = LEAF if kind is None or not item else kind.added(item)
        return result

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{MergeType.compare}."""
        if self.leaf or not (old or new):
            return LEAF, None
        if not old:
            return self._all(new), None
        if not new:
            return None, self._all(old)
        if old.__class__ is not dict or new.__class__ is not dict:
            raise TypedError(f"expected map, got &{{{go_text(old if new.__class__ is dict else new)}}}")
        steps, before, mixes = self._steps, old.get, self.mixes()
        changed: FieldSet = {}
        removed: FieldSet = {}
        for name, item in new.items():
            was = before(name, self)
            if was is item or (was == item and not (mixes and self._retyped(name, was, item))):
                continue
            step, kind = steps.get(name) or self._step(name)
            if kind is None:
                changed[step] = LEAF
            elif was is self:
                changed[step] = kind.added(item) if item else LEAF
            else:
                here, gone = kind.compare(was, item)
                if here is not None:
                    changed[step] = here
                if gone is not None:
                    removed[step] = gone
        if not old.keys() <= new.keys():
            for name, item in old.items():
                if name not in new:
                    step, kind = steps.get(name) or self._step(name)
                    removed[step] = kind.added(item) if kind is not None and item else LEAF
        return changed or None, removed or None

    def _retyped(self, name: str, old: JSONValue, new: JSONValue) -> bool:
        """Return whether the values of a field differ although they are equal in Python."""
        kind = self.field(name)
        return kind is not None and kind.mixes() and not same_value(old, new)

    def owned(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.owned}."""
        if self.leaf or not value:
            return LEAF
        result = {}
        for name, item in value.items():
            step, kind = self._steps.get(name) or self._step(name)
            kind = kind and kind.of(item)
            if kind is None or kind.leaf:
                result[step] = LEAF
                continue
            # An empty list has no owner, unlike an empty map.
            member = item is None or (not item and item.__class__ is dict) or name not in self.fields
            stands = node(kind.owned(item) if item else LEAF, member)
            if stands is not None:
                result[step] = stands
        return result

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{MergeType.merge}."""
        if self.leaf or not live:
            return applied
        if not applied:
            return live
        result = dict(live)
        for name, item in applied.items():
            kind = self.field(name)
            if name not in live or kind is None or kind.leaf:
                result[name] = item
            else:
                result[name] = kind.merge(live[name], item)
        return result

    def without(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.without}."""
        if self.leaf or not value or value.__class__ is not dict:
            return None
        result = {}
        for name, item in value.items():
            found = fields.get(f"f:{name}")
            if found is None:
                result[name] = item
            elif not is_member(found):
                kind = self.field(name)
                result[name] = item if kind is None else emptied(item, kind.without(item, found))
        return result or None

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        if value.__class__ is not dict:
            return value is None
        fields, element, scalars = self.fields, self.element, self._scalars
        for name, item in value.items():
            classes = scalars.get(name)
            if classes is not None:
                if item.__class__ not in classes:
                    return False
                continue
            kind = fields.get(name, element)
            if kind is None or not kind.fits(item):
                return False
        return True

    def check(self, value: JSONValue, duplicates: bool) -> list[Problem]:
        """See L{MergeType.check}."""
        if value is None:
            return []
        if value.__class__ is not dict:
            return [("", f"expected map, got &{{{go_text(value)}}}")]
        problems: list[Problem] = []
        for name, item in value.items():
            kind = self.field(name)
            if kind is None:
                problems.append((f".{name}", "field not declared in schema"))
                break
            problems += [(f".{name}{path}", message) for path, message in kind.check(item, duplicates)]
        return problems

    def named(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.named}."""
        result = {}
        for step, part in fields.items():
            if part:
                name = step[2:]
                kind = self.field(name) if step[0] == "f" else None
                part = part if kind is None else kind.named(part)
                if SELF not in part and step[0] == "f" and name in self.fields:
                    part = {SELF: LEAF, **part}
            result[step] = part
        return result

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconciled}."""
        if not fields:
            return fields
        if self.leaf:
            return LEAF
        result = fields
        for step, part in fields.items():
            kind = self.field(step[2:]) if part and step[0] == "f" else None
            if kind is not None and (now := kind.reconciled(part)) is not part:
                if result is fields:
                    result = dict(fields)
                result[step] = now
        return result


class AtomicRecord(Record):
    """A struct that is owned whole in one place, and by its fields elsewhere."""

    __slots__ = ("_type",)

    def __init__(self, kind: Record) -> None:
        super().__init__(True)
        self._type = kind

    def parts(self) -> Iterable[MergeType]:
        """See L{MergeType.parts}."""
        return (self._type,)

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        return self._type.fits(value)

    def field(self, name: str) -> MergeType | None:
        """See L{Record.field}."""
        return self._type.field(name)


class AnyOf(MergeType):
    """
    Values of several types.

    @ivar scalar: The type of scalars.
    @ivar items: The type of lists.
    @ivar record: The type of maps.
    """

    __slots__ = ("items", "record", "scalar")

    def __init__(self, scalar: MergeType, items: MergeType, record: Record) -> None:
        self.leaf = items.leaf and record.leaf
        self.scalar = scalar
        self.items = items
        self.record = record

    def untyped(self) -> bool:
        """See L{MergeType.untyped}."""
        return True

    def of(self, value: JSONValue) -> MergeType:
        """See L{MergeType.of}."""
        if value.__class__ is dict or value is None:
            return self.record
        return self.items if value.__class__ is list else self.scalar

    def _divides(self, value: JSONValue) -> bool:
        """Return whether a value is owned by its parts."""
        return bool(value) and not self.of(value).leaf

    def added(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.added}."""
        return self.of(value).added(value)

    def compare(self, old: JSONValue, new: JSONValue) -> Changes:
        """See L{MergeType.compare}."""
        was, now = self.of(old), self.of(new)
        if was is now:
            return was.compare(old, new)
        removed = below(was.added(old)) if self._divides(old) else None
        added = below(now.added(new)) if self._divides(new) else None
        if removed is None or added is None:
            added = union(added, {SELF: LEAF}) if added else LEAF
        return added, removed

    def owned(self, value: JSONValue) -> FieldSet:
        """See L{MergeType.owned}."""
        return self.of(value).owned(value)

    def merge(self, live: JSONValue, applied: JSONValue) -> JSONValue:
        """See L{MergeType.merge}."""
        now = self.of(applied)
        return now.merge(live, applied) if self.of(live) is now else applied

    def without(self, value: JSONValue, fields: FieldSet) -> JSONValue:
        """See L{MergeType.without}."""
        return self.of(value).without(value, fields)

    def fits(self, value: JSONValue) -> bool:
        """See L{MergeType.fits}."""
        return self.of(value).fits(value)

    def check(self, value: JSONValue, duplicates: bool) -> list[Problem]:
        """See L{MergeType.check}."""
        return self.of(value).check(value, duplicates)

    def named(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.named}."""
        return self.items.named(self.record.named(fields))

    def reconciled(self, fields: FieldSet) -> FieldSet:
        """See L{MergeType.reconciled}; what anything goes in was never owned otherwise."""
        return self.record.reconciled(fields) if self.record.fields else fields
