"""Encodes mappings as protobuf messages, for OpenAPI documents in protobuf."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...schema.protobuf.wire import FIXED64, LENGTH, VARINT, encode_tag, encode_varint

#: Encodes a value: either the content of a message, or a whole field, with its number.
Encode = Callable[[Any], bytes]

#: Characters that are valid in JSON but not in YAML, or that YAML treats as a line break.
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def embedded_field(number: int, encode: Encode) -> Encode:
    """Return the encoder of a field with an embedded message, written even if it is empty."""
    key = encode_tag(number, LENGTH)

    def write(value: JSONValue) -> bytes:
        body = encode(value)
        return b"%b%b%b" % (key, encode_varint(len(body)), body)

    return write


def repeated_field(number: int, encode: Encode) -> Encode:
    """Return the encoder of a repeated field, from a list."""
    write = embedded_field(number, encode)
    return lambda values: b"".join(map(write, values))


def string_field(number: int) -> Encode:
    """Return the encoder of a string field, left out if there is no string."""
    write = embedded_field(number, str.encode)
    return lambda value: write(value) if value else b""


def repeated_string_field(number: int) -> Encode:
    """Return the encoder of a repeated string field."""
    return repeated_field(number, str.encode)


def bool_field(number: int) -> Encode:
    """Return the encoder of a boolean field."""
    encoded = encode_tag(number, VARINT) + b"\1"
    return lambda value: encoded if value else b""


def int_field(number: int) -> Encode:
    """Return the encoder of an integer field."""
    key = encode_tag(number, VARINT)
    return lambda value: key + encode_varint(int(value)) if value else b""


def number_field(number: int) -> Encode:
    """Return the encoder of a number field."""
    key = encode_tag(number, FIXED64)
    return lambda value: key + struct.pack("<d", value) if value else b""


def any_value(value: JSONValue) -> bytes:
    """Encode any value as YAML, of which JSON is nearly a subset."""
    yaml = _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(value).decode())
    return _yaml_field(yaml)


_yaml_field: Final = string_field(2)
_name_field: Final = string_field(1)


def map_entry_field(number: int, encode: Encode) -> Callable[[str, JSONValue], bytes]:
    """Return the encoder of one map entry: a name and its value."""
    key, inner = encode_tag(number, LENGTH), embedded_field(2, encode)

    def write(name: str, value: JSONValue) -> bytes:
        body = _name_field(name) + inner(value)
        return b"%b%b%b" % (key, encode_varint(len(body)), body)

    return write


def map_field(number: int, encode: Encode) -> Encode:
    """Return the encoder of a repeated field of map entries, from a mapping."""
    write = map_entry_field(number, encode)
    return lambda values: b"".join([write(name, value) for name, value in values.items()])


class Message:
    """
    Encodes a mapping as the content of a message.

    @ivar fields: The encoders of fields, by name.
    """

    __slots__ = ("_extension", "_fallback", "fields")

    def __init__(
        self,
        fields: Mapping[str, Encode],
        extensions: int = 0,
        fallback: Callable[[str, JSONValue], bytes] | None = None,
    ) -> None:
        """
        @param fields: The encoders of fields, by name.
        @param extensions: The number of the field for extensions; 0 if the message has none.
        @param fallback: Encodes names that are neither in C{fields} nor extensions; L{None} leaves them out.
        """
        self.fields = dict(fields)
        self._extension = map_entry_field(extensions, any_value) if extensions else None
        self._fallback = fallback

    def __call__(self, value: JSONObject) -> bytes:
        """@see: L{Encode}."""
        parts = []
        for name, part in value.items():
            write = self.fields.get(name)
            if write is not None:
                parts.append(write(part))
            elif name.startswith("x-"):
                if self._extension is not None:
                    parts.append(self._extension(name, part))
            elif self._fallback is not None:
                parts.append(self._fallback(name, part))
        return b"".join(parts)


def or_reference(number: int, encode: Encode, reference: int, description: int = 2) -> Encode:
    """
    Return the encoder of a oneof: a value, or a reference to it.

    @param description: The field number of a reference's description.
    """
    write = embedded_field(number, encode)
    refer = embedded_field(reference, Message({"$ref": string_field(1), "description": string_field(description)}))
    return lambda value: refer(value) if "$ref" in value else write(value)
