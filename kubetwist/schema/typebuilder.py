"""From OpenAPI definitions to nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from . import leaves
from .gofields import (
    Shape,
    go_name,
    json_kind,
    referred,
    shape,
)
from .leaves import Reader
from .mismatch import Unreadable
from .nodes import Field, Leaf, ListNode, MapNode, Node, StructNode


class TypeBuilder:
    """
    Makes the nodes of the types of one release, each once.

    @ivar look_up: Gives the cleaned schema of a definition.
    """

    def __init__(self, look_up: Callable[[str], JSONObject]) -> None:
        self.look_up = look_up
        self._named: dict[str, Node] = {}

    def named(self, definition: str) -> Node:
        """Return the node of a definition."""
        node = self._named.get(definition)
        if node is None:
            node = self._named[definition] = self._leaf(definition) or StructNode(
                definition, go_name(definition), self._fields
            )
        return node

    def struct(self, definition: str) -> StructNode:
        """Return the node of a definition that is a struct."""
        node = self.named(definition)
        assert isinstance(node, StructNode), definition
        return node

    def _fields(self, definition: str) -> Mapping[str, Field]:
        schema = self.look_up(definition)
        required = frozenset(schema.get("required", ()))
        fields = {}
        for name, part in schema.get("properties", {}).items():
            go = shape(definition, name, part, name in required)
            strategies = frozenset(filter(None, part.get("x-kubernetes-patch-strategy", "").split(",")))
            merge_key = part.get("x-kubernetes-patch-merge-key", "")
            fields[name] = Field(name, self._node(part, go), go.presence, go.embedded, strategies, merge_key)
        return fields

    def _node(self, schema: JSONObject, go: Shape) -> Node:
        """Return the node of a schema within a definition."""
        kind = json_kind(schema)
        if kind == "$ref":
            return self.named(referred(schema))
        if kind == "array":
            item = self._node(schema["items"], go.of_items(schema["items"]))
            return ListNode(item, go.go_type)
        if kind == "object":
            item = self._node(schema["additionalProperties"], go.of_items(schema["additionalProperties"]))
            return MapNode(item, go.go_type)
        if kind == "string":
            if schema.get("format") == "byte":
                return Leaf(leaves.octets(go.go_type), go.go_type, None, "", leaves.wrapping_octets)
            return Leaf(leaves.text(go.go_type), go.go_type, "")
        if kind == "boolean":
            return Leaf(leaves.boolean(go.go_type), go.go_type, False)
        if kind == "integer":
            width = schema.get("format", "int64")
            return Leaf(leaves.integer(go.go_type, width), go.go_type, 0, coerce=leaves.wrapping(width))
        if kind == "number":
            return Leaf(leaves.number(go.go_type), go.go_type, 0)
        return Leaf(leaves.anything, go.go_type, None)

    def _leaf(self, definition: str) -> Node | None:
        """Return the node of a definition with a custom JSON form."""
        go_type, name = go_name(definition), definition.rpartition(".")[2]
        if name in _LEAVES:
            read, zero = _LEAVES[name]
            return Leaf(read, go_type, zero, coerce=leaves.rewritten if name in _NUMERIC else None)
        if name.startswith("JSONSchemaPropsOr"):
            schema = self.named(definition.partition("Or")[0])
            if name == "JSONSchemaPropsOrBool":
                return Leaf(_schema_or_bool(schema), go_type, False)
            item = schema
            if name == "JSONSchemaPropsOrStringArray":
                item = Leaf(leaves.text("string"), "string", "")
            return Leaf(_schema_or_list(schema, ListNode(item, f"[]{item.go_type}")), go_type, None)
        return None


_LEAVES: dict[str, tuple[Reader, JSONValue]] = {
    "Time": (leaves.time, None),
    "MicroTime": (leaves.micro_time, None),
    "Quantity": (leaves.quantity, "0"),
    "IntOrString": (leaves.int_or_string, 0),
    "RawExtension": (leaves.anything, None),
    "FieldsV1": (leaves.anything, None),
    "JSON": (leaves.numbers_rewritten, None),
}

#: Types whose JSON may be a number.
_NUMERIC = frozenset(("Quantity", "IntOrString"))

# In the next two, as in the reference, unknown fields go unnoticed: the types decode themselves, and not strictly.


def _schema_or_bool(schema: Node) -> Reader:
    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if isinstance(value, dict):
            return schema.compiled()(value, [])
        if isinstance(value, bool):
            return value
        raise Unreadable("boolean or JSON schema expected")

    return read


def _schema_or_list(schema: Node, items: ListNode) -> Reader:
    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        if isinstance(value, dict):
            return schema.compiled()(value, [])
        if isinstance(value, list):
            return items.compiled()(value, []) or None
        # Values that are neither are ignored.
        return None

    return read
