"""
Trees of types that decode JSON values as Go's C{encoding/json} does.

Each type has a compiled reader without field paths. It raises L{UnmarshalTypeError} or L{UnmarshalerError} and appends
the names of unknown fields to a list. In both cases the slow pass, L{TypeNode.walk}, decodes the value again and builds
the messages with the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import RLock
from typing import Final, NoReturn

from ..api.go.quote import quoted
from ..api.jsontypes import JSONObject, JSONValue
from ..api.repeatedkeys import entries, merged
from .gofields import (
    NO_OMITEMPTY,
    OMITEMPTY,
    OMITZERO,
    POINTER_NO_OMITEMPTY,
)
from .leaves import Coercion, Reader
from .mismatch import DecodeError, UnmarshalerError, UnmarshalTypeError, converter_message, json_message

#: Maximum number of strict decoding errors; see sigs.k8s.io/json.
MAX_STRICT_ERRORS = 100


class DecodePath:
    """
    The position of the slow pass, and the strict decoding errors so far.

    @ivar elements: Field names, map keys and list indices of the current position.
    @ivar strict_errors: A message for each unknown or duplicate field, in order.
    """

    def __init__(self) -> None:
        self.elements: list[str | int] = []
        self.strict_errors: dict[str, None] = {}
        self._fields: list[str] = []
        self._structs: list[str] = []

    def enter(self, struct: str, names: Iterable[str]) -> tuple[int, int]:
        """Enter a field of a struct, and return the argument for L{leave}."""
        before = len(self._fields), len(self._structs)
        self._structs.append(struct)
        self._fields += names
        return before

    def leave(self, before: tuple[int, int]) -> None:
        """Return to the position before L{enter}."""
        del self._fields[before[0] :]
        del self._structs[before[1] :]

    def add_unknown_field(self, name: str) -> None:
        """Record an unknown field of the current struct."""
        self._add("unknown", name)

    def add_duplicate_field(self, name: str) -> None:
        """Record a duplicate field."""
        self._add("duplicate", name)

    def _add(self, error_kind: str, name: str) -> None:
        if len(self.strict_errors) < MAX_STRICT_ERRORS:
            self.strict_errors[f"{error_kind} field {quoted(self._format_field(name))}"] = None

    def raise_type_error(self, error: UnmarshalTypeError) -> NoReturn:
        """Raise L{DecodeError} for a value of the wrong type."""
        struct = self._structs[-1] if self._structs else ""
        message = json_message(error, struct, ".".join(self._fields))
        raise DecodeError(message, converter_message(error), tuple(self.elements), error.number)

    def raise_unmarshaler_error(self, error: UnmarshalerError) -> NoReturn:
        """Raise L{DecodeError} for a value that the unmarshaler of its type rejects."""
        raise DecodeError(str(error), error.converted, tuple(self.elements))

    def _format_field(self, name: str) -> str:
        text = ""
        for element in [*self.elements, name]:
            if isinstance(element, int):
                text += f"[{element}]"
            else:
                text += f".{element}" if text else element
        return text


class TypeNode:
    """
    A type.

    @ivar go_type: The Go type as shown in messages.
    @ivar read: Reads a value that is not C{null}.
    """

    __slots__ = ("go_type", "read")

    go_type: str
    read: Reader

    def zero(self) -> JSONValue:
        """Return the value that Go encodes for an absent field without C{omitempty}."""
        return None

    def null(self) -> JSONValue:
        """Return the value that Go encodes for a C{null} in a list or map of this type."""
        return self.zero()

    def walk(self, value: JSONValue, path: DecodePath) -> None:
        """
        Decode a value, and record unknown and duplicate fields in C{path}.

        @raise DecodeError: A value has the wrong type.
        """
        try:
            self.read(merged(value), [])
        except UnmarshalTypeError as error:
            path.raise_type_error(error)
        except UnmarshalerError as error:
            path.raise_unmarshaler_error(error)

    def compiled(self) -> Reader:
        """Return L{read}, which is compiled at first use."""
        return self.read

    def convert_numbers(self, value: JSONValue) -> JSONValue:
        """Convert a value other than C{null} as apimachinery's converter of unstructured objects does."""
        return value


class ScalarNode(TypeNode):
    """
    A type whose values are decoded by a single function.

    @ivar coerce: Converts numbers; L{None} if they are not converted.
    """

    __slots__ = ("_null", "_zero", "coerce")

    def __init__(
        self, read: Reader, go_type: str, zero: JSONValue, null: JSONValue = None, coerce: Coercion | None = None
    ) -> None:
        """
        @param read: Reads a value that is not C{null}.
        @param go_type: The Go type as shown in messages.
        @param zero: See L{TypeNode.zero}.
        @param null: See L{TypeNode.null}; L{None} stands for C{zero}.
        @param coerce: Converts numbers.
        """
        self.coerce = coerce
        self.read = read
        self.go_type = go_type
        self._zero = zero
        self._null = zero if null is None else null

    def zero(self) -> JSONValue:
        """Return the zero value."""
        return self._zero

    def null(self) -> JSONValue:
        """Return the value that Go encodes for a C{null} in a list or map."""
        return self._null

    def convert_numbers(self, value: JSONValue) -> JSONValue:
        """See L{TypeNode.convert_numbers}."""
        return value if self.coerce is None else self.coerce(value)


class ListNode(TypeNode):
    """A list of one type."""

    __slots__ = ("item",)

    def __init__(self, item: TypeNode, go_type: str) -> None:
        self.item = item
        self.go_type = go_type

    def compiled(self) -> Reader:
        """Return the reader, which is compiled at first use."""
        if not hasattr(self, "read"):
            self.read = self._strings() if is_string(self.item) else self._items()
        return self.read

    def _strings(self) -> Reader:
        go_type, read_item = self.go_type, self.item.read
        only = {str}

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not list:
                raise UnmarshalTypeError(value, go_type, "slice")
            if {*map(type, value)} <= only:
                return value.copy()
            return ["" if item is None else read_item(item, unknown) for item in value]

        return read

    def _items(self) -> Reader:
        go_type, read_item, null = self.go_type, self.item.compiled(), self.item.null

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not list:
                raise UnmarshalTypeError(value, go_type, "slice")
            return [null() if item is None else read_item(item, unknown) for item in value]

        return read

    def convert_numbers(self, value: JSONValue) -> JSONValue:
        """See L{TypeNode.convert_numbers}."""
        if not isinstance(value, list):
            return value
        return [None if item is None else self.item.convert_numbers(item) for item in value]

    def walk(self, value: JSONValue, path: DecodePath) -> None:
        """See L{TypeNode.walk}."""
        if not isinstance(value, list):
            path.raise_type_error(UnmarshalTypeError(value, self.go_type, "slice"))
        for index, item in enumerate(value):
            if item is not None:
                path.elements.append(index)
                self.item.walk(item, path)
                path.elements.pop()


class MapNode(TypeNode):
    """A map from strings to one type."""

    __slots__ = ("item",)

    def __init__(self, item: TypeNode, go_type: str) -> None:
        self.item = item
        self.go_type = go_type

    def compiled(self) -> Reader:
        """Return the reader, which is compiled at first use."""
        if not hasattr(self, "read"):
            self.read = self._strings() if is_string(self.item) else self._items()
        return self.read

    def _strings(self) -> Reader:
        go_type, read_item = self.go_type, self.item.read
        only = {str}

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not dict:
                raise UnmarshalTypeError(value, go_type, "map")
            if {*map(type, value.values())} <= only:
                return value.copy()
            return {key: "" if item is None else read_item(item, unknown) for key, item in value.items()}

        return read

    def _items(self) -> Reader:
        go_type, read_item, null = self.go_type, self.item.compiled(), self.item.null

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not dict:
                raise UnmarshalTypeError(value, go_type, "map")
            return {key: null() if item is None else read_item(item, unknown) for key, item in value.items()}

        return read

    def convert_numbers(self, value: JSONValue) -> JSONValue:
        """See L{TypeNode.convert_numbers}."""
        if not isinstance(value, dict):
            return value
        return {key: None if item is None else self.item.convert_numbers(item) for key, item in value.items()}

    def walk(self, value: JSONValue, path: DecodePath) -> None:
        """See L{TypeNode.walk}."""
        if not isinstance(value, dict):
            path.raise_type_error(UnmarshalTypeError(value, self.go_type, "map"))
        for key, item, is_duplicate in entries(value):
            if is_duplicate:
                path.add_duplicate_field(key)
            if item is not None:
                path.elements.append(key)
                self.item.walk(item, path)
                path.elements.pop()


def is_string(node: TypeNode) -> bool:
    """Return whether values of the type are plain strings."""
    return isinstance(node, ScalarNode) and node.zero() == ""


class Field:
    """
    A field of a struct.

    @ivar embedded: The embedded structs that contain the field, outermost first.
    @ivar strategies: The values of C{x-kubernetes-patch-strategy}.
    @ivar merge_key: The value of C{x-kubernetes-patch-merge-key}.
    """

    __slots__ = ("embedded", "merge_key", "name", "node", "presence", "strategies")

    def __init__(
        self,
        name: str,
        node: TypeNode,
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


# What the reader of a struct does with the decoded value of a field.
_KEEP, _DROP_EMPTY, _NULL_EMPTY = range(3)


#: Held while the reader of a struct is compiled, for which other threads wait.
_compiling: Final = RLock()


class StructNode(TypeNode):
    """
    A struct.

    Its fields are created at first use, so that types can be recursive.
    """

    __slots__ = ("_fields", "_fields_of", "_is_compiling", "name")

    def __init__(self, definition: str, go_type: str, fields_of: Callable[[str], Mapping[str, Field]]) -> None:
        self.name = definition
        self.go_type = go_type
        self._fields_of = fields_of
        self._fields: Mapping[str, Field] | None = None
        self._is_compiling = False

    @property
    def fields(self) -> Mapping[str, Field]:
        """Return the fields by name."""
        if self._fields is None:
            self._fields = self._fields_of(self.name)
        return self._fields

    def zero(self) -> JSONValue:
        """Return the fields that are encoded even if they are absent."""
        return {
            field.name: field.node.zero() if field.presence == NO_OMITEMPTY else None
            for field in self.fields.values()
            if field.presence in (NO_OMITEMPTY, POINTER_NO_OMITEMPTY)
        }

    def convert_numbers(self, value: JSONValue) -> JSONValue:
        """See L{TypeNode.convert_numbers}."""
        if not isinstance(value, dict):
            return value
        fields = self.fields
        return {
            name: item if item is None or name not in fields else fields[name].node.convert_numbers(item)
            for name, item in value.items()
        }

    def walk(self, value: JSONValue, path: DecodePath) -> None:
        """See L{TypeNode.walk}."""
        if not isinstance(value, dict):
            path.raise_type_error(UnmarshalTypeError(value, self.go_type, "struct"))
        struct = self.name.rpartition(".")[2]
        for name, item, is_duplicate in entries(value):
            field = self.fields.get(name)
            if field is None:
                path.add_unknown_field(name)
                continue
            if is_duplicate:
                path.add_duplicate_field(name)
            if item is not None:
                before = path.enter(struct, [*field.embedded, name])
                path.elements.append(name)
                field.node.walk(item, path)
                path.elements.pop()
                path.leave(before)

    def compiled(self) -> Reader:
        """Return the reader, which is compiled at first use; recursive types get a reader that delegates to it."""
        if hasattr(self, "read"):
            return self.read
        with _compiling:
            if hasattr(self, "read"):
                return self.read
            if self._is_compiling:
                return lambda value, unknown: self.compiled()(value, unknown)
            self._is_compiling = True
            self.read = self._reader()
            self._is_compiling = False
            return self.read

    def _reader(self) -> Reader:
        go_type = self.go_type
        # Most fields are strings, which are decoded without a function call.
        plain_string, omitempty_string = object(), object()
        actions: JSONObject = {}
        string_types: dict[str, str] = {}
        zero_constants: list[tuple[str, JSONValue]] = []
        zero_factories: list[tuple[str, Callable[[], JSONValue]]] = []
        for name, field in self.fields.items():
            node, presence = field.node, field.presence
            omitempty = presence in (OMITEMPTY, OMITZERO)
            if is_string(node):
                actions[name] = omitempty_string if omitempty else plain_string
                string_types[name] = node.go_type
            else:
                action = _DROP_EMPTY if omitempty else _KEEP
                if presence == NO_OMITEMPTY and isinstance(node, (ListNode, MapNode)):
                    action = _NULL_EMPTY
                actions[name] = (action, node.compiled())
            if presence == POINTER_NO_OMITEMPTY:
                zero_constants.append((name, None))
            elif presence == NO_OMITEMPTY:
                if isinstance(node, StructNode):
                    zero_factories.append((name, node.zero))
                else:
                    zero_constants.append((name, node.zero()))
        find_action = actions.get
        always = frozenset(name for name, _ in [*zero_constants, *zero_factories])

        def read(value: JSONValue, unknown: list[str]) -> JSONValue:
            if value.__class__ is not dict:
                raise UnmarshalTypeError(value, go_type, "struct")
            out: JSONObject = {}
            for name, item in value.items():
                entry = find_action(name)
                if entry is omitempty_string:
                    if item.__class__ is str:
                        if item:
                            out[name] = item
                    elif item is not None:
                        raise UnmarshalTypeError(item, string_types[name], "string")
                elif entry is plain_string:
                    if item.__class__ is str:
                        out[name] = item
                    elif item is not None:
                        raise UnmarshalTypeError(item, string_types[name], "string")
                elif entry is None:
                    unknown.append(name)
                elif item is not None:
                    action, read_item = entry
                    result = read_item(item, unknown)
                    if result or not action:
                        out[name] = result
                    elif action == _NULL_EMPTY:
                        out[name] = None
            if not always <= out.keys():
                for name, constant in zero_constants:
                    if name not in out:
                        out[name] = constant
                for name, make in zero_factories:
                    if name not in out:
                        out[name] = make()
            return out

        return read
