"""
Properties of the API's Go types that their OpenAPI definitions do not contain.

kube-apiserver decodes every object into a Go struct and encodes it again. Clients see the effects: fields that are
never omitted, fields that are omitted if they are zero, names of Go types in error messages. Most properties follow
from the schema of a field by the rules below. The exceptions are in L{kubetwist.schema.gofields_table}.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..api.featuregates import Release, parse_release
from ..api.resource import JSONObject
from .gofields_table import TABLE

#: A value with C{omitempty}: a string, number, list or map that is omitted if it is zero.
OMITEMPTY = "o"
#: A pointer with C{omitempty}: a zero value that a client sent is kept.
POINTER_OMITEMPTY = "p"
#: A value without C{omitempty}, which is always encoded; a nil list, map or time as C{null}.
NO_OMITEMPTY = "a"
#: A pointer without C{omitempty}, which is encoded as C{null} if it is nil.
POINTER_NO_OMITEMPTY = "n"
#: A struct with C{omitzero}.
OMITZERO = "z"

#: Definitions whose Go types have a custom JSON form.
LEAVES = frozenset(
    {"Time", "MicroTime", "Quantity", "IntOrString", "RawExtension", "FieldsV1", "JSON"}
    | {"JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray"}
)


class GoField(NamedTuple):
    """
    One field of a Go struct.

    @ivar presence: One of the constants of this module.
    @ivar go_type: The type as Go prints it, without a leading pointer.
    @ivar embedded: The embedded structs that contain the field, outermost first.
    """

    presence: str
    go_type: str
    embedded: tuple[str, ...]

    def item_field(self, schema: JSONObject) -> GoField:
        """Return the properties of the items of a list or map: only the type is defined."""
        go_type = self.go_type
        if go_type.startswith("[]"):
            return GoField(NO_OMITEMPTY, go_type[2:].lstrip("*"), ())
        if go_type.startswith("map["):
            return GoField(NO_OMITEMPTY, go_type.partition("]")[2].lstrip("*"), ())
        # The list or map is a named type.
        return GoField(NO_OMITEMPTY, default_go_type(schema), ())


def json_kind(schema: JSONObject) -> str:
    """Return the JSON type of a schema, C{"$ref"} for a reference, or C{""} for a schema without a type."""
    if "$ref" in schema:
        return "$ref"
    kind = schema.get("type", "")
    return str(kind[0] if isinstance(kind, list) else kind)


def referenced_definition(schema: JSONObject) -> str:
    """Return the name of the definition that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2]


def default_presence(name: str, schema: JSONObject, required: bool) -> str:
    """Return the presence of a field that is not in the table."""
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


def go_field(definition: str, name: str, schema: JSONObject, required: bool, release: Release | None = None) -> GoField:
    """
    Return the Go properties of the field C{name} of the type C{definition}.

    @param definition: The name of the type.
    @param name: The name of the field.
    @param schema: The schema of the field.
    @param required: Whether the schema of the type lists the field as required.
    @param release: The release of the type; the newest one by default.
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
    return GoField(
        exception.presence_in(release) or default_presence(name, schema, required),
        exception.go_type.replace("~", f"{version}.") if exception.go_type else default_go_type(schema),
        tuple(exception.embedded.split(".")) if exception.embedded else (),
    )


class _Exception(NamedTuple):
    """
    One field in the table.

    @ivar presence: The presence, if it is not the default one.
    @ivar earlier: The presence before C{since}, if it was another one.
    @ivar since: The first release with C{presence}, if there is an earlier one.
    """

    presence: str | None
    go_type: str | None
    embedded: str | None
    earlier: str | None = None
    since: Release | None = None

    def presence_in(self, release: Release | None) -> str | None:
        """Return the presence in a release; L{None} for the default one."""
        if release is not None and self.since is not None and release < self.since:
            return self.earlier
        return self.presence


_FIELD = re.compile(
    r"(?P<name>[^=:@]+)(?:=(?P<presence>.)(?:\|(?P<earlier>.)<(?P<since>[0-9.]+))?)?(?::(?P<type>[^@]+))?"
    r"(?:@(?P<embedded>.+))?"
)
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
            match = _FIELD.fullmatch(word)
            assert match is not None, word
            since = parse_release(match["since"]) if match["since"] else None
            fields[match["name"]] = _Exception(
                match["presence"], match["type"], match["embedded"], match["earlier"], since
            )
    return types
