"""
Types as trees of nodes: each has a fast closure that reads values, and a slow walk that reports errors with paths.

The closures know no paths: nearly all objects are without fault. They raise L{Mismatch} or L{Unreadable}, and put the
names of unknown fields into a list. When that happened, L{Node.walk} goes through the value once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Final, NoReturn

from ..api.go.quote import quoted
from ..api.jsontypes import JSONObject, JSONValue
from ..api.repeatedkeys import entries, merged
from .gofields import (
    ALWAYS,
    NULLABLE,
    OMITTED,
    OMITZERO,
)
from .leaves import Coercion, Reader
from .mismatch import DecodeError, Mismatch, Unreadable, converter_message, json_message

#: How the reference treats unknown fields.
MOST_PROBLEMS = 100


class Trail:
    """
    The position of the walk.

    @ivar problems: A text for each unknown field, and each that was there before, found so far.
    """

    def __init__(self) -> None:
        self.path: list[str | int] = []
        self.problems: dict[str, None] = {}
        self._fields: list[str] = []
        self._structs: list[str] = []

    def enter(self, struct: str, names: Iterable[str]) -> tuple[int, int]:
        """Go into a field of a struct; L{leave} takes what is returned."""
        before = len(self._fields), len(self._structs)
        self._structs.append(struct)
        self._fields += names
        return before

    def leave(self, before: tuple[int, int]) -> None:
        """Return to the position where L{enter} was called."""
        del self._fields[before[0] :]
        del self._structs[before[1] :]

    def unknown(self, name: str) -> None:
        """Take note of a field that the struct here does not have."""
        self._note("unknown", name)

    def repeated(self, name: str) -> None:
        """Take note of a field that was there before."""
        self._note("duplicate", name)

    def _note(self, what: str, name: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems[f"{what} field {quoted(self._shown(name))}"] = None

    def fail(self, mismatch: Mismatch) -> NoReturn:
        """Return the error for a value that does not fit."""
        struct = self._structs[-1] if self._structs else ""
        message = json_message(mismatch, struct, ".".join(self._fields))
        raise DecodeError(message, converter_message(mismatch), tuple(self.path), mismatch.number)

    def refuse(self, error: Unreadable) -> NoReturn:
        """Return the error for a value that its own type cannot read."""
        raise DecodeError(str(error), error.converted, tuple(self.path))

    def _shown(self, name: str) -> str:
        shown = ""
        for step in [*self.path, name]:
            if isinstance(step, int):
                shown += f"[{step}]"
            else:
                shown += f".{step}" if shown else step
        return shown


class Node:
    """
    A type.

    @ivar go_type: The Go type as it is printed.
    @ivar read: Reads a value that is not C{null}.
    """

    __slots__ = ("go_type", "read")

    go_type: str
    read: Reader

    def zero(self) -> JSONValue:
        """Return the value that an absent field is shown with, if any."""
        return None

    def null(self) -> JSONValue:
        """Return the value that a C{null} in a list or map of this type is shown with."""
        return self.zero()

    def walk(self, value: JSONValue, trail: Trail) -> None:
        """
        Report unknown fields in C{value} and the first value that does not fit.

        @raise DecodeError: Something does not fit.
        """
        try:
            self.read(merged(value), [])
        except Mismatch as mismatch:
            trail.fail(mismatch)
        except Unreadable as error:
            trail.refuse(error)

    def compiled(self) -> Reader:
        """Return L{read}, compiled at first use."""
        return self.read

    def coerced(self, value: JSONValue) -> JSONValue:
        """Convert a value other than C{null} as apimachinery's converter of unstructured objects does."""
        return value


class Leaf(Node):
    """
    A type that is one JSON value.

    @ivar coerce: Converts numbers; L{None} if they are not converted.
    """

    __slots__ = ("_null", "_zero", "coerce")

    def __init__(
        self, read: Reader, go_type: str, zero: JSONValue, null: JSONValue = None, coerce: Coercion | None = None
    ) -> None:
        self.coerce = coerce
        self.read = read
        self.go_type = go_type
        self._zero = zero
        self._null = zero if null is None else null

    def zero(self) -> JSONValue:
        """Return the zero value."""
        return self._zero

    def null(self) -> JSONValue:
        """Return the zero value in most cases."""
        return self._null

    def coerced(self, value: JSONValue) -> JSONValue:
        """See L{Node.coerced}."""
        return value if self.coerce is None else self.coerce(value)


class ListNode(Node):
    """A list of one type."""

    __slots__ = ("item",)

    def __init__(self, item: Node, go_type: str) -> None:
        self.item = item
        self.go_type = go_type

    def compiled(self) -> Reader:
        """Make the closure for the type of the items."""
        if not hasattr(self, "read"):
            self.read = self._strings() if is_text(self.item) else self._items()
        return self.read

    def _strings(self) -> Reader:
        go_type, read_item = self.go_type, self.item.read
        only = {str}

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not list:
                raise Mismatch(value, go_type, "slice")
            if {*map(type, value)} <= only:
                return value.copy()
            return ["" if item is None else read_item(item, unknown) for item in value]

        return read

    def _items(self) -> Reader:
        go_type, read_item, null = self.go_type, self.item.compiled(), self.item.null

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not list:
                raise Mismatch(value, go_type, "slice")
            return [null() if item is None else read_item(item, unknown) for item in value]

        return read

    def coerced(self, value: JSONValue) -> JSONValue:
        """See L{Node.coerced}."""
        if not isinstance(value, list):
            return value
        return [None if item is None else self.item.coerced(item) for item in value]

    def walk(self, value: JSONValue, trail: Trail) -> None:
        """Walk through the items."""
        if not isinstance(value, list):
            trail.fail(Mismatch(value, self.go_type, "slice"))
        for index, item in enumerate(value):
            if item is not None:
                trail.path.append(index)
                self.item.walk(item, trail)
                trail.path.pop()


class MapNode(Node):
    """A map from strings to one type."""

    __slots__ = ("item",)

    def __init__(self, item: Node, go_type: str) -> None:
        self.item = item
        self.go_type = go_type

    def compiled(self) -> Reader:
        """Make the closure for the type of the values."""
        if not hasattr(self, "read"):
            self.read = self._strings() if is_text(self.item) else self._items()
        return self.read

    def _strings(self) -> Reader:
        go_type, read_item = self.go_type, self.item.read
        only = {str}

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not dict:
                raise Mismatch(value, go_type, "map")
            if {*map(type, value.values())} <= only:
                return value.copy()
            return {key: "" if item is None else read_item(item, unknown) for key, item in value.items()}

        return read

    def _items(self) -> Reader:
        go_type, read_item, null = self.go_type, self.item.compiled(), self.item.null

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not dict:
                raise Mismatch(value, go_type, "map")
            return {key: null() if item is None else read_item(item, unknown) for key, item in value.items()}

        return read

    def coerced(self, value: JSONValue) -> JSONValue:
        """See L{Node.coerced}."""
        if not isinstance(value, dict):
            return value
        return {key: None if item is None else self.item.coerced(item) for key, item in value.items()}

    def walk(self, value: JSONValue, trail: Trail) -> None:
        """Walk through the values."""
        if not isinstance(value, dict):
            trail.fail(Mismatch(value, self.go_type, "map"))
        for key, item, again in entries(value):
            if again:
                trail.repeated(key)
            if item is not None:
                trail.path.append(key)
                self.item.walk(item, trail)
                trail.path.pop()


def is_text(node: Node) -> bool:
    """Return whether values of the type are plain strings."""
    return isinstance(node, Leaf) and node.zero() == ""


class Field:
    """
    A field of a struct.

    @ivar embedded: The structs that it is embedded by.
    @ivar strategies: Its C{x-kubernetes-patch-strategy}, taken apart.
    @ivar merge_key: Its C{x-kubernetes-patch-merge-key}.
    """

    __slots__ = ("embedded", "merge_key", "name", "node", "presence", "strategies")

    def __init__(
        self,
        name: str,
        node: Node,
        presence: str,
        embedded: tuple[str, ...],
        strategies: frozenset[str],
        merge_key: str,
    ) -> None:
        self.name = name
        self.node = node
        self.presence = presence
        self.embedded = embedded
        self.strategies = strategies
        self.merge_key = merge_key


# The actions of a struct's closure on a field, besides reading it.
_KEEP, _DROP_EMPTY, _NULL_EMPTY = range(3)


#: Held while a struct's closure is built; other threads that need it wait.
_compiling: Final = RLock()


class StructNode(Node):
    """
    A struct.

    Its fields come from C{fields_of} at first use, so that types may contain themselves.
    """

    __slots__ = ("_fields", "_fields_of", "_making", "name")

    def __init__(self, definition: str, go_type: str, fields_of: Callable[[str], Mapping[str, Field]]) -> None:
        self.name = definition
        self.go_type = go_type
        self._fields_of = fields_of
        self._fields: Mapping[str, Field] | None = None
        self._making = False

    @property
    def fields(self) -> Mapping[str, Field]:
        """Return the fields by name."""
        if self._fields is None:
            self._fields = self._fields_of(self.name)
        return self._fields

    def zero(self) -> JSONValue:
        """Return the fields that are always present."""
        return {
            field.name: field.node.zero() if field.presence == ALWAYS else None
            for field in self.fields.values()
            if field.presence in (ALWAYS, NULLABLE)
        }

    def coerced(self, value: JSONValue) -> JSONValue:
        """See L{Node.coerced}."""
        if not isinstance(value, dict):
            return value
        fields = self.fields
        return {
            name: item if item is None or name not in fields else fields[name].node.coerced(item)
            for name, item in value.items()
        }

    def walk(self, value: JSONValue, trail: Trail) -> None:
        """Walk through the fields."""
        if not isinstance(value, dict):
            trail.fail(Mismatch(value, self.go_type, "struct"))
        struct = self.name.rpartition(".")[2]
        for name, item, again in entries(value):
            field = self.fields.get(name)
            if field is None:
                trail.unknown(name)
                continue
            if again:
                trail.repeated(name)
            if item is not None:
                before = trail.enter(struct, [*field.embedded, name])
                trail.path.append(name)
                field.node.walk(item, trail)
                trail.path.pop()
                trail.leave(before)

    def compiled(self) -> Reader:
        """Make the closure; where the type contains itself, one that looks it up later."""
        if hasattr(self, "read"):
            return self.read
        with _compiling:
            if hasattr(self, "read"):
                return self.read
            if self._making:
                return lambda value, unknown: self.compiled()(value, unknown)
            self._making = True
            self.read = self._reader()
            self._making = False
            return self.read

    def _reader(self) -> Reader:
        go_type = self.go_type
        # Strings, which most fields are, are read right here: those kept when empty and those not.
        kept, dropped = object(), object()
        plan: JSONObject = {}
        texts: dict[str, str] = {}
        constants: list[tuple[str, JSONValue]] = []
        makers: list[tuple[str, Callable[[], JSONValue]]] = []
        for name, field in self.fields.items():
            node, presence = field.node, field.presence
            omits = presence in (OMITTED, OMITZERO)
            if is_text(node):
                plan[name] = dropped if omits else kept
                texts[name] = node.go_type
            else:
                action = _DROP_EMPTY if omits else _KEEP
                if presence == ALWAYS and isinstance(node, (ListNode, MapNode)):
                    action = _NULL_EMPTY
                plan[name] = (action, node.compiled())
            if presence == NULLABLE:
                constants.append((name, None))
            elif presence == ALWAYS:
                if isinstance(node, StructNode):
                    makers.append((name, node.zero))
                else:
                    constants.append((name, node.zero()))
        look_up = plan.get
        always = frozenset(name for name, _ in [*constants, *makers])

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not dict:
                raise Mismatch(value, go_type, "struct")
            out: JSONObject = {}
            for name, item in value.items():
                known = look_up(name)
                if known is dropped:
                    if item.__class__ is str:
                        if item:
                            out[name] = item
                    elif item is not None:
                        raise Mismatch(item, texts[name], "string")
                elif known is kept:
                    if item.__class__ is str:
                        out[name] = item
                    elif item is not None:
                        raise Mismatch(item, texts[name], "string")
                elif known is None:
                    unknown.append(name)
                elif item is not None:
                    action, read_item = known
                    result = read_item(item, unknown)
                    if result or not action:
                        out[name] = result
                    elif action == _NULL_EMPTY:
                        out[name] = None
            if not always <= out.keys():
                for name, constant in constants:
                    if name not in out:
                        out[name] = constant
                for name, make in makers:
                    if name not in out:
                        out[name] = make()
            return out

        return read
