"""
Protobuf bodies to the values that JSON bodies would have been, and back.

What the fields are comes from the OpenAPI definitions, their numbers from L{kubetwist.schema.protobuf.fieldnumbers}. A
type is compiled when the first message of it comes; fields of other releases are skipped, as all unknown ones are. Zero
values stay: decoding by L{kubetwist.schema.objecttype} drops what is not to be seen.
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
    referred,
)
from .encoding import MessageWriters
from .fieldnumbers import field_numbers
from .leaves import (
    LEAVES,
    SCHEMA_LEAVES,
    octets,
    text_list,
    unknown,
)
from .messages import (
    DOUBLE,
    INLINE,
    MAP,
    MESSAGE,
    MESSAGES,
    NUMBER,
    NUMBERS,
    TEXT,
    TEXTS,
    TOO_DEEP,
    VALUE,
    VALUES,
    Message,
    Step,
    ValueReader,
    text,
)
from .wire import (
    CUT_SHORT,
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

    @ivar api_version: As the client says, or C{""}.
    @ivar kind: As the client says, or C{""}.
    @ivar raw: The message of the object.
    """

    api_version: str
    kind: str
    raw: bytes


def read_envelope(data: bytes) -> Envelope:
    """
    Take a body apart.

    @raise BodyError: It is not protobuf of the kind that Kubernetes has.
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
    found: JSONObject = {}
    try:
        unknown.read(data, len(MAGIC), len(data), found, 0)
    except WireError as error:
        raise BodyError(str(error), json=False) from None
    except IndexError:
        raise BodyError(CUT_SHORT, json=False) from None
    said = found.get("typeMeta", {})
    return Envelope(said.get("apiVersion", ""), said.get("kind", ""), found.get("raw", b""))


class ProtobufTypes:
    """
    The messages of one release.

    @ivar look_up: Gives the schema of a definition.
    """

    def __init__(self, look_up: Callable[[str], JSONObject]) -> None:
        self.look_up = look_up
        self._messages: dict[str, Message] = {}
        self._writers = MessageWriters(look_up)

    def decode(self, definition: str, data: bytes) -> JSONObject:
        """
        Return the JSON value of a message; it is without C{kind} and C{apiVersion}, which stand around it.

        @param definition: The type of the message: C{io.k8s.api.core.v1.Pod}.
        @raise WireError: The value is invalid, or nests too deep.
        """
        value: JSONObject = {}
        try:
            self.message(definition).read(data, 0, len(data), value, 0)
        except IndexError:
            raise WireError(CUT_SHORT) from None
        # A message may contain JSON, so the depth of messages is not sufficient.
        wrapped: JSONValue = value
        for _ in range(ENCODER_DEPTH - MAX_DEPTH):
            wrapped = [wrapped]
        try:
            orjson.dumps(wrapped)
        except TypeError:
            raise WireError(TOO_DEEP) from None
        return value

    def encode(self, definition: str, value: JSONObject) -> bytes:
        """
        Return the message of a JSON value, as marshallers in Go write it; see L{kubetwist.schema.protobuf.encoding}.

        @param definition: The type of the message; C{kind} and C{apiVersion} of objects are in its envelope.
        @raise WireError: The value nests too deep, or does not have that type.
        """
        return self._writers.encode(definition, value)

    def message(self, definition: str) -> Message:
        """Return the message of a definition that is a struct."""
        known = self._messages.get(definition)
        if known is None:
            type_name = definition.rpartition(".")[2]

            def steps() -> Iterator[Step]:
                return self._steps(definition, self.look_up(definition).get("properties", {}))

            known = self._messages[definition] = Message(type_name, steps)
        return known

    def _steps(self, definition: str, properties: Mapping[str, JSONObject]) -> Iterator[Step]:
        """
        Return the fields of a message.

        @param definition: Where the numbers stand; for a message whose fields are those of another type not the
            definition that C{properties} are of.
        """
        package, _, type_name = definition.rpartition(".")
        group, version = package.split(".")[-2:]
        for name, number in field_numbers(group, version, type_name).items():
            if name.startswith("*"):
                inner = f"{package}.{name[1:]}"
                yield Step(number, INLINE, name[1:], Message(name[1:], self._inlined(inner, properties)))
            elif name in properties:
                how, extra = self._field(properties[name])
                yield Step(number, how, name, extra)

    def _inlined(self, definition: str, properties: Mapping[str, JSONObject]) -> Callable[[], Iterator[Step]]:
        return lambda: self._steps(definition, properties)

    def _field(self, schema: JSONObject) -> tuple[int, JSONValue]:
        """Return the encoding of a field of a schema."""
        kind = json_kind(schema)
        if kind == "array":
            how, extra = self._field(schema["items"])
            return _REPEATED[how], extra
        if kind == "object":
            return MAP, self._map_value(schema["additionalProperties"])
        if kind == "$ref":
            definition = referred(schema)
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
        return (VALUE, octets) if schema.get("format") == "byte" else (TEXT, None)

    def _map_value(self, schema: JSONObject) -> ValueReader:
        if json_kind(schema) == "array":
            return text_list
        how, extra = self._field(schema)
        if how == TEXT:
            return text
        reader: ValueReader = extra.value if how == MESSAGE else extra
        return reader


_REPEATED: Final = {TEXT: TEXTS, MESSAGE: MESSAGES, VALUE: VALUES, NUMBER: NUMBERS}
