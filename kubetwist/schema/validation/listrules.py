"""
Validation of custom resources by list types and embedded resources of their structural schema.

See kubernetes/apiextensions-apiserver, C{pkg/apiserver/schema/listtype} and C{pkg/apiserver/schema/objectmeta}.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from ...api.errors import (
    FieldError,
    duplicate,
    invalid,
    required,
)
from ...api.jsontypes import JSONValue
from ...api.names import (
    validate_dns1035_label,
    validate_path_segment_name,
)
from ...api.objectmeta import validate_metadata_on_create
from ...api.resource import (
    GroupVersion,
    JSONObject,
)
from ..structural import (
    Structural,
    deep_copy,
)


def child_path(path: str, name: str) -> str:
    """Return the path of a field."""
    return f"{path}.{name}" if path else name


def validate_lists(obj: JSONValue, schema: Structural, path: str = "") -> list[FieldError]:
    """Report duplicate items in lists of type set and map."""
    causes: list[FieldError] = []
    if isinstance(obj, dict):
        if schema.additional is not None:
            for name, value in obj.items():
                causes += validate_lists(value, schema.additional, f"{path}[{name}]")
        for name, value in obj.items():
            subschema = schema.properties.get(name)
            if subschema is not None:
                causes += validate_lists(value, subschema, child_path(path, name))
    elif isinstance(obj, list):
        if schema.list_type == "set":
            causes += [
                duplicate(f"{path}[{index}]", obj[index], _go_type(obj[index]))
                for index in repeated(map(_as_json, obj))
            ]
        elif schema.list_type == "map":
            causes += _validate_map_list(obj, schema, path)
        if schema.items is not None:
            for index, value in enumerate(obj):
                causes += validate_lists(value, schema.items, f"{path}[{index}]")
    return causes


def _validate_map_list(obj: list[JSONValue], schema: Structural, path: str) -> list[FieldError]:
    for index, item in enumerate(obj):
        if item is not None and not isinstance(item, dict):
            return [invalid(f"{path}[{index}]", item, "must be an object for an array of list-type map")]
    keys = [{name: item[name] for name in schema.list_map_keys if name in item} if item else {} for item in obj]
    return [duplicate(f"{path}[{index}]", keys[index], _go_type(keys[index])) for index in repeated(keys)]


def _go_type(item: JSONValue) -> str:
    """Return the Go type of a list or map without a schema."""
    if isinstance(item, dict):
        return "map[string]interface_{}"
    return "[]interface_{}" if isinstance(item, list) else ""


def _as_json(item: JSONValue) -> JSONValue:
    """Return the key of an item of a set, which distinguishes the scalars 1 and 1.0 as Go does."""
    return deep_copy(item) if item.__class__ in (dict, list) else item


def repeated(items: Iterable[JSONValue]) -> list[int]:
    """Return the index of the first duplicate of each item, without further duplicates."""
    seen: dict[bytes, int] = {}
    duplicates = []
    for index, item in enumerate(items):
        encoded = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
        times = seen.get(encoded, 0)
        seen[encoded] = times + 1
        if times == 1:
            duplicates.append(index)
    return duplicates


def validate_embedded_resources(
    obj: JSONValue, schema: Structural, path: str = "", root: bool = True
) -> list[FieldError]:
    """
    Validate the kinds and metadata of embedded resources within C{obj}.

    @param obj: The value.
    @param schema: The schema of the value.
    @param path: The path of the value.
    @param root: Whether C{obj} is the resource, whose metadata is validated elsewhere.
    """
    causes: list[FieldError] = []
    if isinstance(obj, dict):
        if schema.embedded and not root:
            causes += _validate_resource(obj, path)
        for name, value in obj.items():
            subschema = schema.properties.get(name)
            if subschema is not None:
                causes += validate_embedded_resources(value, subschema, child_path(path, name), root=False)
            elif schema.additional is not None:
                causes += validate_embedded_resources(value, schema.additional, f"{path}[{name}]", root=False)
    elif isinstance(obj, list) and schema.items is not None:
        for index, value in enumerate(obj):
            causes += validate_embedded_resources(value, schema.items, f"{path}[{index}]", root=False)
    return causes


def _validate_resource(obj: JSONObject, path: str) -> list[FieldError]:
    """Validate an embedded resource, its fields in the order of the document."""
    missing = (required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in obj)
    causes = [error.reworded(1, 34, "must not be empty") for error in missing]
    for name, value in obj.items():
        if name == "apiVersion" and isinstance(value, str):
            causes += _validate_version(value, f"{path}.apiVersion")
        elif name == "kind" and isinstance(value, str):
            causes += _validate_kind(value, f"{path}.kind")
        elif name == "metadata" and isinstance(value, dict):
            meta = {**value, "name": value.get("name") or "fakename"}
            causes += validate_metadata_on_create(
                meta,
                bool(meta.get("namespace")),
                validate_path_segment_name,
                f"{path}.metadata",
                standard_finalizers=False,
            )
    return causes


def _validate_version(api_version: str, path: str) -> list[FieldError]:
    if not api_version:
        return [invalid(path, "", "must not be empty")]
    try:
        GroupVersion.parse(api_version)
    except ValueError as error:
        return [invalid(path, api_version, str(error))]
    return []


def _validate_kind(kind: str, path: str) -> list[FieldError]:
    if not kind:
        return [invalid(path, "", "must not be empty")]
    problems = validate_dns1035_label(kind.lower())
    if not problems:
        return []
    text = f"may have mixed case, but should otherwise match: {','.join(problems)}"
    return [invalid(path, kind, text)]
