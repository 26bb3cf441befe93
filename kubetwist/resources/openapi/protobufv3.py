"""
Documents of OpenAPI v3 in protobuf.

@see: google/gnostic, C{openapiv3/OpenAPIv3.proto}; L{.protobufv2}, the same for v2.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from ...api.jsonpieces import decoded, members
from ...api.jsontypes import JSONValue
from ...api.resource import JSONObject
from ...schema.protobuf.wire import FIXED64, VARINT, encode_tag
from .messages import (
    Encode,
    Message,
    any_value,
    count,
    each,
    entry,
    flag,
    inside,
    named,
    number_field,
    or_reference,
    text,
    texts,
)


def encode_v3(document: JSONObject) -> bytes:
    """Encode a document, or a part of one, as a C{openapi.v3.Document}; the concatenation of parts is a document."""
    return _DOCUMENT(document)


def pieces_v3(body: bytes) -> Iterator[bytes]:
    """Encode a document in JSON in pieces, as it may be large."""
    for name, start, end in members(body):
        if name == "paths":
            for path, begin, stop in members(body, start):
                yield encode_v3({"paths": {path: decoded(body[begin:stop])}})
        elif name == "components":
            for section, begin, stop in members(body, start):
                if section != "schemas":
                    yield encode_v3({"components": {section: decoded(body[begin:stop])}})
                    continue
                for schema, first, last in members(body, begin):
                    yield encode_v3({"components": {"schemas": {schema: decoded(body[first:last])}}})
        else:
            yield encode_v3({name: decoded(body[start:end])})


def _default(value: JSONValue) -> bytes:
    """Encode a default of one of the three types that the message supports; others are encoded as an empty message."""
    if isinstance(value, bool):
        return encode_tag(2, VARINT) + (b"\1" if value else b"\0")
    if isinstance(value, int | float):
        return encode_tag(1, FIXED64) + struct.pack("<d", value)
    if isinstance(value, str):
        return _DEFAULT_TEXT(value)
    return b""


#: A oneof of three: the present field decides, even if it is empty.
_DEFAULT_TEXT: Final = inside(3, str.encode)

_EXTERNAL_DOCS: Final = Message({"description": text(1), "url": text(2)}, 3)

_SCHEMA: Final = Message(
    {
        "nullable": flag(1),
        "readOnly": flag(3),
        "writeOnly": flag(4),
        "externalDocs": inside(6, _EXTERNAL_DOCS),
        "example": inside(7, any_value),
        "deprecated": flag(8),
        "title": text(9),
        "multipleOf": number_field(10),
        "maximum": number_field(11),
        "exclusiveMaximum": flag(12),
        "minimum": number_field(13),
        "exclusiveMinimum": flag(14),
        "maxLength": count(15),
        "minLength": count(16),
        "pattern": text(17),
        "maxItems": count(18),
        "minItems": count(19),
        "uniqueItems": flag(20),
        "maxProperties": count(21),
        "minProperties": count(22),
        "required": texts(23),
        "enum": each(24, any_value),
        "type": text(25),
        "default": inside(33, _default),
        "description": text(34),
        "format": text(35),
    },
    36,
)
_SCHEMA_OR_REFERENCE: Final = or_reference(1, _SCHEMA, 2, 3)
_NAMED_SCHEMAS: Final = named(1, _SCHEMA_OR_REFERENCE)
_ITEMS: Final = each(1, _SCHEMA_OR_REFERENCE)
_ADDITIONAL: Final = inside(1, _SCHEMA_OR_REFERENCE)


def _items(value: JSONObject | list[JSONObject]) -> bytes:
    return _ITEMS(value if isinstance(value, list) else [value])


def _additional(value: JSONObject | bool) -> bytes:
    # A oneof: the present field decides, so a false is written, too.
    return encode_tag(2, VARINT) + (b"\1" if value else b"\0") if isinstance(value, bool) else _ADDITIONAL(value)


# Schemas are nested.
_SCHEMA.fields.update(
    {
        "allOf": each(26, _SCHEMA_OR_REFERENCE),
        "oneOf": each(27, _SCHEMA_OR_REFERENCE),
        "anyOf": each(28, _SCHEMA_OR_REFERENCE),
        "not": inside(29, _SCHEMA),
        "items": inside(30, _items),
        "properties": inside(31, _NAMED_SCHEMAS),
        "additionalProperties": inside(32, _additional),
    }
)

_MEDIA_TYPE: Final = Message({"schema": inside(1, _SCHEMA_OR_REFERENCE), "example": inside(2, any_value)}, 5)
_CONTENT: Final[Encode] = named(1, _MEDIA_TYPE)
_PARAMETER: Final = or_reference(
    1,
    Message(
        {
            "name": text(1),
            "in": text(2),
            "description": text(3),
            "required": flag(4),
            "deprecated": flag(5),
            "allowEmptyValue": flag(6),
            "style": text(7),
            "explode": flag(8),
            "allowReserved": flag(9),
            "schema": inside(10, _SCHEMA_OR_REFERENCE),
            "example": inside(11, any_value),
            "content": inside(13, _CONTENT),
        },
        14,
    ),
    2,
    3,
)
_BODY: Final = or_reference(
    1, Message({"description": text(1), "content": inside(2, _CONTENT), "required": flag(3)}, 4), 2, 3
)
_RESPONSE: Final = or_reference(1, Message({"description": text(1), "content": inside(3, _CONTENT)}, 5), 2, 3)
_RESPONSES: Final = Message({"default": inside(1, _RESPONSE)}, 3, entry(2, _RESPONSE))
_SECURITY: Final = named(1, texts(1))
_SERVER: Final = Message({"url": text(1), "description": text(2)}, 4)

_OPERATION: Final = Message(
    {
        "tags": texts(1),
        "summary": text(2),
        "description": text(3),
        "externalDocs": inside(4, _EXTERNAL_DOCS),
        "operationId": text(5),
        "parameters": each(6, _PARAMETER),
        "requestBody": inside(7, _BODY),
        "responses": inside(8, _RESPONSES),
        "deprecated": flag(10),
        "security": each(11, _SECURITY),
        "servers": each(12, _SERVER),
    },
    13,
)

_PATH_ITEM: Final = Message(
    {
        "$ref": text(1),
        "summary": text(2),
        "description": text(3),
        **{
            method: inside(number, _OPERATION)
            for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch", "trace"), 4)
        },
        "servers": each(12, _SERVER),
        "parameters": each(13, _PARAMETER),
    },
    14,
)

_SECURITY_SCHEME: Final = or_reference(
    1,
    Message(
        {
            "type": text(1),
            "description": text(2),
            "name": text(3),
            "in": text(4),
            "scheme": text(5),
            "bearerFormat": text(6),
            "openIdConnectUrl": text(8),
        },
        9,
    ),
    2,
    3,
)

_COMPONENTS: Final = Message(
    {
        "schemas": inside(1, _NAMED_SCHEMAS),
        "responses": inside(2, named(1, _RESPONSE)),
        "parameters": inside(3, named(1, _PARAMETER)),
        "requestBodies": inside(5, named(1, _BODY)),
        "securitySchemes": inside(7, named(1, _SECURITY_SCHEME)),
    },
    10,
)

_INFO: Final = Message(
    {"title": text(1), "description": text(2), "termsOfService": text(3), "version": text(6), "summary": text(8)}, 7
)

_DOCUMENT: Final = Message(
    {
        "openapi": text(1),
        "info": inside(2, _INFO),
        "servers": each(3, _SERVER),
        "paths": inside(4, Message({}, 2, entry(1, _PATH_ITEM))),
        "components": inside(5, _COMPONENTS),
        "security": each(6, _SECURITY),
        "externalDocs": inside(8, _EXTERNAL_DOCS),
    },
    9,
)
