"""Builder of types from OpenAPI definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..api.featuregates import Release
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from . import leaves
from .gofields import (
    GoField,
    go_field,
    go_name,
    json_kind,
    referenced_definition,
)
from .leaves import Reader
from .mismatch import UnmarshalerError
from .nodes import Field, ListNode, MapNode, ScalarNode, StructNode, TypeNode


class TypeBuilder:
    """
    Builder of the types of one release, each of which is created once.

    @ivar get_schema: Returns the schema of a definition, without additions of the package.
    @ivar release: The release; L{None} for the newest one.
    """

    def __init__(self, get_schema: Callable[[str], JSONObject], release: Release | None = None) -> None:
        self.get_schema = get_schema
        self.release = release
        self._named: dict[str, TypeNode] = {}

    def named(self, definition: str) -> TypeNode:
        """Return the type of a definition."""
        node = self._named.get(definition)
        if node is None:
            node = self._named[definition] = self._scalar(definition) or StructNode(
                definition, go_name(definition), self._fields
            )
        return node

    def struct(self, definition: str) -> StructNode:
        """Return the type of a definition that is a struct."""
        node = self.named(definition)
        assert isinstance(node, StructNode), definition
        return node

    def _fields(self, definition: str) -> Mapping[str, Field]:
        schema = self.get_schema(definition)
        required = frozenset(schema.get("required", ()))
        fields = {}
        for name, property_schema in schema.get("properties", {}).items():
            field = go_field(definition, name, property_schema, name in required, self.release)
            strategies = frozenset(filter(None, property_schema.get("x-kubernetes-patch-strategy", "").split(",")))
            merge_key = property_schema.get("x-kubernetes-patch-merge-key", "")
            fields[name] = Field(
                name, self._node(property_schema, field), field.presence, field.embedded, strategies, merge_key
            )
        return fields

    def _node(self, schema: JSONObject, field: GoField) -> TypeNode:
        """Return the type of a schema within a definition."""
        kind = json_kind(schema)
        if kind == "$ref":
            return self.named(referenced_definition(schema))
        if kind == "array":
            item = self._node(schema["items"], field.item_field(schema["items"]))
            return ListNode(item, field.go_type)
        if kind == "object":
            item = self._node(schema["additionalProperties"], field.item_field(schema["additionalProperties"]))
            return MapNode(item, field.go_type)
        if kind == "string":
            if schema.get("format") == "byte":
                return ScalarNode(leaves.bytes_reader(field.go_type), field.go_type, None, "", leaves.coerce_bytes)
            return ScalarNode(leaves.string_reader(field.go_type), field.go_type, "")
        if kind == "boolean":
            return ScalarNode(leaves.boolean_reader(field.go_type), field.go_type, False)
        if kind == "integer":
            width = schema.get("format", "int64")
            return ScalarNode(
                leaves.integer_reader(field.go_type, width), field.go_type, 0, coerce=leaves.integer_coercion(width)
            )
        if kind == "number":
            return ScalarNode(leaves.number_reader(field.go_type), field.go_type, 0)
        return ScalarNode(leaves.read_any, field.go_type, None)

    def _scalar(self, definition: str) -> TypeNode | None:
        """Return the type of a definition whose Go type has an unmarshaler, or C{None}."""
        go_type, name = go_name(definition), definition.rpartition(".")[2]
        if name in _SCALARS:
            read, zero = _SCALARS[name]
            return ScalarNode(read, go_type, zero, coerce=leaves.go_number if name in _MAY_BE_NUMBER else None)
        if name.startswith("JSONSchemaPropsOr"):
            schema = self.named(definition.partition("Or")[0])
            if name == "JSONSchemaPropsOrBool":
                return ScalarNode(_schema_or_bool(schema), go_type, False)
            item = schema
            if name == "JSONSchemaPropsOrStringArray":
                item = ScalarNode(leaves.string_reader("string"), "string", "")
            return ScalarNode(_schema_or_list(schema, ListNode(item, f"[]{item.go_type}")), go_type, None)
        return None


_SCALARS: dict[str, tuple[Reader, JSONValue]] = {
    "Time": (leaves.read_time, None),
    "MicroTime": (leaves.read_micro_time, None),
    "Quantity": (leaves.read_quantity, "0"),
    "IntOrString": (leaves.read_int_or_string, 0),
    "RawExtension": (leaves.read_any, None),
    "FieldsV1": (leaves.read_any, None),
    "JSON": (leaves.read_json, None),
}

#: Types whose JSON may be a number.
_MAY_BE_NUMBER = frozenset(("Quantity", "IntOrString"))

# The unmarshalers of the next two types do not decode strictly, so that unknown fields in them are not reported.


def _schema_or_bool(schema: TypeNode) -> Reader:
    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if isinstance(value, dict):
            return schema.compiled()(value, [])
        if isinstance(value, bool):
            return value
        raise UnmarshalerError("boolean or JSON schema expected")

    return read


def _schema_or_list(schema: TypeNode, items: ListNode) -> Reader:
    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if isinstance(value, dict):
            return schema.compiled()(value, [])
        if isinstance(value, list):
            return items.compiled()(value, []) or None
        # Values that are neither are ignored.
        return None

    return read
