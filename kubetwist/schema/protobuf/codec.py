"""
Conversion between protobuf bodies and JSON values.

Fields come from the OpenAPI definitions, their numbers from L{kubetwist.schema.protobuf.fieldnumbers}. A type is
compiled at its first use. Unknown fields, such as fields of other releases, are skipped. Zero values are kept, since
L{kubetwist.schema.objecttype} removes those that Go omits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import orjson

from ...api.decoding import (
    ENCODER_DEPTH,
    MAX_DEPTH,
    BodyError,
)
from ...api.jsontypes import JSONObject, JSONValue
from ..gofields import (
    json_kind,
    referenced_definition,
)
from .encoding import MessageEncoders
from .fieldnumbers import field_numbers
from .leaves import (
    LEAVES,
    SCHEMA_LEAVES,
    decode_bytes,
    decode_string_list,
    unknown_message,
)
from .messages import (
    DOUBLE,
    INLINE,
    MAP,
    MAX_DEPTH_EXCEEDED,
    MESSAGE,
    MESSAGES,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    VALUE,
    VALUES,
    FieldDescriptor,
    MessageDecoder,
    ValueDecoder,
    decode_string,
)
from .wire import (
    UNEXPECTED_EOF,
    WireError,
    int32,
    int64,
)

__all__ = ["Envelope", "ProtobufTypes", "WireError", "read_envelope"]

JSONObject = JSONObject

MAGIC: Final = b"k8s\0"


class Envelope(NamedTuple):
    """
    The envelope of an object in a body.

    @ivar api_version: The C{apiVersion} that the client sent, or C{""}.
    @ivar kind: The kind that the client sent, or C{""}.
    @ivar raw: The message of the object.
    """

    api_version: str
    kind: str
    raw: bytes


def read_envelope(data: bytes) -> Envelope:
    """
    Decode the envelope of a body.

    @raise BodyError: The body is not a C{runtime.Unknown} with the prefix of Kubernetes.
    """
    if not data:
        raise BodyError("empty data", json=False)
    if not data.startswith(MAGIC):
        prefix = " ".join(map(str, MAGIC))
        raise BodyError(
            f"provided data does not appear to be a protobuf message, expected prefix [{prefix}]", json=False
        )
    if len(data) == len(MAGIC):
        raise BodyError("empty body", json=False)
    decoded: JSONObject = {}
    try:
        unknown_message.read(data, len(MAGIC), len(data), decoded, 0)
    except WireError as error:
        raise BodyError(str(error), json=False) from None
    except IndexError:
        raise BodyError(UNEXPECTED_EOF, json=False) from None
    type_meta = decoded.get("typeMeta", {})
    return Envelope(type_meta.get("apiVersion", ""), type_meta.get("kind", ""), decoded.get("raw", b""))


class ProtobufTypes:
    """
    Encoders and decoders of the messages of one release.

    @ivar get_schema: Returns the schema of a definition.
    """

    def __init__(self, get_schema: Callable[[str], JSONObject]) -> None:
        self.get_schema = get_schema
        self._messages: dict[str, MessageDecoder] = {}
        self._writers = MessageEncoders(get_schema)

    def decode(self, definition: str, data: bytes) -> JSONObject:
        """
        Decode a message to a JSON value without C{kind} and C{apiVersion}, which are in the envelope.

        @param definition: The type of the message: C{io.k8s.api.core.v1.Pod}.
        @raise WireError: The value is invalid, or nests too deep.
        """
        value: JSONObject = {}
        try:
            self.message(definition).read(data, 0, len(data), value, 0)
        except IndexError:
            raise WireError(UNEXPECTED_EOF) from None
        # A message may contain nested JSON, so that the nesting depth of messages is not sufficient.
        nested: JSONValue = value
        for _ in range(ENCODER_DEPTH - MAX_DEPTH):
            nested = [nested]
        try:
            orjson.dumps(nested)
        except TypeError:
            raise WireError(MAX_DEPTH_EXCEEDED) from None
        return value

    def encode(self, definition: str, value: JSONObject) -> bytes:
        """
        Encode a JSON value as Go's generated marshalers do; see L{kubetwist.schema.protobuf.encoding}.

        @param definition: The type of the message; C{kind} and C{apiVersion} of objects are in its envelope.
        @raise WireError: The value nests too deep, or does not have that type.
        """
        return self._writers.encode(definition, value)

    def message(self, definition: str) -> MessageDecoder:
        """Return the decoder of a definition that is a struct."""
        decoder = self._messages.get(definition)
        if decoder is None:
            type_name = definition.rpartition(".")[2]

            def descriptors() -> Iterator[FieldDescriptor]:
                return self._descriptors(definition, self.get_schema(definition).get("properties", {}))

            decoder = self._messages[definition] = MessageDecoder(type_name, descriptors)
        return decoder

    def _descriptors(self, definition: str, properties: Mapping[str, JSONObject]) -> Iterator[FieldDescriptor]:
        """
        Return the fields of a message.

        @param definition: The definition that has the field numbers; for an inlined message not the definition of
            C{properties}.
        """
        package, _, type_name = definition.rpartition(".")
        group, version = package.split(".")[-2:]
        for name, number in field_numbers(group, version, type_name).items():
            if name.startswith("*"):
                inner = f"{package}.{name[1:]}"
                yield FieldDescriptor(
                    number, INLINE, name[1:], MessageDecoder(name[1:], self._inlined(inner, properties))
                )
            elif name in properties:
                encoding, codec = self._field(properties[name])
                yield FieldDescriptor(number, encoding, name, codec)

    def _inlined(
        self, definition: str, properties: Mapping[str, JSONObject]
    ) -> Callable[[], Iterator[FieldDescriptor]]:
        return lambda: self._descriptors(definition, properties)

    def _field(self, schema: JSONObject) -> tuple[int, JSONValue]:
        """Return the encoding and the codec of a field."""
        kind = json_kind(schema)
        if kind == "array":
            encoding, codec = self._field(schema["items"])
            return _REPEATED[encoding], codec
        if kind == "object":
            return MAP, self._map_value(schema["additionalProperties"])
        if kind == "$ref":
            definition = referenced_definition(schema)
            name = definition.rpartition(".")[2]
            if name in LEAVES:
                return VALUE, LEAVES[name]
            if name in SCHEMA_LEAVES:
                return VALUE, SCHEMA_LEAVES[name](self.message(definition.partition("Or")[0]))
            return MESSAGE, self.message(definition)
        if kind == "integer":
            return NUMBER, int32 if schema.get("format") == "int32" else int64
        if kind == "boolean":
            return NUMBER, bool
        if kind == "number":
            return DOUBLE, None
        return (VALUE, decode_bytes) if schema.get("format") == "byte" else (TEXT, None)

    def _map_value(self, schema: JSONObject) -> ValueDecoder:
        if json_kind(schema) == "array":
            return decode_string_list
        encoding, codec = self._field(schema)
        if encoding == TEXT:
            return decode_string
        decoder: ValueDecoder = codec.decode if encoding == MESSAGE else codec
        return decoder


_REPEATED: Final = {TEXT: TEXTS, MESSAGE: MESSAGES, VALUE: VALUES, NUMBER: NUMBERS}
