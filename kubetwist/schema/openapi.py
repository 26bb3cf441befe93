"""
Definitions in the form in which servers publish them.

OpenAPI 3 has C{default}, wherever Go always writes a value, C{allOf} around references that have something beside them,
and C{enum}; OpenAPI 2 has none of these. They follow from L{kubetwist.schema.goshape} and L{kubetwist.schema.enums}.
"""

from __future__ import annotations

from typing import Any

from ..api.resource import JSONObject
from .enums import enum_values
from .goshape import ALWAYS, LEAVES, json_kind, referred, shape

#: Types that are several JSON types at once: in OpenAPI 2, and in OpenAPI 3.
_UNIONS: dict[str, tuple[JSONObject, JSONObject]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": (
        {"type": "string"},
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": (
        {"type": "string", "format": "int-or-string"},
        {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]},
    ),
}

_ZEROS: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


def openapi_schema(definition: str, schema: JSONObject, ref_prefix: str) -> JSONObject:
    """
    A definition as published.

    @param schema: As the data has it; it is changed.
    @param ref_prefix: What stands before the name in a C{$ref}; C{"#/definitions/"} stands for OpenAPI 2.
    """
    defaults = ref_prefix != "#/definitions/"
    if definition in _UNIONS:
        union = _UNIONS[definition][defaults]
        return {"description": schema["description"], **union} if "description" in schema else {**union}
    required = frozenset(schema.get("required", ()))
    published = _plain(schema)
    properties = schema.get("properties")
    if properties is None:
        return published
    published["properties"] = {
        name: _field(definition, name, part, name in required, ref_prefix, defaults)
        for name, part in properties.items()
    }
    return published


def _field(
    definition: str, name: str, schema: JSONObject, required: bool, ref_prefix: str, defaults: bool
) -> JSONObject:
    go = shape(definition, name, schema, required)
    part = _part(schema, ref_prefix, go.presence == ALWAYS, defaults)
    values = enum_values(definition, go.go_type) if defaults else None
    if values is not None:
        holder = part.get("items") or part.get("additionalProperties") or part
        holder["enum"] = values
    return part


def _plain(schema: JSONObject) -> JSONObject:
    """The schema without what the data added."""
    plain = {**schema}
    if isinstance(plain.get("type"), list):
        plain["type"] = plain["type"][0]
    plain.pop("enum", None)
    return plain


def _part(schema: JSONObject, ref_prefix: str, valued: bool, defaults: bool) -> JSONObject:
    """
    A schema within a definition.

    @param valued: Whether Go writes the value even when it is zero.
    @param defaults: Whether to tell so.
    """
    part = _plain(schema)
    kind = json_kind(schema)
    if kind == "$ref":
        target = referred(schema)
        part["$ref"] = ref_prefix + target
        if not defaults:
            return part
        if valued and target.rpartition(".")[2] not in LEAVES:
            part["default"] = {}
        if len(part) > 1:
            part["allOf"] = [{"$ref": part.pop("$ref")}]
    elif kind == "array":
        part["items"] = _part(schema["items"], ref_prefix, False, defaults)
    elif kind == "object" and "additionalProperties" in schema:
        part["additionalProperties"] = _part(schema["additionalProperties"], ref_prefix, False, defaults)
    elif valued and kind in _ZEROS and schema.get("format") != "byte":
        part["default"] = _ZEROS[kind]
    return part
