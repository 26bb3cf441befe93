"""
Rules that make an OpenAPI schema a structural one.

Every value has one type, which is specified in the structure, not within C{allOf}, C{anyOf}, C{oneOf} or C{not}. Fields
that these constrain must be specified in the structure, too. See kubernetes/apiextensions-apiserver,
C{pkg/apiserver/schema/validation.go} and C{complete.go}.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ..api.errors import FieldError, forbidden, invalid, required
from ..api.jsontypes import JSONValue
from ..api.patterns import PatternError, compile_pattern
from ..api.resource import JSONObject

_ROOT, _ITEM, _FIELD = range(3)
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_TYPE_NEEDED: Final = {
    _ROOT: "must not be empty at the root",
    _ITEM: "must not be empty for specified array items",
    _FIELD: "must not be empty for specified object fields",
}
#: Fields of JSON Schema that structural schemas do not support.
UNSUPPORTED: Final = (
    "id",
    "$schema",
    "$ref",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
)


def unsupported(schema: JSONObject) -> str:
    """Return the reason why a schema cannot be converted to a structural schema, or C{""}."""
    for name in UNSUPPORTED:
        if schema.get(name):
            return f"OpenAPIV3Schema '{name.removeprefix('$') if name == '$schema' else name}' is not supported"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
    for subschema in direct_subschemas(schema):
        text = unsupported(subschema)
        if text:
            return text
    return ""


def children(schema: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """Return the direct subschemas of a schema, with the suffixes of their paths."""
    items = schema.get("items")
    if isinstance(items, dict):
        yield items, ".items"
    elif isinstance(items, list):
        for index, subschema in enumerate(items):
            yield subschema, f".items[{index}]"
    for name, subschema in (schema.get("properties") or {}).items():
        yield subschema, f".properties[{name}]"
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        yield additional, ".additionalProperties"
    yield from alternatives(schema)


def alternatives(schema: JSONObject) -> Iterator[tuple[JSONObject, str]]:
    """Return the subschemas of C{not}, C{allOf}, C{anyOf} and C{oneOf}, with the suffixes of their paths."""
    negated = schema.get("not")
    if negated is not None:
        yield negated, ".not"
    for group in ("allOf", "anyOf", "oneOf"):
        subschemas = schema.get(group)
        if subschemas:
            for index, subschema in enumerate(subschemas):
                yield subschema, f".{group}[{index}]"


def direct_subschemas(schema: JSONObject) -> list[JSONObject]:
    """Return the direct subschemas of a schema in the order of L{children}; faster, without paths."""
    nested: list[JSONObject] = []
    items = schema.get("items")
    if items is not None:
        nested += items if isinstance(items, list) else [items]
    properties = schema.get("properties")
    if properties:
        nested += properties.values()
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        nested.append(additional)
    negated = schema.get("not")
    if negated is not None:
        nested.append(negated)
    for group in ("allOf", "anyOf", "oneOf"):
        subschemas = schema.get(group)
        if subschemas:
            nested += subschemas
    return nested


def iterate_subschemas(schema: JSONObject) -> Iterator[JSONObject]:
    """Return a schema and all its subschemas."""
    pending = [schema]
    while pending:
        current = pending.pop()
        yield current
        pending += direct_subschemas(current)


def validate_structural(schema: JSONObject, path: str) -> list[FieldError]:
    """Return the errors of a schema that is not structural, sorted by message."""
    causes = _invariants(schema, _ROOT, path) + _completeness(schema, schema, path, path)
    return sorted(causes, key=str)


def _invariants(schema: JSONObject, level: int, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    kind = schema.get("type") or ""
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    int_or_string = bool(schema.get("x-kubernetes-int-or-string"))
    items, additional = schema.get("items"), schema.get("additionalProperties")
    properties: JSONObject = schema.get("properties") or {}
    if kind == "array" and items is None:
        causes.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        causes += _invariants(items, _ITEM, f"{path}.items")
    for name, subschema in properties.items():
        causes += _invariants(subschema, _FIELD, f"{path}.properties[{name}]")
    if additional is not None:
        if level == _ROOT:
            causes.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, dict):
            causes += _invariants(additional, _FIELD, f"{path}.additionalProperties")
    if int_or_string and preserve:
        text = "must be false if x-kubernetes-int-or-string is true"
        causes.append(invalid(f"{path}.x-kubernetes-preserve-unknown-fields", True, text))
    if int_or_string and embedded:
        text = "must be false if x-kubernetes-int-or-string is true"
        causes.append(invalid(f"{path}.x-kubernetes-embedded-resource", True, text))
    causes += _validate_value(schema, path)
    if embedded and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        causes.append(invalid(f"{path}.type", kind, text) if kind else required(f"{path}.type", text))
    elif not kind and not int_or_string and not preserve:
        causes.append(required(f"{path}.type", _TYPE_NEEDED[level]))
    if embedded and additional is not None:
        text = "must not be used if x-kubernetes-embedded-resource is set"
        causes.append(forbidden(f"{path}.additionalProperties", text))
    if level == _ROOT and kind and kind != "object":
        causes.append(invalid(f"{path}.type", kind, "must be object at the root"))
    if level == _ROOT or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and properties[name].get("type") != "string":
                nested = properties[name].get("type") or ""
                causes.append(invalid(f"{path}.properties[{name}].type", nested, "must be string"))
    if "metadata" in properties:
        causes += _validate_metadata(properties["metadata"], level, embedded, f"{path}.properties[metadata]")
    if embedded and not preserve and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        causes.append(required(f"{path}.properties", text))
    return causes


def _validate_metadata(schema: JSONObject, level: int, embedded: bool, path: str) -> list[FieldError]:
    causes: list[FieldError] = []
    if (level == _ROOT or embedded) and schema.get("type") != "object":
        causes.append(invalid(f"{path}.type", schema.get("type") or "", "must be object"))
    if level == _ROOT:
        rest = {name: value for name, value in schema.items() if name not in ("type", "default") and value}
        if set(rest.get("properties") or ()) <= {"name", "generateName"}:
            rest.pop("properties", None)
        if rest:
            text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            causes.append(forbidden(path, text))
    return causes


def _validate_value(schema: JSONObject, path: str, *, skip_any: bool | None = None) -> list[FieldError]:
    """Validate the combinations of a schema; the alternatives of C{int-or-string} may contain types."""
    causes: list[FieldError] = []
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    if any_of != _INT_OR_STRING if skip_any is None else not skip_any:
        for index, subschema in enumerate(any_of):
            causes += _validate_nested(subschema, f"{path}.anyOf[{index}]")
    for index, subschema in enumerate(all_of):
        skip = skip_any is None and index == 0 and (subschema.get("anyOf") or []) == _INT_OR_STRING
        causes += _validate_nested(subschema, f"{path}.allOf[{index}]", skip_any=skip)
    for index, subschema in enumerate(schema.get("oneOf") or ()):
        causes += _validate_nested(subschema, f"{path}.oneOf[{index}]")
    negated = schema.get("not")
    if negated is not None:
        causes += _validate_nested(negated, f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            text = f"must be a valid regular expression, but isn't: {error}"
            causes.append(invalid(f"{path}.pattern", pattern, text))
    return causes


_FORBIDDEN: Final[tuple[tuple[str, str], ...]] = (
    ("type", "empty"),
    ("additionalProperties", "undefined"),
    ("default", "undefined"),
    ("title", "empty"),
    ("description", "empty"),
    ("nullable", "false"),
    ("x-kubernetes-preserve-unknown-fields", "false"),
    ("x-kubernetes-embedded-resource", "false"),
    ("x-kubernetes-int-or-string", "false"),
    ("x-kubernetes-list-map-keys", "empty"),
    ("x-kubernetes-list-type", "undefined"),
    ("x-kubernetes-map-type", "undefined"),
    ("x-kubernetes-validations", "empty"),
)


def _validate_nested(schema: JSONObject, path: str, *, skip_any: bool = False) -> list[FieldError]:
    causes = _validate_value(schema, path, skip_any=skip_any)
    items = schema.get("items")
    if isinstance(items, dict):
        causes += _validate_nested(items, f"{path}.items")
    properties: JSONObject = schema.get("properties") or {}
    for name, subschema in properties.items():
        causes += _validate_nested(subschema, f"{path}.properties[{name}]")
    for name, expected in _FORBIDDEN:
        if _is_set(schema, name):
            causes.append(forbidden(f"{path}.{name}", f"must be {expected} to be structural"))
    if "metadata" in properties:
        causes.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    return causes


def _is_set(schema: JSONObject, name: str) -> bool:
    value = schema.get(name)
    if name in ("default", "additionalProperties"):
        return value is not None and not (name == "additionalProperties" and value is False)
    return bool(value)


def _completeness(values: JSONObject, schema: JSONValue, path: str, values_path: str) -> list[FieldError]:
    """Return errors for fields that logical junctors constrain but the structure does not specify."""
    causes: list[FieldError] = []
    subschemas: list[tuple[JSONObject, str]] = []
    if values.get("not") is not None:
        subschemas.append((values["not"], f"{values_path}.not"))
    for group in ("allOf", "anyOf", "oneOf"):
        subschemas += [
            (subschema, f"{values_path}.{group}[{index}]") for index, subschema in enumerate(values.get(group) or ())
        ]
    for subschema, part_path in subschemas:
        causes += _nested_completeness(subschema, schema, path, part_path)
    return causes


def _nested_completeness(values: JSONObject, schema: JSONValue, path: str, values_path: str) -> list[FieldError]:
    if not isinstance(schema, dict):
        return [required(path, f"because it is defined in {values_path}")]
    causes = _completeness(values, schema, path, values_path)
    items = values.get("items")
    if isinstance(items, dict):
        causes += _nested_completeness(items, schema.get("items"), f"{path}.items", f"{values_path}.items")
    existing: JSONObject = schema.get("properties") or {}
    for name, subschema in (values.get("properties") or {}).items():
        end = f".properties[{name}]"
        causes += _nested_completeness(subschema, existing.get(name), f"{path}{end}", f"{values_path}{end}")
    return causes
