"""
The document of OpenAPI v2 in protobuf, for clients that decode JSON slowly.

The tables have the field numbers of the gnostic messages that the documents need. A name without a table entry is left
out, except for extensions, for which every message has a field.

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


def encode_v2(document: JSONObject) -> bytes:
    """Encode a document of L{kubetwist.resources.openapi.v2.v2_frame} as a C{openapi.v2.Document}."""
    return _DOCUMENT(document)


_EXTERNAL_DOCS: Final = Message({"description": string_field(1), "url": string_field(2)}, 3)

_SCHEMA: Final = Message(
    {
        "$ref": string_field(1),
        "format": string_field(2),
        "title": string_field(3),
        "description": string_field(4),
        "default": embedded_field(5, any_value),
        "multipleOf": number_field(6),
        "maximum": number_field(7),
        "exclusiveMaximum": bool_field(8),
        "minimum": number_field(9),
        "exclusiveMinimum": bool_field(10),
        "maxLength": int_field(11),
        "minLength": int_field(12),
        "pattern": string_field(13),
        "maxItems": int_field(14),
        "minItems": int_field(15),
        "uniqueItems": bool_field(16),
        "maxProperties": int_field(17),
        "minProperties": int_field(18),
        "required": repeated_string_field(19),
        "enum": repeated_field(20, any_value),
        "discriminator": string_field(26),
        "readOnly": bool_field(27),
        "externalDocs": embedded_field(29, _EXTERNAL_DOCS),
        "example": embedded_field(30, any_value),
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


_TYPES: Final = repeated_string_field(1)
_SCHEMAS: Final = repeated_field(1, _SCHEMA)
_SUBSCHEMA: Final = embedded_field(1, _SCHEMA)
_NAMED_SCHEMAS: Final = map_field(1, _SCHEMA)

# Schemas are nested.
_SCHEMA.fields.update(
    {
        "additionalProperties": embedded_field(21, _additional),
        "type": embedded_field(22, _type),
        "items": embedded_field(23, _items),
        "allOf": repeated_field(24, _SCHEMA),
        "properties": embedded_field(25, _NAMED_SCHEMAS),
    }
)


def _primitive(first: int) -> Message:
    """
    Return the fields of a parameter's value, which differ only in their first number.

    @param first: The number of the first field.
    """
    forms: dict[str, Callable[[int], Encode]] = {
        "type": string_field,
        "format": string_field,
        "items": lambda number: embedded_field(number, _PRIMITIVES_ITEMS),
        "collectionFormat": string_field,
        "default": lambda number: embedded_field(number, any_value),
        "maximum": number_field,
        "exclusiveMaximum": bool_field,
        "minimum": number_field,
        "exclusiveMinimum": bool_field,
        "maxLength": int_field,
        "minLength": int_field,
        "pattern": string_field,
        "maxItems": int_field,
        "minItems": int_field,
        "uniqueItems": bool_field,
        "enum": lambda number: repeated_field(number, any_value),
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
    message.fields.update(
        {"required": bool_field(1), "in": string_field(2), "description": string_field(3), "name": string_field(4)}
    )
    if empty_values:
        message.fields["allowEmptyValue"] = bool_field(5)
    return message


_BODY_PARAMETER: Final = embedded_field(
    1,
    Message(
        {
            "description": string_field(1),
            "name": string_field(2),
            "in": string_field(3),
            "required": bool_field(4),
            "schema": embedded_field(5, _SCHEMA),
        },
        6,
    ),
)

_OTHER_PARAMETERS: Final = {
    place: embedded_field(2, embedded_field(number, _parameter_in(empty_values)))
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
_RESPONSE: Final = Message({"description": string_field(1), "schema": embedded_field(2, _SUBSCHEMA)}, 5)
_RESPONSES: Final = Message({}, 2, map_entry_field(1, or_reference(1, _RESPONSE, 2)))
_SECURITY_REQUIREMENT: Final = map_field(1, repeated_string_field(1))

_OPERATION: Final = Message(
    {
        "tags": repeated_string_field(1),
        "summary": string_field(2),
        "description": string_field(3),
        "externalDocs": embedded_field(4, _EXTERNAL_DOCS),
        "operationId": string_field(5),
        "produces": repeated_string_field(6),
        "consumes": repeated_string_field(7),
        "parameters": repeated_field(8, _PARAMETERS_ITEM),
        "responses": embedded_field(9, _RESPONSES),
        "schemes": repeated_string_field(10),
        "deprecated": bool_field(11),
        "security": repeated_field(12, _SECURITY_REQUIREMENT),
    },
    13,
)

_PATH_ITEM: Final = Message(
    {
        "$ref": string_field(1),
        "get": embedded_field(2, _OPERATION),
        "put": embedded_field(3, _OPERATION),
        "post": embedded_field(4, _OPERATION),
        "delete": embedded_field(5, _OPERATION),
        "options": embedded_field(6, _OPERATION),
        "head": embedded_field(7, _OPERATION),
        "patch": embedded_field(8, _OPERATION),
        "parameters": repeated_field(9, _PARAMETERS_ITEM),
    },
    10,
)

_BASIC_SECURITY: Final = embedded_field(1, Message({"type": string_field(1), "description": string_field(2)}, 3))
_API_KEY_SECURITY: Final = embedded_field(
    2,
    Message(
        {"type": string_field(1), "name": string_field(2), "in": string_field(3), "description": string_field(4)}, 5
    ),
)


def _security_definition(value: JSONObject) -> bytes:
    return (_BASIC_SECURITY if value["type"] == "basic" else _API_KEY_SECURITY)(value)


_INFO: Final = Message(
    {
        "title": string_field(1),
        "version": string_field(2),
        "description": string_field(3),
        "termsOfService": string_field(4),
    },
    7,
)

_DOCUMENT: Final = Message(
    {
        "swagger": string_field(1),
        "info": embedded_field(2, _INFO),
        "host": string_field(3),
        "basePath": string_field(4),
        "schemes": repeated_string_field(5),
        "consumes": repeated_string_field(6),
        "produces": repeated_string_field(7),
        "paths": embedded_field(8, Message({}, 1, map_entry_field(2, _PATH_ITEM))),
        "definitions": embedded_field(9, _NAMED_SCHEMAS),
        "parameters": embedded_field(10, map_field(1, _parameter)),
        "responses": embedded_field(11, map_field(1, _RESPONSE)),
        "security": repeated_field(12, _SECURITY_REQUIREMENT),
        "securityDefinitions": embedded_field(13, map_field(1, _security_definition)),
        "externalDocs": embedded_field(15, _EXTERNAL_DOCS),
    },
    16,
)
