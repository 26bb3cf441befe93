"""
Builder of L{kubetwist.schema.merge.types} from OpenAPI schemas.

Lists are atomic unless C{x-kubernetes-list-type} or, if it is missing, C{x-kubernetes-patch-strategy} defines something
else. Structs and maps are granular unless C{x-kubernetes-map-type} is C{atomic}.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Final

from ...api.resource import JSONObject
from ..gofields import (
    NO_OMITEMPTY,
    go_field,
    json_kind,
    referenced_definition,
)
from .lists import (
    AtomicList,
    MapList,
    SetList,
)
from .types import (
    AtomType,
    MapType,
    MergeType,
    Scalar,
)

UNTYPED: Final = Scalar("untyped")
#: The deduced type of structured-merge-diff, for values without a schema.
DEDUCED: Final = AtomType(UNTYPED, AtomicList(), MapType(False))
DEDUCED.map_type.define({}, DEDUCED)
#: An untyped value that is atomic.
OPAQUE: Final = AtomType(UNTYPED, AtomicList(), MapType(True))
OPAQUE.map_type.define({}, DEDUCED)

#: Types whose values are never compared, or are decoded to a number or a string.
_NEVER_UNTYPED: Final = frozenset(
    (
        "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    )
)

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

_SPECIAL: Final[dict[str, MergeType]] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": UNTYPED,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": OPAQUE,
}

#: Default values of keys that Go types declare with C{+default}; the rest follows from the types.
_KEY_DEFAULTS: Final = {
    ("io.k8s.api.core.v1.ContainerPort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.ServicePort", "protocol"): "TCP",
    ("io.k8s.api.core.v1.LocalObjectReference", "name"): "",
}

_ZEROS: Final[JSONObject] = {"string": "", "integer": 0, "number": 0, "boolean": False}


class MergeTypeBuilder:
    """
    Builder of merge types; each definition is built once.

    @ivar get_schema: Returns the schema of a definition.
    """

    def __init__(self, get_schema: Callable[[str], JSONObject]) -> None:
        self.get_schema = get_schema
        self._types: dict[str, MergeType] = dict(_SPECIAL)
        #: Types that are incomplete, or refer to incomplete ones: only the thread that builds them may use them.
        self._incomplete: dict[str, MergeType] = {}
        self._lock = RLock()

    def type_for_definition(self, definition: str) -> MergeType:
        """Return the type of a definition."""
        existing = self._types.get(definition)
        if existing is not None:
            return existing
        with self._lock:
            existing = self._types.get(definition) or self._incomplete.get(definition)
            return self._build(definition) if existing is None else existing

    def _build(self, definition: str) -> MergeType:
        """Build a type and all types that it refers to."""
        incomplete, outermost = self._incomplete, not self._incomplete
        built: MergeType
        try:
            schema = self.get_schema(definition)
            if json_kind(schema) == "object":
                built = incomplete[definition] = MapType(_is_atomic(schema))
                self._define(built, schema, False)
            else:
                built = incomplete[definition] = self.inline(schema)
            if definition in _NEVER_UNTYPED:
                built.mark_typed()
            if outermost:
                self._types.update(incomplete)
        finally:
            if outermost:
                incomplete.clear()
        return built

    def custom_resource_type(self, schema: JSONObject, preserve_unknown: bool = False) -> MapType:
        """
        Return the type of a custom resource.

        @param schema: The structural schema; C{apiVersion}, C{kind} and C{metadata} are added.
        @param preserve_unknown: Whether unknown fields are preserved.
        """
        properties = {
            **schema.get("properties", {}),
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"$ref": OBJECT_META},
        }
        map_type = MapType(_is_atomic(schema))
        self._define(map_type, {**schema, "properties": properties}, preserve_unknown)
        return map_type

    def inline(self, schema: JSONObject, preserve: bool = False) -> MergeType:
        """
        Return the type of a schema within another.

        @param schema: The schema.
        @param preserve: Whether an enclosing schema preserves unknown fields.
        """
        if "$ref" not in schema and len(schema.get("allOf", ())) == 1 and "$ref" in schema["allOf"][0]:
            schema = {**schema, **schema["allOf"][0]}
        kind = json_kind(schema)
        if kind == "$ref":
            existing = self.type_for_definition(referenced_definition(schema))
            if isinstance(existing, MapType):
                if not existing.atomic and _is_atomic(schema):
                    return existing.as_atomic()
                if existing.atomic and schema.get("x-kubernetes-map-type") == "granular":
                    return self._granular(referenced_definition(schema))
            return existing
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        if kind == "object":
            return self._map_type(schema, preserve)
        if kind == "array":
            return self._list(schema, preserve)
        if kind in ("integer", "number"):
            return _NUMERIC
        if kind == "boolean":
            return _BOOLEAN
        if kind == "string":
            return _STRING if schema.get("format", "") in ("", "byte") else UNTYPED
        return AtomType(UNTYPED, self._list(schema, preserve), self._map_type(schema, preserve))

    def _granular(self, definition: str) -> MapType:
        """Return the granular variant of the type of an atomic definition."""
        map_type = MapType(False)
        self._define(map_type, self.get_schema(definition), False)
        return map_type

    def _map_type(self, schema: JSONObject, preserve: bool) -> MapType:
        map_type = MapType(_is_atomic(schema))
        self._define(map_type, schema, preserve)
        return map_type

    def _define(self, map_type: MapType, schema: JSONObject, preserve: bool) -> None:
        preserve = preserve or schema.get("x-kubernetes-preserve-unknown-fields") is True
        properties = schema.get("properties", {})
        additional = schema.get("additionalProperties")
        element: MergeType | None = None
        if isinstance(additional, dict):
            element = self.inline(additional, preserve)
        elif additional or (additional is None and (preserve or not properties)):
            element = DEDUCED
        map_type.define(
            {name: self.inline(property_schema, preserve) for name, property_schema in properties.items()}, element
        )

    def _list(self, schema: JSONObject, preserve: bool) -> MergeType:
        items = schema.get("items")
        item = OPAQUE if items is None else self.inline(items, preserve)
        keys = _keys(schema)
        if keys is None:
            return AtomicList(item)
        if not keys:
            return SetList(item)
        result = MapList(item, keys)
        result.define(self._key_defaults(items or {}, keys))
        return result

    def _key_defaults(self, items: JSONObject, keys: list[str]) -> JSONObject:
        """Return the default values of keys that an item may omit."""
        if "$ref" not in items:
            properties = items.get("properties", {})
            return {
                key: properties[key]["default"] for key in keys if properties.get(key, {}).get("default") is not None
            }
        definition = referenced_definition(items)
        schema = self.get_schema(definition)
        required = schema.get("required", ())
        defaults = {}
        for key in keys:
            property_schema = schema.get("properties", {}).get(key)
            if (definition, key) in _KEY_DEFAULTS:
                defaults[key] = _KEY_DEFAULTS[definition, key]
            elif (
                property_schema is not None
                and go_field(definition, key, property_schema, key in required).presence == NO_OMITEMPTY
            ):
                zero = _ZEROS.get(json_kind(property_schema))
                if zero is not None:
                    defaults[key] = zero
        return defaults


_NUMERIC: Final = Scalar("numeric")
_BOOLEAN: Final = Scalar("boolean")
_STRING: Final = Scalar("string")


def _is_atomic(schema: JSONObject) -> bool:
    return schema.get("x-kubernetes-map-type") == "atomic"


def _keys(schema: JSONObject) -> list[str] | None:
    """Return the keys of the items of a list; an empty list for sets, L{None} for atomic lists."""
    kind = schema.get("x-kubernetes-list-type")
    if kind is not None:
        return list(schema.get("x-kubernetes-list-map-keys", ())) if kind in ("map", "set") else None
    if "merge" in schema.get("x-kubernetes-patch-strategy", "").split(","):
        key = schema.get("x-kubernetes-patch-merge-key")
        return [key] if key else []
    return None
