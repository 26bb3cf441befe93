"""
Structural schemas: the shape of the objects of a CustomResourceDefinition, compiled to functions that apply it.

One pass over a value copies it, drops the fields that the schema does not have, drops nulls where nothing may be null,
reads the metadata of embedded resources, and fills in defaults. The functions track no paths, as nearly all objects are
valid; L{walk} finds the path of an error. Constraints of values beyond their shape are checked by
L{kubetwist.schema.validation.validator}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from ..api.errors import APIStatusError, shown
from ..api.jsontypes import JSONValue
from ..api.resource import JSONObject
from .mismatch import DecodeError, Mismatch, Unreadable
from .nodes import StructNode, Trail

#: Copies a value; takes a list to which it appends a mark for each unknown field that it drops.
Reader = Callable[[JSONValue, list[str]], JSONValue]
#: Makes a default; takes the same list.
Filler = Callable[[list[str]], JSONValue]

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))
#: Values that are taken as they are.
SCALARS: Final = frozenset((str, int, bool, type(None)))
#: Up to here, a float that is whole is written as an integer.
_MOST_WHOLE: Final = float(1 << 63)
_NOTHING: Final = object()


#: Bytes of JSON that defaults may add to one object: it could not be stored with more. Lists of items whose defaults
#: have defaults in turn would grow without end.
MOST_FILLED: Final = 3 * 1024 * 1024


class Dropped(list[str]):
    """
    The marks that a L{Reader} leaves while it goes through one object.

    @ivar filled: Bytes of JSON that defaults have added to it.
    """

    filled = 0


class NotText(Exception):
    """The kind or apiVersion of an embedded resource is not a string."""


class Structural:
    """
    One level of a structural schema.

    @ivar properties: The schemas of fields that it names.
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
        self.properties = {name: Structural(part) for name, part in (schema.get("properties") or {}).items()}
        additional = schema.get("additionalProperties")
        self.open = additional is not None
        self.additional = Structural(additional) if isinstance(additional, dict) else None
        items = schema.get("items")
        self.items = Structural(items) if isinstance(items, dict) else None
        self.list_type: str = schema.get("x-kubernetes-list-type") or ""
        self.list_map_keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        self._read: Reader | None = None
        self._prune: Reader | None = None
        self._default: Filler | None = None

    @property
    def has_default(self) -> bool:
        """Return whether something is filled in where nothing is."""
        return self.default is not _NOTHING

    def child(self, name: str) -> Structural | None:
        """Return the schema of a field."""
        return self.properties.get(name) or self.additional

    def reader(self, meta: Reader) -> Reader:
        """
        Return the reader for values of this schema.

        @param meta: Reads the metadata of embedded resources.
        """
        if self._read is None:
            self._read = _compiled(self, meta)
        return self._read

    def pruner(self, meta: Reader) -> Reader:
        """
        Return a reader of values of this schema that does the same as L{reader}, without adding defaults.

        Nulls that a default would replace remain, as in apiextensions-apiserver,
        C{pkg/apiserver/schema/defaulting/prunenulls.go}.

        @param meta: Reads the metadata of embedded resources.
        """
        if self._prune is None:
            self._prune = _compiled(self, meta, fills=False)
        return self._prune

    def child_reader(self, meta: Reader, fills: bool) -> Reader:
        """Return L{reader} or, without defaults, L{pruner}."""
        return self.reader(meta) if fills else self.pruner(meta)

    def fill(self, value: JSONValue, meta: Reader, dropped: list[str]) -> JSONValue:
        """
        Copy a value and add defaults, without pruning.

        See apiextensions-apiserver, C{pkg/apiserver/schema/defaulting/algorithm.go}.

        @param meta: As in L{filler}.
        @param dropped: As in L{Filler}.
        """
        if value.__class__ is list:
            items = self.items
            if items is None:
                return copied(value)
            return [items.filled(one, meta, dropped) for one in value]
        if value.__class__ is not dict:
            return copied(value)
        result: JSONObject = {}
        for name, item in value.items():
            part = self.child(name)
            if self.embedded and name == "metadata" and item.__class__ is dict:
                result[name] = _metadata(item, meta)
            else:
                result[name] = copied(item) if part is None else part.filled(item, meta, dropped)
        for name, part in self.properties.items():
            if part.has_default and name not in result:
                result[name] = part.filler(meta)(dropped)
        return result

    def filled(self, value: JSONValue, meta: Reader, dropped: list[str]) -> JSONValue:
        """Return C{value} as L{fill} does, or the default in place of a null that the schema does not allow."""
        if value is None and self.has_default and not self.nullable:
            return self.filler(meta)(dropped)
        return self.fill(value, meta, dropped)

    def filler(self, meta: Reader) -> Filler:
        """Return a factory of the default, complete with the defaults of its own fields."""
        if self._default is None:
            try:
                self._default = _maker(self.reader(meta)(self.default, Dropped()))
            except APIStatusError:
                # Every client that would receive it gets this error.
                self._default = _refuse
        return self._default

    def uniqueness_anywhere(self) -> bool:
        """Return whether lists in here promise that their items differ."""
        return (
            self.list_type in ("set", "map")
            or any(part.uniqueness_anywhere() for part in self.properties.values())
            or (self.additional is not None and self.additional.uniqueness_anywhere())
            or (self.items is not None and self.items.uniqueness_anywhere())
        )

    def embedded_anywhere(self) -> bool:
        """Return whether resources are embedded below this level."""
        parts = [*self.properties.values(), self.additional, self.items]
        return any(part is not None and (part.embedded or part.embedded_anywhere()) for part in parts)


def _maker(value: JSONValue) -> Filler:
    if value.__class__ in SCALARS:
        return lambda dropped: value
    encoded = orjson.dumps(value)
    size = len(encoded)

    def make(dropped: list[str]) -> JSONValue:
        if isinstance(dropped, Dropped):
            dropped.filled += size
            if dropped.filled > MOST_FILLED:
                _refuse(dropped)
        return orjson.loads(encoded)

    return make


def _refuse(dropped: list[str]) -> JSONValue:
    raise APIStatusError.too_large(f"the object is too large with its defaults: limit is {MOST_FILLED}")


def copied(value: JSONValue) -> JSONValue:
    """Return a copy of a JSON value."""
    cls = value.__class__
    if cls is dict:
        return {name: item if item.__class__ in SCALARS else copied(item) for name, item in value.items()}
    if cls is list:
        return [item if item.__class__ in SCALARS else copied(item) for item in value]
    return whole(value) if cls is float else value


def whole(value: float) -> JSONValue:
    """Return a number as Go writes it: C{1.0} is C{1}, which its readers take for an integer."""
    return int(value) if value.is_integer() and -_MOST_WHOLE < value < _MOST_WHOLE else value


def _metadata(value: JSONObject, read: Reader) -> JSONObject:
    """Decode metadata without the fields that do not fit."""
    try:
        decoded: JSONObject = read(value, [])
    except (Mismatch, Unreadable):
        decoded = {}
        for name, item in value.items():
            try:
                decoded |= read({name: item}, [])
            except (Mismatch, Unreadable):
                continue
    return decoded


def with_read_metadata(value: JSONValue, schema: Structural, meta: Reader) -> JSONValue:
    """
    Copy a value with the metadata of embedded resources decoded by their type.

    @param meta: Reads metadata; raises L{Mismatch} or L{Unreadable}.
    """
    if value.__class__ is list and schema.items is not None:
        return [with_read_metadata(one, schema.items, meta) for one in value]
    if value.__class__ is not dict:
        return copied(value)
    result = {}
    for name, item in value.items():
        part = schema.child(name)
        if schema.embedded and name == "metadata" and item.__class__ is dict:
            result[name] = meta(item, [])
        else:
            result[name] = copied(item) if part is None else with_read_metadata(item, part, meta)
    return result


def _unknown(value: JSONValue, unknown: list[str]) -> JSONValue:
    """Return a value without a schema: objects in it lose all their fields."""
    cls = value.__class__
    if cls is dict:
        unknown += value
        return {}
    if cls is list:
        return [_unknown(item, unknown) for item in value]
    return whole(value) if cls is float else value


def _compiled(schema: Structural, meta: Reader, fills: bool = True) -> Reader:
    """
    Compile a schema.

    @param fills: Whether defaults are added.
    """
    if not schema.properties and schema.items is None and not schema.open and not schema.embedded:
        return _preserved if schema.preserve else _leaf
    read_list = _items(schema, meta, fills)
    read_object = _fields(schema, meta, fills)

    def read(value: JSONValue, unknown: list[str]) -> JSONValue:
        cls = value.__class__
        if cls is dict:
            return read_object(value, unknown)
        if cls is list:
            return read_list(value, unknown)
        return whole(value) if cls is float else value

    return read


def _leaf(value: JSONValue, unknown: list[str]) -> JSONValue:
    return value if value.__class__ in SCALARS else _unknown(value, unknown)


def _preserved(value: JSONValue, unknown: list[str]) -> JSONValue:
    return copied(value)


def _items(schema: Structural, meta: Reader, fills: bool) -> Reader:
    items = schema.items
    if items is None:
        return _preserved if schema.preserve else _unknown
    # Items of a preserving list preserve their unknown fields, too.
    read_item = (_loose(items) if schema.preserve else items).child_reader(meta, fills)
    null = items.filler(meta) if fills and items.has_default and not items.nullable else None

    def read(value: list[JSONValue], unknown: list[str]) -> JSONValue:
        if null is None:
            return [None if one is None else read_item(one, unknown) for one in value]
        return [null(unknown) if one is None else read_item(one, unknown) for one in value]

    return read


def _loose(schema: Structural) -> Structural:
    """Return the same schema, but keep unknown fields."""
    loose = Structural({})
    for name in ("additional", "default", "embedded", "items", "nullable", "open", "properties"):
        setattr(loose, name, getattr(schema, name))
    loose.preserve = True
    return loose


def _fields(schema: Structural, meta: Reader, fills: bool) -> Reader:
    readers: dict[str, Reader] = {}
    #: Fields whose nulls remain.
    nulls: set[str] = set()
    defaults: list[tuple[str, Filler]] = []
    for name, part in schema.properties.items():
        if schema.embedded and name in META_FIELDS:
            continue
        readers[name] = part.child_reader(meta, fills)
        if part.nullable or (part.has_default and not fills):
            nulls.add(name)
        if part.has_default and fills:
            defaults.append((name, part.filler(meta)))
    if schema.embedded:
        readers |= {"apiVersion": _text, "kind": _text, "metadata": meta}
    others = _others(schema, meta, fills)
    find = readers.get
    embedded = schema.embedded

    def read(value: JSONObject, unknown: list[str]) -> JSONValue:
        result: JSONObject = {}
        for name, item in value.items():
            reader = find(name)
            if reader is None:
                others(result, name, item, unknown)
            elif item is not None:
                result[name] = item if reader is _leaf and item.__class__ in SCALARS else reader(item, unknown)
            elif name in nulls:
                result[name] = None
            elif embedded and name == "metadata":
                result[name] = {}
        for name, make in defaults:
            if name not in result:
                result[name] = make(unknown)
        return result

    return read


def _others(schema: Structural, meta: Reader, fills: bool) -> Callable[[JSONObject, str, JSONValue, list[str]], None]:
    """Return how fields that are not among the properties are treated."""
    additional = schema.additional

    def drop(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        unknown.append(name)

    def keep(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        result[name] = copied(item)

    def keep_bare(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        result[name] = _unknown(item, unknown)

    if additional is None:
        if schema.preserve:
            return keep
        return keep_bare if schema.open else drop
    fill = additional.filler(meta) if additional.has_default and fills else None
    read = additional.child_reader(meta, fills)
    keeps_null = additional.nullable or (additional.has_default and not fills)

    def follow(result: JSONObject, name: str, item: JSONValue, unknown: list[str]) -> None:
        if item is not None:
            result[name] = read(item, unknown)
        elif keeps_null:
            result[name] = None
        elif fill is not None:
            result[name] = fill(unknown)

    return follow


def _text(value: JSONValue, unknown: list[str]) -> JSONValue:
    if value.__class__ is not str:
        raise NotText
    return value


class CustomType:
    """
    A custom kind in one version, as codecs use it: the counterpart of L{kubetwist.schema.objecttype.ObjectType}.

    @ivar schema: The schema of its root.
    """

    __slots__ = ("_meta", "_read", "schema")

    def __init__(self, schema: JSONObject, object_meta: StructNode) -> None:
        """@param object_meta: The type of C{metadata}."""
        self.schema = Structural(schema)
        self.schema.embedded = True
        self._meta = object_meta
        self._read = self.schema.reader(object_meta.compiled())

    def decode(self, obj: JSONValue, problems: list[str]) -> JSONObject:
        """
        Bring an object into the form in which it is validated and stored.

        @param obj: Decoded JSON; it stays as it is.
        @param problems: Takes a text for each field that was dropped because the schema does not have it.
        @return: A new object that shares nothing with C{obj} that could be changed.
        @raise DecodeError: Its metadata, or that of a resource embedded in it, does not fit.
        @raise APIStatusError: Its defaults are too large (413).
        """
        unknown = Dropped()
        try:
            decoded: JSONObject = self._read(obj, unknown)
        except (Mismatch, Unreadable, NotText):
            self.explain(obj)
            raise
        if unknown:
            problems += self.explain(obj)
        return decoded

    def prune(self, obj: JSONObject) -> JSONObject:
        """
        Normalize an object that was converted to this version, to be returned or stored.

        @return: A new object without unknown fields, and without new defaults: those of the stored version were added
            before the conversion.
        @raise DecodeError: As in L{decode}.
        """
        try:
            pruned: JSONObject = self.schema.pruner(self._meta.compiled())(obj, Dropped())
        except (Mismatch, Unreadable, NotText):
            self.explain(obj)
            raise
        return pruned

    def metadata(self, value: JSONObject) -> JSONObject:
        """
        Decode the metadata of an object without the fields that do not fit.

        See C{GetObjectMetaWithOptions} in apiextensions-apiserver, C{pkg/apiserver/schema/objectmeta/algorithm.go}.
        """
        return _metadata(value, self._meta.compiled())

    def fill(self, obj: JSONObject) -> JSONObject:
        """
        Add defaults without pruning, as after an apply.

        @return: A new object that shares no mutable value with C{obj}.
        @raise APIStatusError: The defaults are too large (413).
        """
        meta = self._meta.compiled()
        filled: JSONObject = self.schema.fill(obj, meta, Dropped())
        return filled

    def explain(self, obj: JSONObject) -> list[str]:
        """
        Return the texts for all unknown fields: those of the metadata first, then the others by their paths.

        @raise DecodeError: Something does not fit.
        """
        found: list[str] = []
        trail = Trail()
        if obj.get("metadata") is not None:
            trail.path.append("metadata")
            self._meta.walk(_by_name(obj["metadata"]), trail)
            found += trail.problems
        walk = _Walk(self._meta)
        walk.value({name: value for name, value in obj.items() if name not in META_FIELDS}, self.schema, "", False)
        found += [f'unknown field "{path}"' for path in sorted(walk.unknown)]
        found += [f'unknown field "{path}"' for path in sorted(walk.unknown_meta)]
        return found

    def default_of(self, name: str) -> JSONValue:
        """Return the default of a field of the object itself; L{None} without one."""
        part = self.schema.properties.get(name)
        if part is None or not part.has_default:
            return None
        return part.filler(self._meta.compiled())(Dropped())

    def zero(self) -> JSONObject:
        """Return an object of this kind without content, as bookmarks carry it."""
        return {}


class _Walk:
    """Goes through a value as the readers do, with paths."""

    def __init__(self, meta: StructNode) -> None:
        self.unknown: list[str] = []
        self.unknown_meta: list[str] = []
        self._meta = meta

    def value(self, value: JSONValue, schema: Structural | None, path: str, loose: bool) -> None:
        if isinstance(value, list):
            for index, item in enumerate(value):
                where = f"{path}[{index}]"
                keeps = loose or (schema is not None and schema.preserve)
                if schema is not None and schema.items is not None:
                    self.value(item, schema.items, where, keeps)
                elif not keeps:
                    self.value(item, None, where, False)
        elif isinstance(value, dict):
            self._object(value, schema, path, loose)

    def _object(self, value: JSONObject, schema: Structural | None, path: str, loose: bool) -> None:
        for name, item in value.items():
            where = f"{path}.{name}" if path else name
            if schema is None:
                self.unknown.append(where)
            elif schema.embedded and path and name in META_FIELDS:
                self._meta_field(name, item, where)
            elif name in schema.properties:
                self.value(item, schema.properties[name], where, False)
            elif schema.additional is not None:
                self.value(item, schema.additional, where, False)
            elif schema.preserve or loose:
                continue
            elif schema.open:
                self.value(item, None, where, False)
            else:
                self.unknown.append(where)

    def _meta_field(self, name: str, value: JSONValue, where: str) -> None:
        if name != "metadata":
            if value is not None and not isinstance(value, str):
                raise _misfit(where, value, "must be a string")
            return
        if value is None:
            return
        trail = Trail()
        try:
            self._meta.walk(_by_name(value), trail)
        except DecodeError as error:
            raise _misfit(where, value, str(error)) from None
        for text in trail.problems:
            field = text.removeprefix('unknown field "').removesuffix('"')
            self.unknown_meta.append(f"{where}.{field}")


def _by_name(value: JSONValue) -> JSONValue:
    """Copy a value with sorted keys, the order in which the reference reads metadata of custom objects."""
    return orjson.loads(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))


def _misfit(where: str, value: JSONValue, why: str) -> DecodeError:
    message = f"{where}: Invalid value: {shown(value)}: {why}"
    return DecodeError(message, message, ())
