"""
CEL types and values from OpenAPI schemas; see kubernetes/apiserver, C{pkg/cel/common/schemas.go}.

Expressions cannot name fields that the schema does not declare. Sizes for cost estimates are limited by the schema and
by the maximum size of a request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubetwist.cel import schemavalues, types
from kubetwist.cel.errors import CelError
from kubetwist.cel.estimates import Estimate
from kubetwist.cel.names import RESERVED, escape
from kubetwist.cel.schemavalues import (
    Convert,
    SchemaList,
    SchemaMap,
    SchemaMapList,
    SchemaObject,
    SchemaSet,
)
from kubetwist.cel.types import ObjectType, Type
from kubetwist.cel.values import Value

from ..api.jsontypes import JSONValue

Schema = Mapping[str, JSONValue]
#: Returns the schema that a C{$ref} names.
Resolve = Callable[[str], Schema | None]

MAX_REQUEST_SIZE: Final = 3 * 1024 * 1024
_MAX_STRING: Final = MAX_REQUEST_SIZE - 2

_STRING: Final[Schema] = {"type": "string"}
_METADATA: Final[Schema] = {"type": "object", "properties": {"name": _STRING, "generateName": _STRING}}

#: By format: the type, the minimum size in JSON, the maximum length, and the conversion.
_FORMATS: Final[dict[str, tuple[Type, int, int, Convert]]] = {
    "byte": (types.BYTES, 2, _MAX_STRING, schemavalues.parse_bytes),
    "duration": (types.DURATION, 3, 32, schemavalues.parse_duration),
    "date": (types.TIMESTAMP, 12, 12, schemavalues.parse_date),
    "date-time": (types.TIMESTAMP, 21, 32, schemavalues.parse_datetime),
}


class DeclType:
    """
    The CEL type of a schema (C{DeclType} of kubernetes/apiserver).

    @ivar type: The type for the checker.
    @ivar fields: The fields of an object, by identifier.
    @ivar element: The element type of a list or map.
    @ivar is_map: Whether it is a map type.
    @ivar max_elements: The maximum number of elements or characters; 0 for values without a size.
    @ivar min_size: The minimum size in JSON.
    @ivar convert: Converts raw JSON to values; C{None} if no conversion is needed.
    """

    __slots__ = ("convert", "element", "fields", "is_map", "max_elements", "min_size", "type")

    def __init__(
        self,
        type_: Type,
        min_size: int,
        max_elements: int = 0,
        convert: Convert | None = None,
        fields: Mapping[str, DeclType] | None = None,
        element: DeclType | None = None,
        is_map: bool = False,
    ) -> None:
        self.type = type_
        self.min_size = min_size
        self.max_elements = max_elements
        self.convert = convert
        self.fields = fields
        self.element = element
        self.is_map = is_map

    def to_cel(self, raw: JSONValue) -> Value:
        """Convert raw JSON to a value of this type."""
        return raw if self.convert is None else self.convert(raw)

    def at(self, path: tuple[str, ...]) -> DeclType | None:
        """Return the type at a path below this one: field names, C{@items}, C{@values}, C{@keys}."""
        node: DeclType | None = self
        for name in path:
            if node is None:
                return None
            if name in ("@items", "@values"):
                node = node.element
            elif name == "@keys":
                node = _KEY if node.is_map else None
            else:
                node = (node.fields or {}).get(name)
        return node

    def size_of(self, path: tuple[str, ...], type_: Type) -> Estimate | None:
        """Return the size of the value at a path whose first part is a variable of this type."""
        node = self.at(path[1:])
        return None if node is None else Estimate(0, node.max_elements)


_KEY: Final = DeclType(types.STRING, 2)
_BOOL: Final = DeclType(types.BOOL, 4)
_INT: Final = DeclType(types.INT, 1)
_DOUBLE: Final = DeclType(types.DOUBLE, 1, convert=schemavalues.parse_number)


def schema_decl_type(
    schema: Schema, name: str, resource_root: bool = False, resolve: Resolve | None = None
) -> DeclType | None:
    """
    Return the CEL type of a schema.

    @param schema: The OpenAPI schema.
    @param name: The name of the type; the names of nested object types are derived from it.
    @param resource_root: Whether the schema describes a whole resource, which always has kind, apiVersion and
        metadata.name.
    @param resolve: Resolves C{$ref}; a recursive reference becomes an object without fields.
    @return: C{None} if the schema has no CEL type.
    """
    return _DeclTypeBuilder(resolve).schema_decl_type(schema, name, resource_root)


class _DeclTypeBuilder:
    def __init__(self, resolve: Resolve | None) -> None:
        self._resolve = resolve
        self._open_references: list[str] = []

    def schema_decl_type(self, schema: Schema, name: str, root: bool) -> DeclType | None:
        reference = _reference(schema)
        if reference is None or self._resolve is None:
            return self._nullable(schema, self._schema_decl_type(schema, name, root))
        if reference in self._open_references:
            return self._schema_decl_type({"type": "object"}, name, root)
        target = self._resolve(reference)
        if target is None:
            return None
        self._open_references.append(reference)
        try:
            return self.schema_decl_type(target, name, root)
        finally:
            self._open_references.pop()

    @staticmethod
    def _nullable(schema: Schema, decl_type: DeclType | None) -> DeclType | None:
        """Return a type whose conversion accepts null if the schema is nullable."""
        if decl_type is None or decl_type.convert is None:
            return decl_type
        convert, allowed = decl_type.convert, bool(schema.get("nullable"))

        def checked(raw: JSONValue) -> Value:
            if raw is not None:
                return convert(raw)
            if allowed:
                return None
            raise CelError("invalid data, got null for schema with nullable=false")

        return DeclType(
            decl_type.type,
            decl_type.min_size,
            decl_type.max_elements,
            checked,
            decl_type.fields,
            decl_type.element,
            decl_type.is_map,
        )

    def _schema_decl_type(self, schema: Schema, name: str, root: bool) -> DeclType | None:
        if schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string":
            length = schema.get("maxLength")
            return DeclType(types.DYN, 1, _MAX_STRING if length is None else max(length, 0) * 4)
        kind = schema.get("type")
        if root:
            schema = _with_metadata(schema)
        if kind == "array":
            return self._list(schema, name)
        if kind == "object":
            values = schema.get("additionalProperties")
            if isinstance(values, Mapping):
                return self._map(schema, values, name)
            return self._object(schema, name)
        if kind == "string":
            return _string(schema)
        if kind == "boolean":
            return _BOOL
        if kind == "number":
            return _DOUBLE
        return _INT if kind == "integer" else None

    def _list(self, schema: Schema, name: str) -> DeclType | None:
        items = schema.get("items")
        if not isinstance(items, Mapping):
            return None
        element = self.schema_decl_type(items, f"{name}.@idx", bool(items.get("x-kubernetes-embedded-resource")))
        if element is None:
            return None
        max_count = schema.get("maxItems")
        count = (MAX_REQUEST_SIZE - 2) // (element.min_size + 1) if max_count is None else max(max_count, 0)
        convert = _list_conversion(schema, element.convert)
        return DeclType(types.list_of(element.type), 2, count, convert, element=element)

    def _map(self, schema: Schema, values: Schema, name: str) -> DeclType | None:
        element = self.schema_decl_type(values, f"{name}.@elem", bool(values.get("x-kubernetes-embedded-resource")))
        if element is None:
            return None
        max_count = schema.get("maxProperties")
        count = (MAX_REQUEST_SIZE - 2) // (element.min_size + 6) if max_count is None else max(max_count, 0)
        type_ = types.map_of(types.STRING, element.type)
        return DeclType(type_, 2, count, _map_conversion(element.convert), element=element, is_map=True)

    def _object(self, schema: Schema, name: str) -> DeclType:
        properties: Mapping[str, Schema] = schema.get("properties") or {}
        required = set(schema.get("required") or ())
        fields: dict[str, DeclType] = {}
        convert: dict[str, Convert | None] = {}
        names: dict[str, str] = {}
        is_passthrough = True
        size = 2
        for key, prop in properties.items():
            identifier = escape(key)
            field = self.schema_decl_type(
                prop, f"{name}.{identifier or key}", bool(prop.get("x-kubernetes-embedded-resource"))
            )
            convert[key] = None if field is None else field.convert
            if field is None:
                continue
            if identifier is not None:
                fields[identifier] = field
                if identifier != key:
                    names[identifier] = key
            is_passthrough = is_passthrough and identifier == key and field.convert is None and not prop.get("nullable")
            if key in required and prop.get("default") is None:
                size += len(key.encode()) + field.min_size + 4
        type_ = ObjectType(name, _field_types(fields))
        return DeclType(
            type_, size, convert=None if is_passthrough else _object_conversion(names, convert), fields=fields
        )


def _field_types(fields: Mapping[str, DeclType]) -> dict[str, Type]:
    """Return the types of fields; after a dot, a reserved word needs no escape."""
    result = {identifier: field.type for identifier, field in fields.items()}
    for word in RESERVED:
        escaped = f"__{word}__"
        if escaped in result:
            result.setdefault(word, result[escaped])
    return result


def _reference(schema: Schema) -> str | None:
    result = schema.get("$ref")
    if isinstance(result, str):
        return result
    for part in schema.get("allOf") or ():
        result = _reference(part)
        if result is not None:
            return result
    return None


def _with_metadata(schema: Schema) -> Schema:
    """Return the schema of a resource with kind, apiVersion and metadata."""
    properties = dict(schema.get("properties") or {})
    metadata = properties.get("metadata") or {}
    known = metadata.get("properties") or {}
    if all(properties.get(name, {}).get("type") == "string" for name in ("kind", "apiVersion")) and all(
        known.get(name, {}).get("type") == "string" for name in ("name", "generateName")
    ):
        return schema
    return {**schema, "properties": {**properties, "kind": _STRING, "apiVersion": _STRING, "metadata": _METADATA}}


def _string(schema: Schema) -> DeclType:
    length = schema.get("maxLength")
    known = _FORMATS.get(schema.get("format", ""))
    if known is not None:
        type_, min_size, max_count, convert = known
        if type_ is types.BYTES and length is not None:
            max_count = max(length, 0)
        return DeclType(type_, min_size, max_count, convert)
    if length is not None:
        # A character has up to four bytes, and the limit of the request is in bytes.
        max_count = max(length, 0) * 4
    elif schema.get("enum"):
        max_count = max((len(value.encode()) for value in schema["enum"] if isinstance(value, str)), default=0)
    else:
        max_count = _MAX_STRING
    return DeclType(types.STRING, 2, max_count)


def _type_mismatch(description: str, kind: str) -> CelError:
    return CelError(f"invalid data, expected {description} for the provided schema with type={kind}")


def _list_conversion(schema: Schema, element: Convert | None) -> Convert | None:
    kind = schema.get("x-kubernetes-list-type")
    if kind == "set":
        return lambda raw: SchemaSet(_require_list(raw), element)
    if kind == "map":
        keys = [escape(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ()]
        return lambda raw: SchemaMapList(_require_list(raw), element, keys)
    if element is None:
        return None
    return lambda raw: SchemaList(_require_list(raw), element)


def _require_list(raw: JSONValue) -> list[JSONValue]:
    if type(raw) is not list:
        raise _type_mismatch("an array", "array")
    return raw


def _map_conversion(element: Convert | None) -> Convert | None:
    if element is None:
        return None
    each = element

    def convert(raw: JSONValue) -> Value:
        if type(raw) is not dict:
            raise _type_mismatch("a map", "object")
        return SchemaMap(raw, each)

    return convert


def _object_conversion(names: Mapping[str, str], fields: Mapping[str, Convert | None]) -> Convert:
    # After a dot, a reserved word needs no escape.
    def convert(raw: JSONValue) -> Value:
        if type(raw) is not dict:
            raise _type_mismatch("a map", "object")
        return SchemaObject(raw, names, fields)

    return convert
