"""
The document of OpenAPI v2 in protobuf, for clients that decode JSON slowly.

The messages are those of gnostic that our documents need; the tables here have their field numbers. A name without a
table entry is left out, except for extensions, for which every message has a field.

@see: google/gnostic, C{openapiv2/OpenAPIv2.proto}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...api.resource import JSONObject
from ...schema.protobuf.wire import VARINT, encode_tag, encode_varint
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


def encode_v2(document: JSONObject) -> bytes:
    """Encode a document of L{kubetwist.resources.openapi.v2.v2_frame} as a C{openapi.v2.Document}."""
    return _DOCUMENT(document)


_EXTERNAL_DOCS: Final = Message({"description": text(1), "url": text(2)}, 3)

_SCHEMA: Final = Message(
    {
        "$ref": text(1),
        "format": text(2),
        "title": text(3),
        "description": text(4),
        "default": inside(5, any_value),
        "multipleOf": number_field(6),
        "maximum": number_field(7),
        "exclusiveMaximum": flag(8),
        "minimum": number_field(9),
        "exclusiveMinimum": flag(10),
        "maxLength": count(11),
        "minLength": count(12),
        "pattern": text(13),
        "maxItems": count(14),
        "minItems": count(15),
        "uniqueItems": flag(16),
        "maxProperties": count(17),
        "minProperties": count(18),
        "required": texts(19),
        "enum": each(20, any_value),
        "discriminator": text(26),
        "readOnly": flag(27),
        "externalDocs": inside(29, _EXTERNAL_DOCS),
        "example": inside(30, any_value),
    },
    31,
)


def _type(value: str | list[str]) -> bytes:
    return _TYPES([value] if isinstance(value, str) else value)


def _items(value: JSONObject | list[JSONObject]) -> bytes:
    return _SCHEMAS(value if isinstance(value, list) else [value])


def _additional(value: JSONObject | bool) -> bytes:
    # A oneof: the present field decides, so a false is written, too.
    return encode_tag(2, VARINT) + encode_varint(value) if isinstance(value, bool) else _SUBSCHEMA(value)


_TYPES: Final = texts(1)
_SCHEMAS: Final = each(1, _SCHEMA)
_SUBSCHEMA: Final = inside(1, _SCHEMA)
_NAMED_SCHEMAS: Final = named(1, _SCHEMA)

# Schemas are nested.
_SCHEMA.fields.update(
    {
        "additionalProperties": inside(21, _additional),
        "type": inside(22, _type),
        "items": inside(23, _items),
        "allOf": each(24, _SCHEMA),
        "properties": inside(25, _NAMED_SCHEMAS),
    }
)


def _primitive(first: int) -> Message:
    """
    Return the fields of a parameter's value, which differ only in their first number.

    @param first: The number of the first field.
    """
    forms: dict[str, Callable[[int], Encode]] = {
        "type": text,
        "format": text,
        "items": lambda number: inside(number, _PRIMITIVES_ITEMS),
        "collectionFormat": text,
        "default": lambda number: inside(number, any_value),
        "maximum": number_field,
        "exclusiveMaximum": flag,
        "minimum": number_field,
        "exclusiveMinimum": flag,
        "maxLength": count,
        "minLength": count,
        "pattern": text,
        "maxItems": count,
        "minItems": count,
        "uniqueItems": flag,
        "enum": lambda number: each(number, any_value),
        "multipleOf": number_field,
    }
    return Message({name: form(first + at) for at, (name, form) in enumerate(forms.items())}, first + len(forms))


_PRIMITIVES_ITEMS: Final = Message({}, 18)
_PRIMITIVES_ITEMS.fields.update(_primitive(1).fields)


def _parameter_in(empty_values: bool) -> Message:
    """
    Return the message of a parameter.

    @param empty_values: Whether the message has the field C{allow_empty_value}.
    """
    message = _primitive(6 if empty_values else 5)
    message.fields.update({"required": flag(1), "in": text(2), "description": text(3), "name": text(4)})
    if empty_values:
        message.fields["allowEmptyValue"] = flag(5)
    return message


_BODY_PARAMETER: Final = inside(
    1,
    Message(
        {
            "description": text(1),
            "name": text(2),
            "in": text(3),
            "required": flag(4),
            "schema": inside(5, _SCHEMA),
        },
        6,
    ),
)

_OTHER_PARAMETERS: Final = {
    place: inside(2, inside(number, _parameter_in(empty_values)))
    for place, number, empty_values in (
        ("header", 1, False),
        ("formData", 2, True),
        ("query", 3, True),
        ("path", 4, False),
    )
}


def _parameter(value: JSONObject) -> bytes:
    return _OTHER_PARAMETERS.get(value["in"], _BODY_PARAMETER)(value)


_PARAMETERS_ITEM: Final = or_reference(1, _parameter, 2)
_RESPONSE: Final = Message({"description": text(1), "schema": inside(2, _SUBSCHEMA)}, 5)
_RESPONSES: Final = Message({}, 2, entry(1, or_reference(1, _RESPONSE, 2)))
_SECURITY_REQUIREMENT: Final = named(1, texts(1))

_OPERATION: Final = Message(
    {
        "tags": texts(1),
        "summary": text(2),
        "description": text(3),
        "externalDocs": inside(4, _EXTERNAL_DOCS),
        "operationId": text(5),
        "produces": texts(6),
        "consumes": texts(7),
        "parameters": each(8, _PARAMETERS_ITEM),
        "responses": inside(9, _RESPONSES),
        "schemes": texts(10),
        "deprecated": flag(11),
        "security": each(12, _SECURITY_REQUIREMENT),
    },
    13,
)

_PATH_ITEM: Final = Message(
    {
        "$ref": text(1),
        "get": inside(2, _OPERATION),
        "put": inside(3, _OPERATION),
        "post": inside(4, _OPERATION),
        "delete": inside(5, _OPERATION),
        "options": inside(6, _OPERATION),
        "head": inside(7, _OPERATION),
        "patch": inside(8, _OPERATION),
        "parameters": each(9, _PARAMETERS_ITEM),
    },
    10,
)

_BASIC_SECURITY: Final = inside(1, Message({"type": text(1), "description": text(2)}, 3))
_API_KEY_SECURITY: Final = inside(
    2, Message({"type": text(1), "name": text(2), "in": text(3), "description": text(4)}, 5)
)


def _security_definition(value: JSONObject) -> bytes:
    return (_BASIC_SECURITY if value["type"] == "basic" else _API_KEY_SECURITY)(value)


_INFO: Final = Message({"title": text(1), "version": text(2), "description": text(3), "termsOfService": text(4)}, 7)

_DOCUMENT: Final = Message(
    {
        "swagger": text(1),
        "info": inside(2, _INFO),
        "host": text(3),
        "basePath": text(4),
        "schemes": texts(5),
        "consumes": texts(6),
        "produces": texts(7),
        "paths": inside(8, Message({}, 1, entry(2, _PATH_ITEM))),
        "definitions": inside(9, _NAMED_SCHEMAS),
        "parameters": inside(10, named(1, _parameter)),
        "responses": inside(11, named(1, _RESPONSE)),
        "security": each(12, _SECURITY_REQUIREMENT),
        "securityDefinitions": inside(13, named(1, _security_definition)),
        "externalDocs": inside(15, _EXTERNAL_DOCS),
    },
    16,
)
