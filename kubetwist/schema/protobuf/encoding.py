"""
Encoding of JSON values as protobuf messages, with the same bytes as Go's generated marshalers.

Fields are encoded in the order of their numbers. A field that is not a pointer in Go is always encoded, a pointer only
if it is set, lists and maps once per item, maps in the order of their keys. L{kubetwist.schema.gofields} defines which
fields are pointers. A type is compiled at its first use.
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
    POINTER_NO_OMITEMPTY,
    POINTER_OMITEMPTY,
    go_field,
    json_kind,
    referenced_definition,
)
from .fieldnumbers import field_numbers
from .messages import (
    MAX_DEPTH_EXCEEDED,
    MAX_MESSAGES,
)
from .wire import (
    FIXED64,
    LENGTH,
    VARINT,
    WireError,
    encode_length_delimited,
    encode_tag,
    encode_varint,
)

JSONObject = JSONObject

#: Maximum nesting depth; lower than for decoding, where times and similar types count as messages.
_MAX_DEPTH: Final = MAX_MESSAGES - 4

#: Encodes a value that is not L{None}, as the content of a message or as a field with its tag; the integer is the
#: nesting depth of messages.
EncodeFunction = Callable[[JSONValue, int], bytes]


class FieldEncoder(NamedTuple):
    """
    Encoder of the values of a schema.

    @ivar wire_type: The wire type.
    @ivar content: Encodes a value without tag and length.
    @ivar zero: Returns the content for an absent value; L{None} if an absent value is not encoded.
    """

    wire_type: int
    content: EncodeFunction
    zero: Callable[[], bytes] | None

    def field(self, number: int) -> EncodeFunction:
        """Return an encoder of a field with its tag."""
        key, content = encode_tag(number, self.wire_type), self.content
        if self.wire_type != LENGTH:
            return lambda value, depth: key + content(value, depth)

        def write(value: JSONValue, depth: int) -> bytes:
            data = content(value, depth)
            return b"%b%b%b" % (key, encode_varint(len(data)), data)

        return write

    def encode_absent(self, number: int) -> bytes:
        """Encode an absent field."""
        if self.zero is None:
            return b""
        data = self.zero()
        size = encode_varint(len(data)) if self.wire_type == LENGTH else b""
        return encode_tag(number, self.wire_type) + size + data


def _list_encoder(encoder: FieldEncoder, number: int) -> EncodeFunction:
    """Return an encoder of a list."""
    write = encoder.field(number)
    # The zero value is computed at first use, since types can be recursive.
    return lambda values, depth: b"".join(
        [encoder.encode_absent(number) if item is None else write(item, depth) for item in values]
    )


def _map_encoder(encoder: FieldEncoder, number: int) -> EncodeFunction:
    """Return an encoder of a map: one message with key and value per entry."""
    key, write = encode_tag(number, LENGTH), encoder.field(2)

    def entries(value: JSONObject, depth: int) -> bytes:
        parts = []
        for name in sorted(value) if len(value) > 1 else value:
            item = value[name]
            entry = encode_length_delimited(1, name.encode()) + (
                encoder.encode_absent(2) if item is None else write(item, depth)
            )
            parts.append(b"%b%b%b" % (key, encode_varint(len(entry)), entry))
        return b"".join(parts)

    return entries


def _scalar(wire_type: int, content: Callable[[JSONValue], bytes], zero: bytes | None) -> FieldEncoder:
    return FieldEncoder(wire_type, lambda value, depth: content(value), None if zero is None else lambda: zero)


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def _time(value: str) -> bytes:
    """Encode a time with a resolution of seconds."""
    return b"\x08%b\x10\0" % encode_varint((datetime.fromisoformat(value) - _EPOCH) // _SECOND)


def _micro_time(value: str) -> bytes:
    timestamp = datetime.fromisoformat(value)
    return b"\x08%b\x10%b" % (
        encode_varint((timestamp - _EPOCH) // _SECOND),
        encode_varint(timestamp.microsecond * 1000),
    )


def _quantity(value: JSONValue) -> bytes:
    return encode_length_delimited(1, str(value).encode())


def _int_or_string(value: JSONValue) -> bytes:
    if isinstance(value, str):
        return b"\x08\1\x10\0" + encode_length_delimited(3, value.encode())
    return b"\x08\0\x10%b\x1a\0" % encode_varint(value)


def _raw_json(value: JSONValue) -> bytes:
    return encode_length_delimited(1, orjson.dumps(value))


_BYTES: Final = _scalar(LENGTH, b64decode, None)
_SCALARS: Final[Mapping[str, FieldEncoder]] = {
    "string": _scalar(LENGTH, str.encode, b""),
    "integer": _scalar(VARINT, encode_varint, b"\0"),
    "boolean": _scalar(VARINT, encode_varint, b"\0"),
    "number": _scalar(FIXED64, lambda value: pack("<d", value), bytes(8)),
}
_CUSTOM_TYPES: Final[Mapping[str, FieldEncoder]] = {
    "Time": _scalar(LENGTH, _time, b""),
    "MicroTime": _scalar(LENGTH, _micro_time, b""),
    "Quantity": _scalar(LENGTH, _quantity, _quantity(0)),
    "IntOrString": _scalar(LENGTH, _int_or_string, _int_or_string(0)),
    "RawExtension": _scalar(LENGTH, _raw_json, b""),
    "FieldsV1": _scalar(LENGTH, _raw_json, b""),
    "JSON": _scalar(LENGTH, _raw_json, b""),
}


class MessageEncoder:
    """
    Encoder of one message type.

    @ivar write: Encodes the content of a message.
    """

    __slots__ = ("_fields", "write")

    write: EncodeFunction

    def __init__(self, fields: Callable[[], Iterator[tuple[str, bytes, EncodeFunction]]]) -> None:
        """
        @param fields: Yields for each field, in the order of the numbers, its name, the bytes for an absent value, and
            the encoder. An inlined message has no name, and encodes the value itself.
        """
        self._fields = fields
        self.write = self._compile_and_encode

    def zero(self) -> bytes:
        """Encode an empty message."""
        return self.write({}, 0)

    def content(self, value: JSONObject, depth: int) -> bytes:
        """Call L{write}, which is replaced when the type is compiled."""
        return self.write(value, depth)

    def _compile_and_encode(self, value: JSONObject, depth: int) -> bytes:
        self.write = self._compile()
        return self.write(value, depth)

    def _compile(self) -> EncodeFunction:
        fields = list(self._fields())
        absent_fields = [absent for _, absent, _ in fields]
        find_field = {name: (position, write) for position, (name, _, write) in enumerate(fields) if name}.get
        inlined = [(position, write) for position, (name, _, write) in enumerate(fields) if not name]

        def write(value: JSONObject, depth: int) -> bytes:
            if depth > _MAX_DEPTH:
                raise WireError(MAX_DEPTH_EXCEEDED)
            parts = absent_fields.copy()
            for name, item in value.items():
                if item is not None:
                    field = find_field(name)
                    if field is not None:
                        position, write_field = field
                        parts[position] = write_field(item, depth + 1)
            for position, write_field in inlined:
                parts[position] = write_field(value, depth + 1)
            return b"".join(parts)

        return write


class MessageEncoders:
    """Encoders of the messages of one release, each of which is created once."""

    def __init__(self, get_schema: Callable[[str], JSONObject]) -> None:
        """
        @param get_schema: Returns the schema of a definition.
        """
        self._get_schema = get_schema
        self._messages: dict[str, MessageEncoder] = {}

    def encode(self, definition: str, value: JSONObject) -> bytes:
        """
        Encode a value as a message without unknown fields, kind and apiVersion.

        @raise WireError: The value nests too deep, or does not have that type.
        """
        try:
            return self.message(definition).write(value, 0)
        except WireError:
            raise
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise WireError(f"{definition.rpartition('.')[2]} cannot be written as protobuf: {error}") from None

    def message(self, definition: str) -> MessageEncoder:
        """Return the encoder for the messages of a definition that is a struct."""
        encoder = self._messages.get(definition)
        if encoder is None:
            encoder = self._messages[definition] = MessageEncoder(lambda: self._fields(definition, definition))
        return encoder

    def _fields(self, numbers_of: str, definition: str) -> Iterator[tuple[str, bytes, EncodeFunction]]:
        """
        Return the fields of a message.

        @param numbers_of: The definition that has the field numbers; differs from C{definition} for inlined messages.
        """
        schema = self._get_schema(definition)
        properties, required = schema.get("properties", {}), frozenset(schema.get("required", ()))
        package, _, type_name = numbers_of.rpartition(".")
        group, version = package.split(".")[-2:]
        numbers = field_numbers(group, version, type_name)
        for name, number in sorted(numbers.items(), key=lambda item: item[1]):
            if name.startswith("*"):
                inner = MessageEncoder(self._inlined(f"{package}.{name[1:]}", definition))
                encoder = FieldEncoder(LENGTH, inner.content, inner.zero)
                yield "", b"", encoder.field(number)
            elif name in properties:
                part = properties[name]
                presence = go_field(definition, name, part, name in required).presence
                yield (name, *self._field(part, number, presence in (POINTER_OMITEMPTY, POINTER_NO_OMITEMPTY)))

    def _inlined(self, numbers_of: str, definition: str) -> Callable[[], Iterator[tuple[str, bytes, EncodeFunction]]]:
        return lambda: self._fields(numbers_of, definition)

    def _field(self, schema: JSONObject, number: int, pointer: bool) -> tuple[bytes, EncodeFunction]:
        """Return the bytes for an absent field, and the encoder of its values."""
        kind = json_kind(schema)
        if kind == "array":
            return b"", _list_encoder(self._encoder(schema["items"]), number)
        if kind == "object":
            return b"", _map_encoder(self._encoder(schema["additionalProperties"]), number)
        encoder = self._encoder(schema)
        return b"" if pointer else encoder.encode_absent(number), encoder.field(number)

    def _encoder(self, schema: JSONObject) -> FieldEncoder:
        kind = json_kind(schema)
        if kind == "array":  # A list in a map is encoded as a message.
            return FieldEncoder(LENGTH, _list_encoder(self._encoder(schema["items"]), 1), bytes)
        if kind == "$ref":
            definition = referenced_definition(schema)
            name = definition.rpartition(".")[2]
            if name in _CUSTOM_TYPES:
                return _CUSTOM_TYPES[name]
            if name in _SCHEMA_UNIONS:
                encode_union, zero = _SCHEMA_UNIONS[name]
                schema_of = self.message(definition.partition("Or")[0])
                return FieldEncoder(LENGTH, lambda value, depth: encode_union(value, schema_of, depth), lambda: zero)
            message = self.message(definition)
            return FieldEncoder(LENGTH, message.content, message.zero)
        if kind == "string" and schema.get("format") == "byte":
            return _BYTES
        return _SCALARS[kind]


def _schema(number: int, message: MessageEncoder, value: JSONObject, depth: int) -> bytes:
    return encode_length_delimited(number, message.write(value, depth + 1))


def _schema_or_list(value: JSONValue, message: MessageEncoder, depth: int) -> bytes:
    if isinstance(value, dict):
        return _schema(1, message, value, depth)
    return b"".join([_schema(2, message, item or {}, depth) for item in value])


def _schema_or_bool(value: JSONValue, message: MessageEncoder, depth: int) -> bytes:
    if isinstance(value, dict):
        return b"\x08\1" + _schema(2, message, value, depth)
    return b"\x08" + encode_varint(value)


def _schema_or_string_list(value: JSONValue, message: MessageEncoder, depth: int) -> bytes:
    if isinstance(value, dict):
        return _schema(1, message, value, depth)
    return b"".join([encode_length_delimited(2, (item or "").encode()) for item in value])


#: The encoders, and the content for absent values.
_SCHEMA_UNIONS: Final = {
    "JSONSchemaPropsOrArray": (_schema_or_list, b""),
    "JSONSchemaPropsOrBool": (_schema_or_bool, b"\x08\0"),
    "JSONSchemaPropsOrStringArray": (_schema_or_string_list, b""),
}

#: The last bytes of every envelope: empty content encoding and content type.
ENVELOPE_END: Final = encode_length_delimited(3, b"") + encode_length_delimited(4, b"")


def envelope_start(api_version: str, kind: str) -> bytes:
    """Return the bytes of an envelope before the field of the message."""
    type_meta = encode_length_delimited(1, api_version.encode()) + encode_length_delimited(2, kind.encode())
    return b"k8s\0" + encode_length_delimited(1, type_meta)


def envelope(api_version: str, kind: str, message: bytes) -> bytes:
    """Return a message in a C{runtime.Unknown} envelope, as in bodies and in etcd."""
    return b"%b%b%b" % (envelope_start(api_version, kind), encode_length_delimited(2, message), ENVELOPE_END)
