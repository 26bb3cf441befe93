"""
The document of OpenAPI v2 in protobuf, for clients that find JSON slow to read.

Its messages are those of gnostic, whose field numbers are the tables here; of its messages there are as many as our
documents need. What a table does not know is left out, but for extensions, which all messages have a place for.

@see: google/gnostic, C{openapiv2/OpenAPIv2.proto}
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from ..api.resource import JSONObject

#: Makes bytes of a value: either the inside of a message, or a whole field, with its number.
Encode = Callable[[Any], bytes]

#: Characters that may stand in JSON but not in YAML, or that YAML would take for the end of a line.
_NOT_IN_YAML: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

_VARINT, _FIXED64, _LENGTH = range(3)


def encode_v2(document: JSONObject) -> bytes:
    """A document, as L{kubetwist.resources.openapi_v2.v2_document} makes them, as a C{openapi.v2.Document}."""
    return _DOCUMENT(document)


def _varint(value: int) -> bytes:
    if value < 128:
        return b"%c" % value
    octets = bytearray()
    while value > 127:
        octets.append(value & 127 | 128)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def _key(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _inside(number: int, encode: Encode) -> Encode:
    """A field that is a message of its own, there even if it is empty."""
    key = _key(number, _LENGTH)

    def write(value: Any) -> bytes:
        body = encode(value)
        return b"%b%b%b" % (key, _varint(len(body)), body)

    return write


def _each(number: int, encode: Encode) -> Encode:
    """A repeated field, from a list."""
    write = _inside(number, encode)
    return lambda values: b"".join(map(write, values))


def _text(number: int) -> Encode:
    write = _inside(number, str.encode)
    return lambda value: write(value) if value else b""


def _texts(number: int) -> Encode:
    return _each(number, str.encode)


def _flag(number: int) -> Encode:
    yes = _key(number, _VARINT) + b"\1"
    return lambda value: yes if value else b""


def _count(number: int) -> Encode:
    key = _key(number, _VARINT)
    return lambda value: key + _varint(int(value) & (1 << 64) - 1) if value else b""


def _number(number: int) -> Encode:
    key = _key(number, _FIXED64)
    return lambda value: key + struct.pack("<d", value) if value else b""


def _any(value: Any) -> bytes:
    """Any value at all, as YAML, which JSON nearly is."""
    text = _NOT_IN_YAML.sub(lambda found: f"\\u{ord(found[0]):04x}", orjson.dumps(value).decode())
    return _YAML(text)


_YAML: Final = _text(2)
_NAME: Final = _text(1)


def _entry(number: int, encode: Encode) -> Callable[[str, Any], bytes]:
    """One of the pairs that stand for a mapping."""
    key, inner = _key(number, _LENGTH), _inside(2, encode)

    def write(name: str, value: Any) -> bytes:
        body = _NAME(name) + inner(value)
        return b"%b%b%b" % (key, _varint(len(body)), body)

    return write


def _named(number: int, encode: Encode) -> Encode:
    """A repeated field of pairs, from a mapping."""
    write = _entry(number, encode)
    return lambda values: b"".join([write(name, value) for name, value in values.items()])


class _Message:
    """
    Makes the inside of a message from a mapping.

    @ivar fields: What writes the fields with these names.
    """

    __slots__ = ("_extension", "_others", "fields")

    def __init__(
        self, fields: Mapping[str, Encode], extensions: int = 0, others: Callable[[str, Any], bytes] | None = None
    ) -> None:
        """
        @param extensions: The number of the field for extensions; 0 if it has none.
        @param others: Writes what is neither in C{fields} nor an extension.
        """
        self.fields = dict(fields)
        self._extension = _entry(extensions, _any) if extensions else None
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


def _or_reference(number: int, encode: Encode, reference: int) -> Encode:
    """One of two fields: a value that is written out, or where it is to be found."""
    write, refer = _inside(number, encode), _inside(reference, _Message({"$ref": _text(1), "description": _text(2)}))
    return lambda value: refer(value) if "$ref" in value else write(value)


_EXTERNAL_DOCS: Final = _Message({"description": _text(1), "url": _text(2)}, 3)

_SCHEMA: Final = _Message(
    {
        "$ref": _text(1),
        "format": _text(2),
        "title": _text(3),
        "description": _text(4),
        "default": _inside(5, _any),
        "multipleOf": _number(6),
        "maximum": _number(7),
        "exclusiveMaximum": _flag(8),
        "minimum": _number(9),
        "exclusiveMinimum": _flag(10),
        "maxLength": _count(11),
        "minLength": _count(12),
        "pattern": _text(13),
        "maxItems": _count(14),
        "minItems": _count(15),
        "uniqueItems": _flag(16),
        "maxProperties": _count(17),
        "minProperties": _count(18),
        "required": _texts(19),
        "enum": _each(20, _any),
        "discriminator": _text(26),
        "readOnly": _flag(27),
        "externalDocs": _inside(29, _EXTERNAL_DOCS),
        "example": _inside(30, _any),
    },
    31,
)


def _type(value: str | list[str]) -> bytes:
    return _TYPES([value] if isinstance(value, str) else value)


def _items(value: JSONObject | list[JSONObject]) -> bytes:
    return _SCHEMAS(value if isinstance(value, list) else [value])


def _additional(value: JSONObject | bool) -> bytes:
    # Of the two fields, that which is there says which of the two it is: a false is written out.
    return _key(2, _VARINT) + _varint(value) if isinstance(value, bool) else _SUBSCHEMA(value)


_TYPES: Final = _texts(1)
_SCHEMAS: Final = _each(1, _SCHEMA)
_SUBSCHEMA: Final = _inside(1, _SCHEMA)
_NAMED_SCHEMAS: Final = _named(1, _SCHEMA)

# Schemas have schemas inside.
_SCHEMA.fields.update(
    {
        "additionalProperties": _inside(21, _additional),
        "type": _inside(22, _type),
        "items": _inside(23, _items),
        "allOf": _each(24, _SCHEMA),
        "properties": _inside(25, _NAMED_SCHEMAS),
    }
)


def _primitive(first: int) -> _Message:
    """
    What parameters say of their values, the same for all, but counted from different numbers.

    @param first: The number of the first field.
    """
    forms: dict[str, Callable[[int], Encode]] = {
        "type": _text,
        "format": _text,
        "items": lambda number: _inside(number, _PRIMITIVES_ITEMS),
        "collectionFormat": _text,
        "default": lambda number: _inside(number, _any),
        "maximum": _number,
        "exclusiveMaximum": _flag,
        "minimum": _number,
        "exclusiveMinimum": _flag,
        "maxLength": _count,
        "minLength": _count,
        "pattern": _text,
        "maxItems": _count,
        "minItems": _count,
        "uniqueItems": _flag,
        "enum": lambda number: _each(number, _any),
        "multipleOf": _number,
    }
    return _Message({name: form(first + at) for at, (name, form) in enumerate(forms.items())}, first + len(forms))


_PRIMITIVES_ITEMS: Final = _Message({}, 18)
_PRIMITIVES_ITEMS.fields.update(_primitive(1).fields)


def _parameter_in(empty_values: bool) -> _Message:
    """@param empty_values: Whether it can tell that a parameter may be without a value."""
    message = _primitive(6 if empty_values else 5)
    message.fields.update({"required": _flag(1), "in": _text(2), "description": _text(3), "name": _text(4)})
    if empty_values:
        message.fields["allowEmptyValue"] = _flag(5)
    return message


_BODY_PARAMETER: Final = _inside(
    1,
    _Message(
        {
            "description": _text(1),
            "name": _text(2),
            "in": _text(3),
            "required": _flag(4),
            "schema": _inside(5, _SCHEMA),
        },
        6,
    ),
)

_OTHER_PARAMETERS: Final = {
    place: _inside(2, _inside(number, _parameter_in(empty_values)))
    for place, number, empty_values in (
        ("header", 1, False),
        ("formData", 2, True),
        ("query", 3, True),
        ("path", 4, False),
    )
}


def _parameter(value: JSONObject) -> bytes:
    return _OTHER_PARAMETERS.get(value["in"], _BODY_PARAMETER)(value)


_PARAMETERS_ITEM: Final = _or_reference(1, _parameter, 2)
_RESPONSE: Final = _Message({"description": _text(1), "schema": _inside(2, _SUBSCHEMA)}, 5)
_RESPONSES: Final = _Message({}, 2, _entry(1, _or_reference(1, _RESPONSE, 2)))
_SECURITY_REQUIREMENT: Final = _named(1, _texts(1))

_OPERATION: Final = _Message(
    {
        "tags": _texts(1),
        "summary": _text(2),
        "description": _text(3),
        "externalDocs": _inside(4, _EXTERNAL_DOCS),
        "operationId": _text(5),
        "produces": _texts(6),
        "consumes": _texts(7),
        "parameters": _each(8, _PARAMETERS_ITEM),
        "responses": _inside(9, _RESPONSES),
        "schemes": _texts(10),
        "deprecated": _flag(11),
        "security": _each(12, _SECURITY_REQUIREMENT),
    },
    13,
)

_PATH_ITEM: Final = _Message(
    {
        "$ref": _text(1),
        "get": _inside(2, _OPERATION),
        "put": _inside(3, _OPERATION),
        "post": _inside(4, _OPERATION),
        "delete": _inside(5, _OPERATION),
        "options": _inside(6, _OPERATION),
        "head": _inside(7, _OPERATION),
        "patch": _inside(8, _OPERATION),
        "parameters": _each(9, _PARAMETERS_ITEM),
    },
    10,
)

_BASIC_SECURITY: Final = _inside(1, _Message({"type": _text(1), "description": _text(2)}, 3))
_API_KEY_SECURITY: Final = _inside(
    2, _Message({"type": _text(1), "name": _text(2), "in": _text(3), "description": _text(4)}, 5)
)


def _security_definition(value: JSONObject) -> bytes:
    return (_BASIC_SECURITY if value["type"] == "basic" else _API_KEY_SECURITY)(value)


_INFO: Final = _Message(
    {"title": _text(1), "version": _text(2), "description": _text(3), "termsOfService": _text(4)}, 7
)

_DOCUMENT: Final = _Message(
    {
        "swagger": _text(1),
        "info": _inside(2, _INFO),
        "host": _text(3),
        "basePath": _text(4),
        "schemes": _texts(5),
        "consumes": _texts(6),
        "produces": _texts(7),
        "paths": _inside(8, _Message({}, 1, _entry(2, _PATH_ITEM))),
        "definitions": _inside(9, _NAMED_SCHEMAS),
        "parameters": _inside(10, _named(1, _parameter)),
        "responses": _inside(11, _named(1, _RESPONSE)),
        "security": _each(12, _SECURITY_REQUIREMENT),
        "securityDefinitions": _inside(13, _named(1, _security_definition)),
        "externalDocs": _inside(15, _EXTERNAL_DOCS),
    },
    16,
)
