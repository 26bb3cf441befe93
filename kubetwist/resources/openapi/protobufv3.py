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
    bool_field,
    embedded_field,
    int_field,
    map_entry_field,
    map_field,
    number_field,
    or_reference,
    repeated_field,
    repeated_string_field,
    string_field,
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
    """Encode a default of one of the three types that the message supports; any other type as an empty message."""
    if isinstance(value, bool):
        return encode_tag(2, VARINT) + (b"\1" if value else b"\0")
    if isinstance(value, int | float):
        return encode_tag(1, FIXED64) + struct.pack("<d", value)
    if isinstance(value, str):
        return _DEFAULT_TEXT(value)
    return b""


#: A oneof of three: the present field decides, even if it is empty.
_DEFAULT_TEXT: Final = embedded_field(3, str.encode)

_EXTERNAL_DOCS: Final = Message({"description": string_field(1), "url": string_field(2)}, 3)

_SCHEMA: Final = Message(
    {
        "nullable": bool_field(1),
        "readOnly": bool_field(3),
        "writeOnly": bool_field(4),
        "externalDocs": embedded_field(6, _EXTERNAL_DOCS),
        "example": embedded_field(7, any_value),
        "deprecated": bool_field(8),
        "title": string_field(9),
        "multipleOf": number_field(10),
        "maximum": number_field(11),
        "exclusiveMaximum": bool_field(12),
        "minimum": number_field(13),
        "exclusiveMinimum": bool_field(14),
        "maxLength": int_field(15),
        "minLength": int_field(16),
        "pattern": string_field(17),
        "maxItems": int_field(18),
        "minItems": int_field(19),
        "uniqueItems": bool_field(20),
        "maxProperties": int_field(21),
        "minProperties": int_field(22),
        "required": repeated_string_field(23),
        "enum": repeated_field(24, any_value),
        "type": string_field(25),
        "default": embedded_field(33, _default),
        "description": string_field(34),
        "format": string_field(35),
    },
    36,
)
_SCHEMA_OR_REFERENCE: Final = or_reference(1, _SCHEMA, 2, 3)
_NAMED_SCHEMAS: Final = map_field(1, _SCHEMA_OR_REFERENCE)
_ITEMS: Final = repeated_field(1, _SCHEMA_OR_REFERENCE)
_ADDITIONAL: Final = embedded_field(1, _SCHEMA_OR_REFERENCE)


def _items(value: JSONObject | list[JSONObject]) -> bytes:
    return _ITEMS(value if isinstance(value, list) else [value])


def _additional(value: JSONObject | bool) -> bytes:
    # A oneof: the present field decides, so a false is written, too.
    return encode_tag(2, VARINT) + (b"\1" if value else b"\0") if isinstance(value, bool) else _ADDITIONAL(value)


# Schemas are nested.
_SCHEMA.fields.update(
    {
        "allOf": repeated_field(26, _SCHEMA_OR_REFERENCE),
        "oneOf": repeated_field(27, _SCHEMA_OR_REFERENCE),
        "anyOf": repeated_field(28, _SCHEMA_OR_REFERENCE),
        "not": embedded_field(29, _SCHEMA),
        "items": embedded_field(30, _items),
        "properties": embedded_field(31, _NAMED_SCHEMAS),
        "additionalProperties": embedded_field(32, _additional),
    }
)

_MEDIA_TYPE: Final = Message(
    {"schema": embedded_field(1, _SCHEMA_OR_REFERENCE), "example": embedded_field(2, any_value)}, 5
)
_CONTENT: Final[Encode] = map_field(1, _MEDIA_TYPE)
_PARAMETER: Final = or_reference(
    1,
    Message(
        {
            "name": string_field(1),
            "in": string_field(2),
            "description": string_field(3),
            "required": bool_field(4),
            "deprecated": bool_field(5),
            "allowEmptyValue": bool_field(6),
            "style": string_field(7),
            "explode": bool_field(8),
            "allowReserved": bool_field(9),
            "schema": embedded_field(10, _SCHEMA_OR_REFERENCE),
            "example": embedded_field(11, any_value),
            "content": embedded_field(13, _CONTENT),
        },
        14,
    ),
    2,
    3,
)
_BODY: Final = or_reference(
    1,
    Message({"description": string_field(1), "content": embedded_field(2, _CONTENT), "required": bool_field(3)}, 4),
    2,
    3,
)
_RESPONSE: Final = or_reference(
    1, Message({"description": string_field(1), "content": embedded_field(3, _CONTENT)}, 5), 2, 3
)
_RESPONSES: Final = Message({"default": embedded_field(1, _RESPONSE)}, 3, map_entry_field(2, _RESPONSE))
_SECURITY: Final = map_field(1, repeated_string_field(1))
_SERVER: Final = Message({"url": string_field(1), "description": string_field(2)}, 4)

_OPERATION: Final = Message(
    {
        "tags": repeated_string_field(1),
        "summary": string_field(2),
        "description": string_field(3),
        "externalDocs": embedded_field(4, _EXTERNAL_DOCS),
        "operationId": string_field(5),
        "parameters": repeated_field(6, _PARAMETER),
        "requestBody": embedded_field(7, _BODY),
        "responses": embedded_field(8, _RESPONSES),
        "deprecated": bool_field(10),
        "security": repeated_field(11, _SECURITY),
        "servers": repeated_field(12, _SERVER),
    },
    13,
)

_PATH_ITEM: Final = Message(
    {
        "$ref": string_field(1),
        "summary": string_field(2),
        "description": string_field(3),
        **{
            method: embedded_field(number, _OPERATION)
            for number, method in enumerate(("get", "put", "post", "delete", "options", "head", "patch", "trace"), 4)
        },
        "servers": repeated_field(12, _SERVER),
        "parameters": repeated_field(13, _PARAMETER),
    },
    14,
)

_SECURITY_SCHEME: Final = or_reference(
    1,
    Message(
        {
            "type": string_field(1),
            "description": string_field(2),
            "name": string_field(3),
            "in": string_field(4),
            "scheme": string_field(5),
            "bearerFormat": string_field(6),
            "openIdConnectUrl": string_field(8),
        },
        9,
    ),
    2,
    3,
)

_COMPONENTS: Final = Message(
    {
        "schemas": embedded_field(1, _NAMED_SCHEMAS),
        "responses": embedded_field(2, map_field(1, _RESPONSE)),
        "parameters": embedded_field(3, map_field(1, _PARAMETER)),
        "requestBodies": embedded_field(5, map_field(1, _BODY)),
        "securitySchemes": embedded_field(7, map_field(1, _SECURITY_SCHEME)),
    },
    10,
)

_INFO: Final = Message(
    {
        "title": string_field(1),
        "description": string_field(2),
        "termsOfService": string_field(3),
        "version": string_field(6),
        "summary": string_field(8),
    },
    7,
)

_DOCUMENT: Final = Message(
    {
        "openapi": string_field(1),
        "info": embedded_field(2, _INFO),
        "servers": repeated_field(3, _SERVER),
        "paths": embedded_field(4, Message({}, 2, map_entry_field(1, _PATH_ITEM))),
        "components": embedded_field(5, _COMPONENTS),
        "security": repeated_field(6, _SECURITY),
        "externalDocs": embedded_field(8, _EXTERNAL_DOCS),
    },
    9,
)
