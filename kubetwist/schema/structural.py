"""
Structural schemas of CustomResourceDefinitions, compiled to functions that prune and default objects.

One pass over a value copies it, prunes unknown fields, removes nulls that the schema does not allow, decodes the
metadata of embedded resources, and adds defaults. The functions track no paths, since nearly all objects are valid;
L{CustomType.find_unknown_fields} finds the paths of errors. L{kubetwist.schema.validation.validator} validates values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from ..api.errors import APIStatusError, shown
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from .mismatch import DecodeError, UnmarshalerError, UnmarshalTypeError
from .nodes import DecodePath, StructNode

#: Copies and prunes a value; appends the names of pruned fields to the list.
Reader = Callable[[JSONValue, list[str]], JSONValue]
#: Makes a default value; gets the same list.
DefaultFactory = Callable[[list[str]], JSONValue]

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))
#: Classes of values that need no copy.
SCALARS: Final = frozenset((str, int, bool, type(None)))
#: Absolute limit of whole floats that are encoded as integers.
_MAX_INTEGER_FLOAT: Final = float(1 << 63)
_NOTHING: Final = object()


#: Maximum size in bytes of JSON of the defaults that are added to one object, since a small object can have many items
#: with large defaults.
MAX_DEFAULTED_BYTES: Final = 3 * 1024 * 1024


class PrunedFields(list[str]):
    """
    The names of the pruned fields of one object, without paths.

    @ivar defaulted_bytes: Size in bytes of JSON of the added defaults.
    """

    defaulted_bytes = 0


class NotAStringError(Exception):
    """The kind or apiVersion of an embedded resource is not a string."""


class Structural:
    """
    One level of a structural schema.

    @ivar properties: The schemas of C{properties}, by name.
    @ivar additional: The schema of additional properties; L{None} if there is none.
    @ivar open: Whether additional properties are allowed: C{additionalProperties} is a schema or a boolean.
    @ivar preserve: C{x-kubernetes-preserve-unknown-fields}.
    @ivar embedded: C{x-kubernetes-embedded-resource}.
    @ivar default: The default value, or L{_NOTHING}.
    """

    __slots__ = (
        "_default",
        "_prune",
        "_read",
        "additional",
        "default",
        "embedded",
        "items",
        "list_map_keys",
        "list_type",
        "nullable",
        "open",
        "preserve",
        "properties",
    )

    def __init__(self, schema: JSONObject) -> None:
        self.nullable = bool(schema.get("nullable"))
        self.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        default = schema.get("default")
        self.default = _NOTHING if default is None else default
        self.properties = {name: Structural(child) for name, child in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.open = additional is not None
        self.additional = Structural(additional) if isinstance(additional, dict) else None
        items = schema.get("items")
        self.items = Structural(items) if isinstance(items, dict) else None
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._read: Reader | None = None
        self._prune: Reader | None = None
        self._default: DefaultFactory | None = None

    @property
    def has_default(self) -> bool:
        """Return whether the schema has a default."""
        return self.default is not _NOTHING

    def child(self, name: str) -> Structural | None:
        """Return the schema of a field."""
        return self.properties.get(name) or self.additional

    def reader(self, meta: Reader) -> Reader:
        """
        Return the function that prunes and defaults values.

        @param meta: Decodes the metadata of embedded resources.
        """
        if self._read is None:
            self._read = _compile(self, meta)
        return self._read

    def pruner(self, meta: Reader) -> Reader:
        """
        Return the function that prunes values without adding defaults.

        Nulls that a default would replace remain, as in apiextensions-apiserver,
        C{pkg/apiserver/schema/defaulting/prunenulls.go}.

        @param meta: Decodes the metadata of embedded resources.
        """
        if self._prune is None:
            self._prune = _compile(self, meta, with_defaults=False)
        return self._prune

    def child_reader(self, meta: Reader, with_defaults: bool) -> Reader:
        """Return L{reader} or, without defaults, L{pruner}."""
        return self.reader(meta) if with_defaults else self.pruner(meta)

    def add_defaults(self, value: JSONValue, meta: Reader, pruned: list[str]) -> JSONValue:
        """
        Copy a value and add defaults, without pruning.

        See apiextensions-apiserver, C{pkg/apiserver/schema/defaulting/algorithm.go}.

        @param meta: Decodes the metadata of embedded resources.
        @param pruned: As for L{DefaultFactory}.
        """
        if value.__class__ is list:
            items = self.items
            if items is None:
                return deep_copy(value)
            return [items.with_default(item, meta, pruned) for item in value]
        if value.__class__ is not dict:
            return deep_copy(value)
        result: JSONObject = {}
        for name, item in value.items():
            child = self.child(name)
            if self.embedded and name == "metadata" and item.__class__ is dict:
                result[name] = _metadata(item, meta)
            else:
                result[name] = deep_copy(item) if child is None else child.with_default(item, meta, pruned)
        for name, child in self.properties.items():
            if child.has_default and name not in result:
                result[name] = child.default_factory(meta)(pruned)
        return result

    def with_default(self, value: JSONValue, meta: Reader, pruned: list[str]) -> JSONValue:
        """Return C{value} with defaults, or the default if the value is a null that the schema does not allow."""
        if value is None and self.has_default and not self.nullable:
            return self.default_factory(meta)(pruned)
        return self.add_defaults(value, meta, pruned)

    def default_factory(self, meta: Reader) -> DefaultFactory:
        """Return a factory of the default value, including the defaults of nested fields."""
        if self._default is None:
            try:
                self._default = _make_default_factory(self.reader(meta)(self.default, PrunedFields()))
            except APIStatusError:
                # Every request for such an object fails with this error.
                self._default = _raise_too_large
        return self._default

    def has_unique_lists(self) -> bool:
        """Return whether the schema contains lists of type set or map."""
        return (
            self.list_type in ("set", "map")
            or any(child.has_unique_lists() for child in self.properties.values())
            or (self.additional is not None and self.additional.has_unique_lists())
            or (self.items is not None and self.items.has_unique_lists())
        )

    def has_embedded_resources(self) -> bool:
        """Return whether a nested schema describes an embedded resource."""
        parts = [*self.properties.values(), self.additional, self.items]
        return any(child is not None and (child.embedded or child.has_embedded_resources()) for child in parts)


def _make_default_factory(value: JSONValue) -> DefaultFactory:
    if value.__class__ in SCALARS:
        return lambda pruned: value
    encoded = orjson.dumps(value)
    size = len(encoded)

    def make(pruned: list[str]) -> JSONValue:
        if isinstance(pruned, PrunedFields):
            pruned.defaulted_bytes += size
            if pruned.defaulted_bytes > MAX_DEFAULTED_BYTES:
                _raise_too_large(pruned)
        return orjson.loads(encoded)

    return make


def _raise_too_large(pruned: list[str]) -> JSONValue:
    raise APIStatusError.too_large(f"the object is too large with its defaults: limit is {MAX_DEFAULTED_BYTES}")


def deep_copy(value: JSONValue) -> JSONValue:
    """Return a deep copy of a JSON value, with numbers as in L{go_number}."""
    cls = value.__class__
    if cls is dict:
        return {name: item if item.__class__ in SCALARS else deep_copy(item) for name, item in value.items()}
    if cls is list:
        return [item if item.__class__ in SCALARS else deep_copy(item) for item in value]
    return go_number(value) if cls is float else value


def go_number(value: float) -> JSONValue:
    """Return a number as Go encodes it: C{1.0} as the integer C{1}."""
    return int(value) if value.is_integer() and -_MAX_INTEGER_FLOAT < value < _MAX_INTEGER_FLOAT else value


def _metadata(value: JSONObject, read: Reader) -> JSONObject:
    """Decode metadata without the fields that have the wrong type."""
    try:
        decoded: JSONObject = read(value, [])
    except (UnmarshalTypeError, UnmarshalerError):
        decoded = {}
        for name, item in value.items():
            try:
                decoded |= read({name: item}, [])
            except (UnmarshalTypeError, UnmarshalerError):
                continue
    return decoded


def decode_embedded_metadata(value: JSONValue, schema: Structural, meta: Reader) -> JSONValue:
    """
    Copy a value with the metadata of embedded resources decoded.

    @param meta: Decodes metadata; raises L{UnmarshalTypeError} or L{UnmarshalerError}.
    """
    if value.__class__ is list and schema.items is not None:
        return [decode_embedded_metadata(item, schema.items, meta) for item in value]
    if value.__class__ is not dict:
        return deep_copy(value)
    result = {}
    for name, item in value.items():
        child = schema.child(name)
        if schema.embedded and name == "metadata" and item.__class__ is dict:
            result[name] = meta(item, [])
        else:
            result[name] = deep_copy(item) if child is None else decode_embedded_metadata(item, child, meta)
    return result


def _prune_all(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Copy a value without a schema: all fields of objects are pruned."""
    cls = value.__class__
    if cls is dict:
        unknown += value
        return {}
    if cls is list:
        return [_prune_all(item, unknown) for item in value]
    return go_number(value) if cls is float else value


def _compile(schema: Structural, meta: Reader, with_defaults: bool = True) -> Reader:
    """
    Compile a schema.

    @param with_defaults: Whether defaults are added.
    """
    if not schema.properties and schema.items is None and not schema.open and not schema.embedded:
        return _read_preserved if schema.preserve else _read_scalar
    read_list = _items(schema, meta, with_defaults)
    read_object = _fields(schema, meta, with_defaults)

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        cls = value.__class__
        if cls is dict:
            return read_object(value, unknown)
        if cls is list:
            return read_list(value, unknown)
        return go_number(value) if cls is float else value

    return read


def _read_scalar(value: JSONValue, unknown: list[str]) -> JSONValue:
    return value if value.__class__ in SCALARS else _prune_all(value, unknown)


def _read_preserved(value: JSONValue, unknown: list[str]) -> JSONValue:
    return deep_copy(value)


def _items(schema: Structural, meta: Reader, with_defaults: bool) -> Reader:
    items = schema.items
    if items is None:
        return _read_preserved if schema.preserve else _prune_all
    # x-kubernetes-preserve-unknown-fields of a list applies to the fields of its items.
    read_item = (_preserving_copy(items) if schema.preserve else items).child_reader(meta, with_defaults)
    null = items.default_factory(meta) if with_defaults and items.has_default and not items.nullable else None

    def read(value: list[JSONValue], unknown: list[str]) -> JSONValue:
        if null is None:
            return [None if item is None else read_item(item, unknown) for item in value]
        return [null(unknown) if item is None else read_item(item, unknown) for item in value]

    return read


def _preserving_copy(schema: Structural) -> Structural:
    """Return a copy of a schema that preserves unknown fields."""
    preserving = Structural({})
    for name in ("additional", "default", "embedded", "items", "nullable", "open", "properties"):
        setattr(preserving, name, getattr(schema, name))
    preserving.preserve = True
    return preserving


def _fields(schema: Structural, meta: Reader, with_defaults: bool) -> Reader:
    readers: dict[str, Reader] = {}
    #: Fields with nulls that remain.
    nulls: set[str] = set()
    defaults: list[tuple[str, DefaultFactory]] = []
    for name, child in schema.properties.items():
        if schema.embedded and name in META_FIELDS:
            continue
        readers[name] = child.child_reader(meta, with_defaults)
        if child.nullable or (child.has_default and not with_defaults):
            nulls.add(name)
        if child.has_default and with_defaults:
            defaults.append((name, child.default_factory(meta)))
    if schema.embedded:
        readers |= {"apiVersion": _text, "kind": _text, "metadata": meta}
    read_additional = _additional_reader(schema, meta, with_defaults)
    find = readers.get
    embedded = schema.embedded

    def read(value: JSONObject, unknown: list[str]) -> JSONValue:
        result: JSONObject = {}
        for name, item in value.items():
            reader = find(name)
            if reader is None:
                read_additional(result, name, item, unknown)
            elif item is not None:
                result[name] = item if reader is _read_scalar and item.__class__ in SCALARS else reader(item, unknown)
            elif name in nulls:
                result[name] = None
            elif embedded and name == "metadata":
                result[name] = {}
        for name, make in defaults:
            if name not in result:
                result[name] = make(unknown)
        return result

    return read


def _additional_reader(
    schema: Structural, meta: Reader, with_defaults: bool
) -> Callable[[JSONObject, str, JSONValue, list[str]], None]:
    """Return a function that handles a field that is not in C{properties}."""
    additional = schema.additional

    def drop(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        unknown.append(name)

    def keep(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        result[name] = deep_copy(item)

    def keep_pruned(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        result[name] = _prune_all(item, unknown)

    if additional is None:
        if schema.preserve:
            return keep
        return keep_pruned if schema.open else drop
    make_default = additional.default_factory(meta) if additional.has_default and with_defaults else None
    read = additional.child_reader(meta, with_defaults)
    keeps_null = additional.nullable or (additional.has_default and not with_defaults)

    def read_item(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        if item is not None:
            result[name] = read(item, unknown)
        elif keeps_null:
            result[name] = None
        elif make_default is not None:
            result[name] = make_default(unknown)

    return read_item


def _text(value: JSONValue, unknown: list[str]) -> JSONValue:
    if value.__class__ is not str:
        raise NotAStringError
    return value


class CustomType:
    """
    A custom kind in one version, the counterpart of L{kubetwist.schema.objecttype.ObjectType}.

    @ivar schema: The structural schema.
    """

    __slots__ = ("_meta", "_read", "schema")

    def __init__(self, schema: JSONObject, object_meta: StructNode) -> None:
        """
        @param schema: The schema of the version.
        @param object_meta: The type of C{metadata}.
        """
        self.schema = Structural(schema)
        self.schema.embedded = True
        self._meta = object_meta
        self._read = self.schema.reader(object_meta.compiled())

    def decode(self, obj: JSONValue, problems: list[str]) -> JSONObject:
        """
        Prune and default an object, and decode its metadata.

        @param obj: Decoded JSON; not modified.
        @param problems: Receives a message for each unknown field that was pruned.
        @return: A new object that shares no mutable value with C{obj}.
        @raise DecodeError: The metadata of the object or of an embedded resource has the wrong type.
        @raise APIStatusError: The defaults are too large (413).
        """
        unknown = PrunedFields()
        try:
            decoded: JSONObject = self._read(obj, unknown)
        except (UnmarshalTypeError, UnmarshalerError, NotAStringError):
            self.find_unknown_fields(obj)
            raise
        if unknown:
            problems += self.find_unknown_fields(obj)
        return decoded

    def prune(self, obj: JSONObject) -> JSONObject:
        """
        Prune an object that was converted to this version.

        @return: A new object without unknown fields and without new defaults; the defaults of the stored version were
            added before the conversion.
        @raise DecodeError: As in L{decode}.
        """
        try:
            pruned: JSONObject = self.schema.pruner(self._meta.compiled())(obj, PrunedFields())
        except (UnmarshalTypeError, UnmarshalerError, NotAStringError):
            self.find_unknown_fields(obj)
            raise
        return pruned

    def metadata(self, value: JSONObject) -> JSONObject:
        """
        Decode the metadata of an object without the fields that have the wrong type.

        See C{GetObjectMetaWithOptions} in apiextensions-apiserver, C{pkg/apiserver/schema/objectmeta/algorithm.go}.
        """
        return _metadata(value, self._meta.compiled())

    def add_defaults(self, obj: JSONObject) -> JSONObject:
        """
        Add defaults without pruning, as after an apply.

        @return: A new object that shares no mutable value with C{obj}.
        @raise APIStatusError: The defaults are too large (413).
        """
        meta = self._meta.compiled()
        result: JSONObject = self.schema.add_defaults(obj, meta, PrunedFields())
        return result

    def find_unknown_fields(self, obj: JSONObject) -> list[str]:
        """
        Return messages for all unknown fields: first those in the metadata, then the rest sorted by path.

        @raise DecodeError: A value has the wrong type.
        """
        errors: list[str] = []
        decode_path = DecodePath()
        if obj.get("metadata") is not None:
            decode_path.elements.append("metadata")
            self._meta.walk(_by_name(obj["metadata"]), decode_path)
            errors += decode_path.strict_errors
        walk = _UnknownFieldFinder(self._meta)
        walk.value({name: value for name, value in obj.items() if name not in META_FIELDS}, self.schema, "", False)
        errors += [f'unknown field "{path}"' for path in sorted(walk.unknown)]
        errors += [f'unknown field "{path}"' for path in sorted(walk.unknown_meta)]
        return errors

    def default_for(self, name: str) -> JSONValue:
        """Return the default of a top-level field, or L{None} without a default."""
        child = self.schema.properties.get(name)
        if child is None or not child.has_default:
            return None
        return child.default_factory(self._meta.compiled())(PrunedFields())

    def zero(self) -> JSONObject:
        """Return an object of this kind without content, as bookmarks carry it."""
        return {}


class _UnknownFieldFinder:
    """Slow pass over a value that finds the paths of unknown fields."""

    def __init__(self, meta: StructNode) -> None:
        self.unknown: list[str] = []
        self.unknown_meta: list[str] = []
        self._meta = meta

    def value(self, value: JSONValue, schema: Structural | None, path: str, preserving: bool) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                child_path = f"{path}[{index}]"
                keeps = preserving or (schema is not None and schema.preserve)
                if schema is not None and schema.items is not None:
                    self.value(item, schema.items, child_path, keeps)
                elif not keeps:
                    self.value(item, None, child_path, False)
        elif isinstance(value, dict):
            self._object(value, schema, path, preserving)

    def _object(self, value: JSONObject, schema: Structural | None, path: str, preserving: bool) -> None:
        for name, item in value.items():
            child_path = f"{path}.{name}" if path else name
            if schema is None:
                self.unknown.append(child_path)
            elif schema.embedded and path and name in META_FIELDS:
                self._meta_field(name, item, child_path)
            elif name in schema.properties:
                self.value(item, schema.properties[name], child_path, False)
            elif schema.additional is not None:
                self.value(item, schema.additional, child_path, False)
            elif schema.preserve or preserving:
                continue
            elif schema.open:
                self.value(item, None, child_path, False)
            else:
                self.unknown.append(child_path)

    def _meta_field(self, name: str, value: JSONValue, child_path: str) -> None:
        if name != "metadata":
            if value is not None and not isinstance(value, str):
                raise _invalid_value(child_path, value, "must be a string")
            return
        if value is None:
            return
        decode_path = DecodePath()
        try:
            self._meta.walk(_by_name(value), decode_path)
        except DecodeError as error:
            raise _invalid_value(child_path, value, str(error)) from None
        for text in decode_path.strict_errors:
            field = text.removeprefix('unknown field "').removesuffix('"')
            self.unknown_meta.append(f"{child_path}.{field}")


def _by_name(value: JSONValue) -> JSONValue:
    """Copy a value with sorted keys, the order in which apiextensions-apiserver decodes metadata."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def _invalid_value(child_path: str, value: JSONValue, message: str) -> DecodeError:
    message = f"{child_path}: Invalid value: {shown(value)}: {message}"
    return DecodeError(message, message, ())
