"""
Properties of the API's Go types that their OpenAPI definitions do not contain.

The reference decodes every object into Go structs and encodes it from them again. That leaves traces which clients
see: fields that are never left out, fields that vanish when they hold their zero value, names of Go types in error
messages. Most of it follows from the go_field of a field by the rules below; what does not is in
L{kubetwist.schema.gofields_table}.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..api.resource import JSONObject
from .gofields_table import TABLE

#: A value that disappears when it is zero: C{omitempty} on a string, a number, a list or a map.
OMITEMPTY = "o"
#: A pointer that disappears when it is nil: what the client sent stays, zero or not.
POINTER_OMITEMPTY = "p"
#: A value that is always there, zero or not; a list, map or time that is nil shows as C{null}.
NO_OMITEMPTY = "a"
#: A pointer that is always there; C{null} when nil.
POINTER_NO_OMITEMPTY = "n"
#: A struct that disappears when it is zero: C{omitzero}.
OMITZERO = "z"

#: Definitions that are a single JSON value to clients, regardless of their Go type.
LEAVES = frozenset(
    {"Time", "MicroTime", "Quantity", "IntOrString", "RawExtension", "FieldsV1", "JSON"}
    | {"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"}
)


class GoField(NamedTuple):
    """
    One field of a Go struct.

    @ivar presence: One of the constants of this module.
    @ivar go_type: Its type as Go prints it, without a leading pointer.
    @ivar embedded: The structs that it is embedded by, outermost first.
    """

    presence: str
    go_type: str
    embedded: tuple[str, ...]

    def item_field(self, schema: JSONObject) -> GoField:
        """Return the go_field of the items of a list or map; it only gives the type."""
        go_type = self.go_type
        if go_type.startswith("[]"):
            return GoField(NO_OMITEMPTY, go_type[2:].lstrip("*"), ())
        if go_type.startswith("map["):
            return GoField(NO_OMITEMPTY, go_type.partition("]")[2].lstrip("*"), ())
        # The list or map has a name of its own.
        return GoField(NO_OMITEMPTY, default_go_type(schema), ())


def json_kind(schema: JSONObject) -> str:
    """Return the JSON type of a schema, C{"$ref"} for a reference, C{""} when it has none."""
    if "$ref" in schema:
        return "$ref"
    kind = schema.get("type", "")
    return str(kind[0] if isinstance(kind, list) else kind)


def referenced_definition(schema: JSONObject) -> str:
    """Return the name of the definition that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2]


def default_presence(name: str, schema: JSONObject, required: bool) -> str:
    """Return the default for fields of this go_field."""
    kind = json_kind(schema)
    if kind == "object":
        return OMITEMPTY
    if kind == "array":
        return NO_OMITEMPTY if required or name == "items" else OMITEMPTY
    if required:
        return NO_OMITEMPTY
    if kind == "$ref":
        target = referenced_definition(schema).rpartition(".")[2]
        if target == "Time" or (target not in LEAVES and name in ("metadata", "spec", "status")):
            return NO_OMITEMPTY
        return POINTER_OMITEMPTY
    return OMITEMPTY if kind == "string" else POINTER_OMITEMPTY


def default_go_type(schema: JSONObject) -> str:
    """Return the Go type of a schema that has no explicit type name."""
    kind = json_kind(schema)
    if kind == "$ref":
        return go_name(referenced_definition(schema))
    if kind == "array":
        return f"[]{default_go_type(schema['items'])}"
    if kind == "object":
        return f"map[string]{default_go_type(schema['additionalProperties'])}"
    if kind == "string":
        return "[]uint8" if schema.get("format") == "byte" else "string"
    if kind == "integer":
        return str(schema.get("format", "int64"))
    return {"boolean": "bool", "number": "float64"}.get(kind, "interface {}")


def go_name(definition: str) -> str:
    """Return a type name as Go prints it: C{v1.Pod} for C{io.k8s.api.core.v1.Pod}."""
    package, _, name = definition.rpartition(".")
    return f"{package.rpartition('.')[2]}.{name}"


def go_field(definition: str, name: str, schema: JSONObject, required: bool) -> GoField:
    """
    Return the Go properties of the field C{name} of the type C{definition}.

    @param definition: The key of the type among the definitions.
    @param schema: The field's own schema.
    @param required: Whether the type's schema lists the field as required.
    """
    package, _, type_name = definition.rpartition(".")
    package, _, version = package.rpartition(".")
    group = package.rpartition(".")[2]
    table = exceptions()
    exception = table.get(f"{group}.{version}.{type_name}", _NONE).get(name)
    if exception is None:
        exception = table.get(f"{group}.{type_name}", _NONE).get(name)
    if exception is None:
        return GoField(default_presence(name, schema, required), default_go_type(schema), ())
    presence, go_type, embedded = exception
    return GoField(
        presence or default_presence(name, schema, required),
        go_type.replace("~", f"{version}.") if go_type else default_go_type(schema),
        tuple(embedded.split(".")) if embedded else (),
    )


_FIELD = re.compile(r"(?P<name>[^=:@]+)(?:=(?P<presence>.))?(?::(?P<type>[^@]+))?(?:@(?P<embedded>.+))?")
_Exception = tuple[str | None, str | None, str | None]
_NONE: dict[str, _Exception] = {}


@cache
def exceptions() -> dict[str, dict[str, _Exception]]:
    """Return the table, by C{group.Type} or C{group.version.Type}, then by field."""
    types: dict[str, dict[str, _Exception]] = {}
    group = ""
    fields: dict[str, _Exception] = {}
    for line in TABLE.split("\n"):
        if line.startswith("["):
            group = line[1:-1]
            continue
        words = line.split()
        if words and not line.startswith(" "):
            fields = types.setdefault(f"{group}.{words.pop(0)}", {})
        for word in words:
            found = _FIELD.fullmatch(word)
            assert found is not None, word
            fields[found["name"]] = (found["presence"], found["type"], found["embedded"])
    return types
