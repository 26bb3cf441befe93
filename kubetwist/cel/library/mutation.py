"""
Types of MutatingAdmissionPolicies: C{Object{spec: Object.spec{replicas: 3}}} and C{JSONPatch{op: "add", ...}}.

See kubernetes/apiserver, C{pkg/cel/mutation}. C{Object} and the types below it have no schema: they have
every field, of type C{dyn}. Whether type names match field paths is checked in the value by L{type_mismatches}.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Final

from kubetwist.api.go.quote import quoted
from kubetwist.cel.errors import CelError
from kubetwist.cel.standard.times import format_duration, format_timestamp
from kubetwist.cel.types import DYN, STRING, Kind, ObjectType, Type, list_of
from kubetwist.cel.values import LISTS, MAPS, Duration, MapValue, OpaqueValue, Timestamp, UInt, Value, entries, equal

from ...api.jsontypes import JSONObject, JSONValue

_OBJECT: Final = "Object"

#: Maximum integer that is written as a JSON number; larger ones are written as strings.
_MAX_JSON_INTEGER: Final = (1 << 53) - 1
#: Maximum nesting depth of values; deeper ones would exceed the cost limit.
_MAX_DEPTH: Final = 200


class _AnyField(Mapping[str, Type]):
    """Fields of a type without a schema: every name is a field of type C{dyn}."""

    def __getitem__(self, name: str) -> Type:
        return DYN

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class ObjectValue(MapValue):
    """The value of C{Object.spec{...}}."""

    __slots__ = ("cel_type", "fields")

    def __init__(self, cel_type: Type, fields: Mapping[str, Value]) -> None:
        self.cel_type = cel_type
        self.fields = fields

    def __getitem__(self, name: str) -> Value:
        return self.fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)


_PATCH_FIELDS: Final = frozenset(("op", "path", "from", "value"))


class JSONPatch(OpaqueValue):
    """
    One operation of a JSON patch.

    @ivar has_value: Whether C{value} is set; it may be null.
    """

    __slots__ = ("has_value", "op", "path", "source", "value")

    def __init__(self, fields: Mapping[str, Value]) -> None:
        for name in fields.keys() - _PATCH_FIELDS:
            raise CelError(f"unexpected JSONPatchType field '{name}'")
        self.op = _string_field(fields, "op")
        self.path = _string_field(fields, "path")
        self.source = _string_field(fields, "from")
        self.has_value = "value" in fields
        self.value = fields.get("value")

    def equals(self, other: Value) -> bool:
        """Compare all fields."""
        return (
            isinstance(other, JSONPatch)
            and (self.op, self.path, self.source, self.has_value)
            == (other.op, other.path, other.source, other.has_value)
            and equal(self.value, other.value)
        )

    def operation(self) -> JSONObject:
        """
        Convert the operation to JSON.

        @raise CelError: The value cannot be converted, or a type name in it does not match its path.
        """
        operation: JSONObject = {"op": self.op, "path": self.path}
        if self.source:
            operation["from"] = self.source
        if self.has_value:
            mismatches = type_mismatches(self.value) if isinstance(self.value, ObjectValue) else ""
            if mismatches:
                raise CelError(f"type mismatch: {mismatches}")
            try:
                operation["value"] = to_json(self.value)
            except CelError as error:
                problem = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"
                raise CelError(f"{problem}: {error.message}") from None
        return operation


def _string_field(fields: Mapping[str, Value], name: str) -> str:
    value = fields.get(name, "")
    if type(value) is not str:
        raise CelError(f"unexpected type {_go_type(value)} for JSONPatchType '{name}' field")
    return value


def _go_type(value: Value) -> str:
    names = {bool: "bool", int: "int64", UInt: "uint64", float: "float64", bytes: "[]uint8"}
    return names.get(type(value), "interface {}")


def _object_type(name: str) -> ObjectType:
    type_ = ObjectType(name, _AnyField(), lambda fields: ObjectValue(type_, fields))
    return type_


OBJECT_TYPE: Final = _object_type(_OBJECT)


class _PatchFields(dict[str, Type]):
    """Types of the fields of a JSON patch. As in kube-apiserver, other names resolve to a type without a name."""

    def get(self, name: str, default: JSONValue = None) -> JSONValue:
        """Return the type of a field, or a type without a name for unknown fields."""
        return super().get(name, _NO_TYPE)


_NO_TYPE: Final = Type(Kind.OPAQUE, "")
JSON_PATCH_TYPE: Final = ObjectType(
    "JSONPatch", _PatchFields(op=STRING, path=STRING, value=DYN, **{"from": STRING}), JSONPatch
)
JSON_PATCHES_TYPE: Final = list_of(JSON_PATCH_TYPE)
JSONPatch.cel_type = JSON_PATCH_TYPE

_TYPES: Final = {_OBJECT: OBJECT_TYPE, JSON_PATCH_TYPE.name: JSON_PATCH_TYPE}


def find_type(name: str) -> Type | None:
    """Return the type with the name C{Object}, C{Object.spec.containers} or C{JSONPatch}."""
    type_ = _TYPES.get(name)
    return type_ or (_object_type(name) if name.startswith(f"{_OBJECT}.") else None)


def type_mismatches(value: ObjectValue) -> str:
    """
    Check that the type names of all nested objects match their field paths.

    @return: The mismatches, one per line; C{""} if there are none.
    """
    return "\n".join(_find_type_mismatches(value, value.cel_type.name, _MAX_DEPTH))


def _find_type_mismatches(value: Value, path: str, depth: int) -> Iterator[str]:
    if not depth:
        yield f"{quoted(path)} nests too deep"
    elif isinstance(value, ObjectValue):
        name = value.cel_type.name
        if name != path:
            yield (
                f"unexpected type name {quoted(name)}, expected {quoted(path)}, "
                "which matches field name path from root Object type"
            )
        for field, item in value.fields.items():
            yield from _find_type_mismatches(item, f"{path}.{field}", depth - 1)
    elif isinstance(value, LISTS):
        for item in value:
            yield from _find_type_mismatches(item, path, depth - 1)
    elif isinstance(value, MAPS):
        for _, item in entries(value):
            yield from _find_type_mismatches(item, path, depth - 1)


def to_json(value: Value, depth: int = _MAX_DEPTH) -> JSONValue:
    """
    Convert a value to JSON.

    @raise CelError: The value has no JSON form.
    """
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, float):
        # Go writes whole numbers without a fraction, so that they are decoded as integers.
        return int(value) if value.is_integer() and abs(value) <= _MAX_JSON_INTEGER else value
    if isinstance(value, int):
        return int(value) if abs(value) <= _MAX_JSON_INTEGER else str(int(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp):
        return format_timestamp(value)
    if isinstance(value, Duration):
        return format_duration(value)
    if not depth:
        raise CelError("value nests too deep")
    if isinstance(value, LISTS):
        return [to_json(item, depth - 1) for item in value]
    if isinstance(value, MAPS):
        return {_key(key): to_json(item, depth - 1) for key, item in entries(value)}
    raise CelError("type conversion error from '{}' to '*structpb.Value'".format(getattr(value, "cel_type", "value")))


def _key(key: Value) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return key if isinstance(key, str) else str(int(key))


def to_object(value: ObjectValue) -> JSONObject:
    """
    Convert an object to the JSON of an apply configuration.

    @raise CelError: A value has no JSON form, or a map key is not a string.
    """
    return {name: _unstructured(name, item, _MAX_DEPTH) for name, item in value.fields.items()}


def _unstructured(name: str, value: Value, depth: int) -> JSONValue:
    if not depth:
        raise CelError(f"fail to convert field {quoted(name)}: value nests too deep")
    if isinstance(value, LISTS):
        return [_unstructured(name, item, depth - 1) for item in value]
    if isinstance(value, MAPS):
        plain: JSONObject = {}
        for key, item in entries(value):
            if not isinstance(key, str):
                problem = f"map key {quoted(_key(key))} is of type {_cel_type(key)}, not string"
                raise CelError(f"fail to convert field {quoted(name)}: {problem}")
            plain[key] = _unstructured(key, item, depth - 1)
        return plain
    if value is None or isinstance(value, (bool, str, float)):
        return value
    return int(value) if isinstance(value, int) else to_json(value)


def _cel_type(key: Value) -> str:
    return "types.Bool" if isinstance(key, bool) else "types.Uint" if isinstance(key, UInt) else "types.Int"
