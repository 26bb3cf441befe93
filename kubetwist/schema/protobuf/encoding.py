"""
JSON values to messages of protobuf, byte by byte as the marshallers write them that Go generates.

Fields come in the order of their numbers. One that is not a pointer in Go is there whatever it holds, be it nothing;
one that is, only if it is set; lists and maps as often as there are items, those of maps in the order of their keys.
Which is which L{kubetwist.schema.gofields} knows. A type is compiled when the first message of it is written.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from struct import pack
from typing import Final, NamedTuple

import orjson

from ...api.jsontypes import JSONObject, JSONValue
from ..gofields import (
    NULLABLE,
    POINTER,
    json_kind,
    referred,
    shape,
)
from .fieldnumbers import field_numbers
from .messages import (
    MAX_MESSAGES,
    TOO_DEEP,
)
from .wire import (
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    put_counted,
    put_key,
    put_varint,
)

JSONObject = JSONObject

#: Messages nest a little less deep than may be read, as readers take times and the like for messages, too.
_DEEPEST: Final = MAX_MESSAGES - 4

#: Writes the content of a message, or a whole field with its key, from a value that is not L{None}; the number is how
#: deep messages nest there.
Write = Callable[[JSONValue, int], bytes]


class Form(NamedTuple):
    """
    The encoding of the values of a schema.

    @ivar wire_type: The wire type in their tags.
    @ivar content: Writes what follows the key, except the length that some begin with.
    @ivar zero: The bytes written for an absent value; L{None} if nothing is written.
    """

    wire_type: int
    content: Write
    zero: Callable[[], bytes] | None

    def field(self, number: int) -> Write:
        """Return a writer of a field."""
        key, content = put_key(number, self.wire_type), self.content
        if self.wire_type != LENGTH:
            return lambda value, depth: key + content(value, depth)

        def write(value: JSONValue, depth: int) -> bytes:
            data = content(value, depth)
            return b"%b%b%b" % (key, put_varint(len(data)), data)

        return write

    def nothing(self, number: int) -> bytes:
        """Return the bytes for an absent field."""
        if self.zero is None:
            return b""
        data = self.zero()
        size = put_varint(len(data)) if self.wire_type == LENGTH else b""
        return put_key(number, self.wire_type) + size + data


def _each(form: Form, number: int) -> Write:
    """Return a writer of a list."""
    write = form.field(number)
    # The zero value is determined at first use: types may contain lists of themselves.
    return lambda values, depth: b"".join(
        [form.nothing(number) if one is None else write(one, depth) for one in values]
    )


def _entries(form: Form, number: int) -> Write:
    """Return a writer of a map: messages with the key and the value."""
    key, write = put_key(number, LENGTH), form.field(2)

    def entries(value: JSONObject, depth: int) -> bytes:
        parts = []
        for name in sorted(value) if len(value) > 1 else value:
            item = value[name]
            entry = put_counted(1, name.encode()) + (form.nothing(2) if item is None else write(item, depth))
            parts.append(b"%b%b%b" % (key, put_varint(len(entry)), entry))
        return b"".join(parts)

    return entries


def _scalar(wire_type: int, content: Callable[[JSONValue], bytes], zero: bytes | None) -> Form:
    return Form(wire_type, lambda value, depth: content(value), None if zero is None else lambda: zero)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def _time(value: str) -> bytes:
    """Encode whole seconds."""
    return b"\x08%b\x10\0" % put_varint((datetime.fromisoformat(value) - _EPOCH) // _SECOND)


def _micro_time(value: str) -> bytes:
    moment = datetime.fromisoformat(value)
    return b"\x08%b\x10%b" % (put_varint((moment - _EPOCH) // _SECOND), put_varint(moment.microsecond * 1000))


def _quantity(value: JSONValue) -> bytes:
    return put_counted(1, str(value).encode())


def _int_or_string(value: JSONValue) -> bytes:
    if isinstance(value, str):
        return b"\x08\1\x10\0" + put_counted(3, value.encode())
    return b"\x08\0\x10%b\x1a\0" % put_varint(value)


def _raw_json(value: JSONValue) -> bytes:
    return put_counted(1, orjson.dumps(value))


_OCTETS: Final = _scalar(LENGTH, b64decode, None)
_SCALARS: Final[Mapping[str, Form]] = {
    "string": _scalar(LENGTH, str.encode, b""),
    "integer": _scalar(VARINT, put_varint, b"\0"),
    "boolean": _scalar(VARINT, put_varint, b"\0"),
    "number": _scalar(FIXED64, lambda value: pack("<d", value), bytes(8)),
}
_LEAVES: Final[Mapping[str, Form]] = {
    "Time": _scalar(LENGTH, _time, b""),
    "MicroTime": _scalar(LENGTH, _micro_time, b""),
    "Quantity": _scalar(LENGTH, _quantity, _quantity(0)),
    "IntOrString": _scalar(LENGTH, _int_or_string, _int_or_string(0)),
    "RawExtension": _scalar(LENGTH, _raw_json, b""),
    "FieldsV1": _scalar(LENGTH, _raw_json, b""),
    "JSON": _scalar(LENGTH, _raw_json, b""),
}


class MessageWriter:
    """
    A type.

    @ivar write: Writes the content of a message.
    """

    __slots__ = ("_fields", "write")

    write: Write

    def __init__(self, fields: Callable[[], Iterator[tuple[str, bytes, Write]]]) -> None:
        """
        @param fields: Gives for each field, in the order of their numbers, its name, what is written where it is not
            there, and what writes it; those without a name are written from the value itself.
        """
        self._fields = fields
        self.write = self._compile_and_write

    def zero(self) -> bytes:
        """Return the content of an empty message."""
        return self.write({}, 0)

    def content(self, value: JSONObject, depth: int) -> bytes:
        """Call L{write}, for callers that need it before the type is compiled."""
        return self.write(value, depth)

    def _compile_and_write(self, value: JSONObject, depth: int) -> bytes:
        self.write = self._writer()
        return self.write(value, depth)

    def _writer(self) -> Write:
        fields = list(self._fields())
        nothing = [absent for _, absent, _ in fields]
        look_up = {name: (at, write) for at, (name, _, write) in enumerate(fields) if name}.get
        inlined = [(at, write) for at, (name, _, write) in enumerate(fields) if not name]

        def write(value: JSONObject, depth: int) -> bytes:
            if depth > _DEEPEST:
                raise WireError(TOO_DEEP)
            parts = nothing.copy()
            for name, item in value.items():
                if item is not None:
                    found = look_up(name)
                    if found is not None:
                        at, write_field = found
                        parts[at] = write_field(item, depth + 1)
            for at, write_field in inlined:
                parts[at] = write_field(value, depth + 1)
            return b"".join(parts)

        return write


class MessageWriters:
    """The types of one release, each made once."""

    def __init__(self, look_up: Callable[[str], JSONObject]) -> None:
        """
        @param look_up: Gives the schema of a definition.
        """
        self._look_up = look_up
        self._messages: dict[str, MessageWriter] = {}

    def encode(self, definition: str, value: JSONObject) -> bytes:
        """
        Encode a value as a message, without fields unknown to the definition and without kind and apiVersion.

        @raise WireError: The value nests too deep, or does not have that type.
        """
        try:
            return self.message(definition).write(value, 0)
        except WireError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise WireError(f"{definition.rpartition('.')[2]} cannot be written as protobuf: {error}") from None

    def message(self, definition: str) -> MessageWriter:
        """Return the encoder for the messages of a definition that is a struct."""
        known = self._messages.get(definition)
        if known is None:
            known = self._messages[definition] = MessageWriter(lambda: self._fields(definition, definition))
        return known

    def _fields(self, numbers_of: str, definition: str) -> Iterator[tuple[str, bytes, Write]]:
        """
        Return the fields of a message.

        @param numbers_of: Where the numbers stand; another definition for a message whose fields are, in JSON, those of
            C{definition} itself.
        """
        schema = self._look_up(definition)
        properties, required = schema.get("properties", {}), frozenset(schema.get("required", ()))
        package, _, type_name = numbers_of.rpartition(".")
        group, version = package.split(".")[-2:]
        numbers = field_numbers(group, version, type_name)
        for name, number in sorted(numbers.items(), key=lambda one: one[1]):
            if name.startswith("*"):
                inner = MessageWriter(self._inlined(f"{package}.{name[1:]}", definition))
                form = Form(LENGTH, inner.content, inner.zero)
                yield "", b"", form.field(number)
            elif name in properties:
                part = properties[name]
                presence = shape(definition, name, part, name in required).presence
                yield (name, *self._field(part, number, presence in (POINTER, NULLABLE)))

    def _inlined(self, numbers_of: str, definition: str) -> Callable[[], Iterator[tuple[str, bytes, Write]]]:
        return lambda: self._fields(numbers_of, definition)

    def _field(self, schema: JSONObject, number: int, pointer: bool) -> tuple[bytes, Write]:
        """Return the bytes written for an absent field, and the encoder of its values."""
        kind = json_kind(schema)
        if kind == "array":
            return b"", _each(self._form(schema["items"]), number)
        if kind == "object":
            return b"", _entries(self._form(schema["additionalProperties"]), number)
        form = self._form(schema)
        return b"" if pointer else form.nothing(number), form.field(number)

    def _form(self, schema: JSONObject) -> Form:
        kind = json_kind(schema)
        if kind == "array":  # In a map, where protobuf has no lists: a message with one.
            return Form(LENGTH, _each(self._form(schema["items"]), 1), bytes)
        if kind == "$ref":
            definition = referred(schema)
            name = definition.rpartition(".")[2]
            if name in _LEAVES:
                return _LEAVES[name]
            if name in _SCHEMA_LEAVES:
                either, zero = _SCHEMA_LEAVES[name]
                schema_of = self.message(definition.partition("Or")[0])
                return Form(LENGTH, lambda value, depth: either(value, schema_of, depth), lambda: zero)
            message = self.message(definition)
            return Form(LENGTH, message.content, message.zero)
        if kind == "string" and schema.get("format") == "byte":
            return _OCTETS
        return _SCALARS[kind]


def _schema(number: int, message: MessageWriter, value: JSONObject, depth: int) -> bytes:
    return put_counted(number, message.write(value, depth + 1))


def _schema_or_list(value: JSONValue, message: MessageWriter, depth: int) -> bytes:
    if isinstance(value, dict):
        return _schema(1, message, value, depth)
    return b"".join([_schema(2, message, one or {}, depth) for one in value])


def _schema_or_bool(value: JSONValue, message: MessageWriter, depth: int) -> bytes:
    if isinstance(value, dict):
        return b"\x08\1" + _schema(2, message, value, depth)
    return b"\x08" + put_varint(value)


def _schema_or_texts(value: JSONValue, message: MessageWriter, depth: int) -> bytes:
    if isinstance(value, dict):
        return _schema(1, message, value, depth)
    return b"".join([put_counted(2, (one or "").encode()) for one in value])


#: The encoders, and the bytes written for absent values.
_SCHEMA_LEAVES: Final = {
    "JSONSchemaPropsOrArray": (_schema_or_list, b""),
    "JSONSchemaPropsOrBool": (_schema_or_bool, b"\x08\0"),
    "JSONSchemaPropsOrStringArray": (_schema_or_texts, b""),
}

#: The last bytes of every envelope: the content encoding and the media type, both empty.
ENVELOPE_END: Final = put_counted(3, b"") + put_counted(4, b"")


def envelope_start(api_version: str, kind: str, size: int) -> bytes:
    """
    Return the bytes before the message in an envelope.

    @param size: The length of the message.
    """
    said = put_counted(1, api_version.encode()) + put_counted(2, kind.encode())
    return b"k8s\0" + put_counted(1, said) + put_key(2, LENGTH) + put_varint(size)


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a message in an envelope with its kind, as in bodies and in etcd values."""
    return b"%b%b%b" % (envelope_start(api_version, kind, len(message)), message, ENVELOPE_END)
