"""Encoder of JSON values to protobuf as a client in Go, for tests of the decoder."""

from __future__ import annotations

import base64
import struct
from calendar import timegm
from datetime import datetime
from typing import Any

import orjson

from kubetwist.schema.definitions import Definitions
from kubetwist.schema.protobuf.fieldnumbers import field_numbers

JSONObject = dict[str, Any]


def varint(value: int) -> bytes:
    """Encode a number; a negative one as ten bytes."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    """Encode a varint field."""
    return varint(field << 3) + varint(value)


def delimited(field: int, *parts: bytes | str) -> bytes:
    """Encode a length-delimited field: a string, bytes or a message."""
    content = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(field << 3 | 2) + varint(len(content)) + content


def enveloped(api_version: str, kind: str, raw: bytes) -> bytes:
    """Return a body with an object."""
    return (
        b"k8s\0"
        + delimited(1, delimited(1, api_version), delimited(2, kind))
        + delimited(2, raw)
        + delimited(3)
        + delimited(4)
    )


class Encoder:
    """Encoder for the definitions of a release."""

    def __init__(self, definitions: Definitions) -> None:
        self._schemas = definitions.openapi_schemas("#/definitions/")

    def message(self, definition: str, value: JSONObject) -> bytes:
        """Encode a message of a definition that is a struct."""
        return self._fields(definition, self._schemas[definition].get("properties", {}), value)

    def _fields(self, numbers_of: str, properties: JSONObject, value: JSONObject) -> bytes:
        package, _, type_name = numbers_of.rpartition(".")
        group, version = package.split(".")[-2:]
        out = b""
        for name, field in field_numbers(group, version, type_name).items():
            if name.startswith("*"):
                out += delimited(field, self._fields(f"{package}.{name[1:]}", properties, value))
            elif value.get(name) is not None:
                out += self._field(field, properties[name], value[name])
        return out

    def _field(self, field: int, schema: JSONObject, value: Any) -> bytes:
        kind = schema.get("type")
        if kind == "array":
            return b"".join(self._field(field, schema["items"], item) for item in value)
        if kind == "object" and "additionalProperties" in schema:
            return b"".join(
                delimited(field, delimited(1, key), self._map_value(schema["additionalProperties"], item))
                for key, item in value.items()
            )
        if kind in ("integer", "boolean"):
            return number(field, int(value))
        if kind == "number":
            return varint(field << 3 | 1) + struct.pack("<d", value)
        if schema.get("format") == "byte":
            return delimited(field, base64.b64decode(value))
        reference = reference_of(schema)
        return delimited(field, self._referred(reference, value)) if reference else delimited(field, value)

    def _map_value(self, schema: JSONObject, value: Any) -> bytes:
        if schema.get("type") == "array":
            return delimited(2, *(delimited(1, item) for item in value))
        return self._field(2, schema, value)

    def _referred(self, definition: str, value: Any) -> bytes:
        name = definition.rpartition(".")[2]
        if name.startswith("JSONSchemaPropsOr"):
            return self._either(definition.partition("Or")[0], name, value)
        if name in ("RawExtension", "FieldsV1", "JSON"):
            return delimited(1, orjson.dumps(value))
        if value is None:
            return b""
        if name in ("Time", "MicroTime"):
            moment = datetime.fromisoformat(value)
            return number(1, timegm(moment.utctimetuple())) + number(2, moment.microsecond * 1000)
        if name == "Quantity":
            return delimited(1, value)
        if name == "IntOrString":
            if isinstance(value, int):
                return number(1, 0) + number(2, value) + delimited(3)
            return number(1, 1) + number(2, 0) + delimited(3, value)
        return self.message(definition, value)

    def _either(self, schema: str, name: str, value: Any) -> bytes:
        if isinstance(value, dict):
            field = 2 if name == "JSONSchemaPropsOrBool" else 1
            allows = number(1, 1) if field == 2 else b""
            return allows + delimited(field, self.message(schema, value))
        if isinstance(value, bool):
            return number(1, int(value))
        parts = (item if isinstance(item, str) else self.message(schema, item) for item in value or ())
        return b"".join(delimited(2, part) for part in parts)


def reference_of(schema: JSONObject) -> str:
    """Return the definition to which a schema refers, or C{""}."""
    return str(schema.get("$ref", "")).rpartition("/")[2]
