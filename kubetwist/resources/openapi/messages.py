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


def inside(number: int, encode: Encode) -> Encode:
    """Return the encoder of a field with an embedded message, written even if it is empty."""
    key = encode_tag(number, LENGTH)

    def write(value: JSONValue) -> bytes:
        body = encode(value)
        return b"%b%b%b" % (key, encode_varint(len(body)), body)

    return write


def each(number: int, encode: Encode) -> Encode:
    """Return the encoder of a repeated field, from a list."""
    write = inside(number, encode)
    return lambda values: b"".join(map(write, values))


def text(number: int) -> Encode:
    """Return the encoder of a string field, left out if there is no string."""
    write = inside(number, str.encode)
    return lambda value: write(value) if value else b""


def texts(number: int) -> Encode:
    """Return the encoder of a repeated string field."""
    return each(number, str.encode)


def flag(number: int) -> Encode:
    """Return the encoder of a boolean field."""
    yes = encode_tag(number, VARINT) + b"\1"
    return lambda value: yes if value else b""


def count(number: int) -> Encode:
    """Return the encoder of an integer field."""
    key = encode_tag(number, VARINT)
    return lambda value: key + encode_varint(int(value)) if value else b""


def number_field(number: int) -> Encode:
    """Return the encoder of a number field."""
    key = encode_tag(number, FIXED64)
    return lambda value: key + struct.pack("<d", value) if value else b""


def any_value(value: JSONValue) -> bytes:
    """Encode any value as YAML, of which JSON is nearly a subset."""
    text = _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(value).decode())
    return _YAML(text)


_YAML: Final = text(2)
_NAME: Final = text(1)


def entry(number: int, encode: Encode) -> Callable[[str, JSONValue], bytes]:
    """Return the encoder of one map entry: a name and its value."""
    key, inner = encode_tag(number, LENGTH), inside(2, encode)

    def write(name: str, value: JSONValue) -> bytes:
        body = _NAME(name) + inner(value)
        return b"%b%b%b" % (key, encode_varint(len(body)), body)

    return write


def named(number: int, encode: Encode) -> Encode:
    """Return the encoder of a repeated field of map entries, from a mapping."""
    write = entry(number, encode)
    return lambda values: b"".join([write(name, value) for name, value in values.items()])


class Message:
    """
    Encodes a mapping as the content of a message.

    @ivar fields: The encoders of fields, by name.
    """

    __slots__ = ("_extension", "_others", "fields")

    def __init__(
        self, fields: Mapping[str, Encode], extensions: int = 0, others: Callable[[str, JSONValue], bytes] | None = None
    ) -> None:
        """
        @param extensions: The number of the field for extensions; 0 if it has none.
        @param others: Encodes names that are neither in C{fields} nor extensions.
        """
        self.fields = dict(fields)
        self._extension = entry(extensions, any_value) if extensions else None
        self._others = others

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
            elif self._others is not None:
                parts.append(self._others(name, part))
        return b"".join(parts)


def or_reference(number: int, encode: Encode, reference: int, description: int = 2) -> Encode:
    """
    Return the encoder of a oneof: a value, or a reference to it.

    @param description: The field number of a reference's description.
    """
    write = inside(number, encode)
    refer = inside(reference, Message({"$ref": text(1), "description": text(description)}))
    return lambda value: refer(value) if "$ref" in value else write(value)
